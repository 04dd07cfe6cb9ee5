package orchestrator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

const (
	statusRow   = "status"
	purgeRow    = "purge" // instead of the status: the rows are being deleted
	roundPrefix = "r-"

	executionPrefix = "x-"

	// dropSlice is how many old rows go with one round: a transaction has 100 operations.
	dropSlice   = 90
	afterStatus = "statut" // a key behind the rounds and the status

	// spillFrom is the payload size in bytes from which a blob holds it; below, the row does.
	spillFrom = 64 << 10
	// spillTight is the same for a round that does not fit otherwise.
	spillTight = 1 << 10

	commitTries  = 5
	commitPause  = 200 * time.Millisecond // doubles from try to try
	storeTimeout = 30 * time.Second
)

// errLostRace: another process has committed this round.
var errLostRace = errors.New("another process committed this round")

// journal keeps rounds. It is the only place that writes them.
type journal struct {
	tables    tables.Store
	blobs     blobs.Store
	table     string
	container string
	codec     codec
}

func roundKey(execution, number int) string {
	return fmt.Sprintf("%s%08d-%08d", roundPrefix, execution, number)
}

// generation is one execution as the rounds hold it.
type generation struct {
	number  int
	rounds  []round
	numbers []int // of the rounds
	old     bool  // from before what the execution continued that there is now; it may have lost rows
}

// missing is the number of the first round that is not there, 0 for none.
func (g generation) missing() int {
	for i, n := range g.numbers {
		if n != i+1 {
			return i + 1
		}
	}
	return 0
}

// start is the event that the execution began with.
func (g generation) start() (event, bool) {
	if len(g.rounds) == 0 || len(g.rounds[0].Learned) == 0 || g.rounds[0].Learned[0].Kind != executionStarted {
		return event{}, false
	}
	return g.rounds[0].Learned[0], true
}

// raised are the external events of the execution, for the one that follows its failure and asks for them again.
func (g generation) raised() *inheritance {
	h := inheritance{Signals: g.signals()}
	for _, r := range g.rounds {
		for _, e := range r.Learned {
			if e.Kind == eventRaised {
				h.Unread = append(h.Unread, e)
			}
			h.Unread = append(h.Unread, e.Inherited.unread()...)
		}
	}
	if len(h.Unread)+len(h.Signals) == 0 {
		return nil
	}
	return &h
}

// signals are the ids of the signals that the execution has applied, or knows from the one before.
func (g generation) signals() []string {
	var ids []string
	for _, r := range g.rounds {
		for _, e := range r.Learned {
			if e.Inherited != nil {
				ids = append(ids, e.Inherited.Signals...)
			}
			if e.Signal != "" && e.Kind != executionStarted {
				ids = append(ids, e.Signal)
			}
		}
	}
	return ids
}

// end is the decision that ended the execution, nil while it goes on.
func (g generation) end() *event {
	if len(g.rounds) == 0 {
		return nil
	}
	decided := g.rounds[len(g.rounds)-1].Decided
	if len(decided) == 0 {
		return nil
	}
	switch last := &decided[len(decided)-1]; last.Kind {
	case executionCompleted, executionFailed, executionContinued, executionStopped:
		return last
	default:
		return nil
	}
}

// active says that the execution has not ended, or is followed by another of itself.
func (g generation) active() bool {
	end := g.end()
	return end == nil || end.Kind == executionContinued
}

// load reads every execution of an orchestration, oldest first; none when there is no such orchestration, or it is being
// purged.
func (j *journal) load(ctx context.Context, id string) ([]generation, error) {
	all, _, err := j.loadTagged(ctx, id)
	return all, err
}

// loadTagged is load, with the ETag of the status: as long as it is that, there are these rounds.
func (j *journal) loadTagged(ctx context.Context, id string) ([]generation, string, error) {
	rows, status, err := j.rows(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if len(rows) > 0 {
		if last, err := decodeRound(rows[len(rows)-1]); err == nil && last.purges() {
			return nil, "", nil
		}
	}
	all, err := generations(rows)
	if err != nil {
		return nil, "", fmt.Errorf("load orchestration %s: %w", id, err)
	}
	switch n, version := int64(countOf(all)), status.Int("StateVersion"); {
	case n == version:
	case version == 0:
		return nil, "", fmt.Errorf("load orchestration %s: there are %d rounds, and no status row: %w", id, n, ErrCorrupt)
	default:
		return nil, "", fmt.Errorf("load orchestration %s: the status counts %d rounds, there are %d; round %d is missing: %w", id, version, n, n+1, ErrCorrupt)
	}
	if err := j.fetch(ctx, id, all); err != nil {
		return nil, "", err
	}
	return all, status.ETag, resolve(id, all)
}

// countOf is how many rounds the executions have had, those included whose rows are deleted.
func countOf(all []generation) int {
	if len(all) == 0 {
		return 0
	}
	latest := all[len(all)-1]
	started, _ := latest.start()
	return started.Before + len(latest.rounds)
}

// rows are the rounds as they are stored, and the status.
func (j *journal) rows(ctx context.Context, id string) (rows []tables.Entity, status tables.Entity, err error) {
	q := tables.Query{Partition: tables.EscapeKey(id), From: roundPrefix, To: afterStatus}
	for e, err := range tables.All(ctx, j.tables, j.table, q) {
		switch {
		case err != nil:
			return nil, status, fmt.Errorf("load orchestration %s: %w", id, err)
		case e.Row == statusRow:
			status = e
		case strings.HasPrefix(e.Row, roundPrefix):
			rows = append(rows, e)
		}
	}
	return rows, status, nil
}

// generations decodes rounds.
func generations(rows []tables.Entity) ([]generation, error) {
	var all []generation
	for _, e := range rows {
		var execution, number int
		if _, err := fmt.Sscanf(e.Row, roundPrefix+"%08d-%08d", &execution, &number); err != nil {
			return nil, fmt.Errorf("row %s: %w: %w", e.Row, ErrCorrupt, err)
		}
		if n := len(all); n == 0 || all[n-1].number != execution {
			all = append(all, generation{number: execution})
		}
		g := &all[len(all)-1]
		r, err := decodeRound(e)
		if err != nil {
			return nil, err
		}
		g.rounds, g.numbers = append(g.rounds, r), append(g.numbers, number)
	}
	if len(all) == 0 {
		return nil, nil
	}
	latest := all[len(all)-1]
	started, ok := latest.start()
	if n := latest.missing(); n > 0 || !ok {
		return nil, fmt.Errorf("execution %d does not begin with a start, round %d is missing: %w", latest.number, max(n, 1), ErrCorrupt)
	}
	oldest := max(started.Base, 1) - 1
	for i := range all {
		g := &all[i]
		g.old = g.number < oldest
		if n := g.missing(); n > 0 && !g.old {
			return nil, fmt.Errorf("round %d of execution %d is missing: %w", n, g.number, ErrCorrupt)
		}
	}
	return all, nil
}

// resolve gives results that an execution took over from an earlier one their payload.
func resolve(id string, all []generation) error {
	type call struct{ execution, task int }
	results := map[call]event{}
	for _, g := range all {
		for _, r := range g.rounds {
			for i := range r.Learned {
				e := &r.Learned[i]
				if !e.reused() {
					results[call{g.number, e.Task}] = *e
					continue
				}
				from, ok := results[call{e.Origin.Execution, e.Origin.Task}]
				if !ok || from.Kind != e.Kind {
					return fmt.Errorf("load orchestration %s: execution %d takes over a result that execution %d does not have: %w",
						id, g.number, e.Origin.Execution, ErrCorrupt)
				}
				e.Payload = from.Payload
			}
		}
	}
	return nil
}

// fetch puts spilled results back in place. Inputs of calls stay out: replay makes them again, and compares by hash.
func (j *journal) fetch(ctx context.Context, id string, all []generation) error {
	for _, g := range all {
		for n, r := range g.rounds {
			if g.old && n > 0 {
				break // it goes on to tell how it began
			}
			for i := range r.Learned {
				if err := j.fetchOne(ctx, id, &r.Learned[i]); err != nil {
					return err
				}
			}
			for i := range r.Decided {
				e := &r.Decided[i]
				switch e.Kind {
				case executionCompleted, executionContinued, sideEffectRecorded, childDetached, eventPublished:
					if err := j.fetchOne(ctx, id, e); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (j *journal) fetchOne(ctx context.Context, id string, e *event) error {
	for i := range e.Inherited.unread() {
		if err := j.fetchOne(ctx, id, &e.Inherited.Unread[i]); err != nil {
			return err
		}
	}
	if e.Blob == "" {
		return nil
	}
	payload, err := j.blobs.Get(ctx, j.container, blobName(id, e.Blob))
	if errors.Is(err, blobs.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return fmt.Errorf("load orchestration %s: payload of %s: %w", id, e.Kind, err)
	}
	e.Payload = payload
	return nil
}

// commit inserts a round and replaces the status in one transaction. errLostRace says that the round is another's. An
// outcome that storage does not tell is found out, so nil and errLostRace are both certain. With an etag, the status has to
// be that one, too. more is done in the same transaction.
func (j *journal) commit(ctx context.Context, id string, execution, number int, r round, status map[string]any, etag string, more ...tables.Op) error {
	// A commit is not torn off when the invocation ends: its outcome decides what may run next.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	columns, err := j.encode(ctx, id, r)
	if err != nil {
		return fmt.Errorf("commit round %d of execution %d of orchestration %s: %w", number, execution, id, err)
	}
	snapshot := tables.Replace // what is being purged has none, and does not come back
	if execution == 1 && number == 1 {
		snapshot = tables.Insert // a status without its first round is damage, and no beginning
	}
	key := tables.Key{Partition: tables.EscapeKey(id), Row: roundKey(execution, number)}
	more = append([]tables.Op{snapshot(tables.Entity{Key: tables.Key{Partition: key.Partition, Row: statusRow}, Properties: status, ETag: etag})}, more...)
	err = j.insert(ctx, tables.Entity{Key: key, Properties: columns}, more...)
	if err != nil {
		return fmt.Errorf("commit round %d of execution %d of orchestration %s: %w", number, execution, id, err)
	}
	return nil
}

// insert makes a round's row, and what goes with it, until it knows what came of it.
func (j *journal) insert(ctx context.Context, row tables.Entity, with ...tables.Op) error {
	token := rand.Text()
	row.Properties[columnCommit] = token
	ops := append([]tables.Op{tables.Insert(row)}, with...)
	for try := 1; ; try++ {
		err := j.tables.Apply(ctx, j.table, ops...)
		if err != nil && (errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrOutcomeUnknown) || errors.Is(err, tables.ErrNotFound)) {
			err = j.verify(ctx, row.Key, token, err)
		}
		if errors.Is(err, tables.ErrNotFound) {
			err = fmt.Errorf("the orchestration was purged meanwhile: %w: %w", ErrNotFound, err)
		}
		if errors.Is(err, tables.ErrPrecondition) {
			err = fmt.Errorf("%w: %w", errLostRace, err)
		}
		again := errors.Is(err, tables.ErrThrottled) || errors.Is(err, tables.ErrOutcomeUnknown)
		if err == nil || !again || try == commitTries {
			return err
		}
		if pauseErr := pause(ctx, commitPause<<(try-1)); pauseErr != nil {
			return err
		}
	}
}

// verify finds out whose round is stored after an answer that does not say: nil when it is ours, errLostRace when it is
// another's, cause when there is none.
func (j *journal) verify(ctx context.Context, key tables.Key, token string, cause error) error {
	e, err := j.tables.Get(ctx, j.table, key)
	switch {
	case errors.Is(err, tables.ErrNotFound) && (errors.Is(cause, tables.ErrExists) || blames(cause, executionPrefix)):
		return errLostRace // there is a status, or there are executions behind this one
	case errors.Is(err, tables.ErrNotFound):
		return cause
	case err != nil:
		return errors.Join(tables.ErrOutcomeUnknown, cause, err)
	case e.String(columnCommit) == token:
		return nil
	default:
		return errLostRace
	}
}

// blames says that an operation on a row with this prefix failed.
func blames(err error, prefix string) bool {
	op, ok := errors.AsType[*tables.OpError](err)
	return ok && strings.HasPrefix(op.Key.Row, prefix)
}

// encode spills what is large, so that the round fits its row and names only blobs that exist.
func (j *journal) encode(ctx context.Context, id string, r round) (map[string]any, error) {
	for _, threshold := range []int{spillFrom, spillTight} {
		spilled, err := j.spill(ctx, id, r, threshold)
		if err != nil {
			return nil, err
		}
		columns, err := j.codec.encode(spilled)
		if err == nil || !errors.Is(err, tables.ErrTooLarge) || threshold == spillTight {
			return columns, err
		}
	}
	return nil, nil // unreachable unless the loop above is empty
}

func (j *journal) spill(ctx context.Context, id string, r round, threshold int) (round, error) {
	out := round{Learned: make([]event, len(r.Learned)), Decided: make([]event, len(r.Decided))}
	copy(out.Learned, r.Learned)
	copy(out.Decided, r.Decided)
	for _, events := range [][]event{out.Learned, out.Decided} {
		for i := range events {
			e := &events[i]
			if e.reused() {
				e.Payload = nil // it is stored already
			}
			if e.Inherited != nil {
				h := *e.Inherited
				h.Unread = append([]event(nil), h.Unread...)
				for i := range h.Unread {
					if err := j.spillOne(ctx, id, &h.Unread[i], threshold); err != nil {
						return out, err
					}
				}
				e.Inherited = &h
			}
			if err := j.spillOne(ctx, id, e, threshold); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func (j *journal) spillOne(ctx context.Context, id string, e *event, threshold int) error {
	if len(e.Payload) < threshold {
		return nil
	}
	e.Blob = hashOf(e.Payload)
	if err := j.blobs.Put(ctx, j.container, blobName(id, e.Blob), e.Payload); err != nil {
		if errors.Is(err, blobs.ErrTooLarge) {
			err = fmt.Errorf("%w: keep it elsewhere and hand over a reference", err)
		}
		return fmt.Errorf("spill the payload of %s: %w", e.describe(), err)
	}
	e.Payload = nil
	return nil
}

func hashOf(payload json.RawMessage) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

func blobName(id, hash string) string {
	return strings.Join([]string{tables.EscapeKey(id), hash}, "/")
}

// pause waits for d, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
