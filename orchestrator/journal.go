package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

const (
	statusRow   = "status"
	purgeRow    = "purge" // replaces the status row while the rows are being deleted
	roundPrefix = "r-"

	executionPrefix = "x-"

	// dropSlice bounds the obsolete rows that one round deletes: a transaction has at most 100 operations.
	dropSlice   = 90
	afterStatus = "statut" // a key after the rounds and the status

	// spillFrom is the size in bytes from which a payload goes into a blob instead of the round.
	spillFrom = 64 << 10

	commitTries  = 5
	commitPause  = 200 * time.Millisecond // doubles from try to try
	storeTimeout = 30 * time.Second
)

// errLostRace: another process has committed this round.
var errLostRace = errors.New("another process committed this round")

// journal stores rounds. Only the journal writes them.
type journal struct {
	tables    tables.Store
	blobs     blobs.Store
	table     string
	container string
	codec     codec
	tokens    commitTokens
	buffers   bufferPool
}

func roundKey(execution, number int) string {
	var room [roundKeyRoom]byte
	return string(appendRoundKey(room[:0], execution, number))
}

// roundKeyRoom is enough for the keys of rounds with realistic numbers.
const roundKeyRoom = 32

func appendRoundKey(b []byte, execution, number int) []byte {
	b = append(appendPadded(append(b, roundPrefix...), execution), '-')
	return appendPadded(b, number)
}

// parseRoundKey is the inverse of roundKey.
func parseRoundKey(key string) (execution, number int, ok bool) {
	first, second, found := strings.Cut(strings.TrimPrefix(key, roundPrefix), "-")
	execution, errExecution := strconv.Atoi(first)
	number, errNumber := strconv.Atoi(second)
	return execution, number, found && errExecution == nil && errNumber == nil
}

// commit inserts a round and replaces the status row in one transaction, together with the operations in more.
// errLostRace means that another process has committed the round. If the response of storage is lost, commit checks
// the row, so nil and errLostRace are both certain. If etag is set, the status row must have it. blobs reports whether
// the round has blobs. b holds the columns of the status row, and scratch space of this call.
func (j *journal) commit(ctx context.Context, id string, execution, number int, r round, b *roundBuffers, etag string, more ...tables.Op) (blobs bool, err error) {
	// The end of the invocation does not interrupt a commit, because its outcome decides which work may run next.
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	columns, blobs, err := j.encode(ctx, b, id, execution, r)
	if err != nil {
		return false, fmt.Errorf("commit round %d of execution %d of orchestration %s: %w", number, execution, id, err)
	}
	snapshot := tables.Replace // an orchestration that is being purged has no status row, and must not get one
	if execution == 1 && number == 1 {
		snapshot = tables.Insert // a status row without a first round is damage, and must not be overwritten
	}
	var room [roundKeyRoom + 48]byte
	name := appendRoundKey(room[:0], execution, number)
	text := string(j.tokens.append(name)) // the key and the token, made as one
	key, token := tables.Key{Partition: tables.EscapeKey(id), Row: text[:len(name)]}, text[len(name):]
	b.ops = append(b.ops[:0], tables.Insert(tables.Entity{Key: key, Properties: columns}),
		snapshot(tables.Entity{Key: tables.Key{Partition: key.Partition, Row: statusRow}, Properties: b.status, ETag: etag}))
	b.ops = append(b.ops, more...)
	err = j.apply(ctx, b.ops, token)
	if err != nil {
		return false, fmt.Errorf("commit round %d of execution %d of orchestration %s: %w", number, execution, id, err)
	}
	return blobs, nil
}

// insert applies the transaction that inserts a round's row, until its outcome is known.
func (j *journal) insert(ctx context.Context, row tables.Entity, with ...tables.Op) error {
	return j.apply(ctx, append([]tables.Op{tables.Insert(row)}, with...), j.tokens.next())
}

// apply applies a transaction whose first operation inserts a round's row, until its outcome is known. The row gets
// the token, by which it is recognised.
func (j *journal) apply(ctx context.Context, ops []tables.Op, token string) error {
	row := ops[0].Entity
	row.Properties[columnCommit] = token
	for try := 1; ; try++ {
		err := j.tables.Apply(ctx, j.table, ops...)
		if err != nil && (errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrOutcomeUnknown) || errors.Is(err, tables.ErrNotFound)) {
			err = j.verify(ctx, row.Key, token, err)
		}
		if errors.Is(err, tables.ErrNotFound) {
			err = fmt.Errorf("the orchestration was purged meanwhile, or Prepare has not created the tables: %w: %w", ErrNotFound, err)
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

// verify checks the stored round after an inconclusive response: nil for this process's round, errLostRace for another
// one's, cause if no round is stored.
func (j *journal) verify(ctx context.Context, key tables.Key, token string, cause error) error {
	e, err := j.tables.Get(ctx, j.table, key)
	switch {
	case errors.Is(err, tables.ErrNotFound) && (errors.Is(cause, tables.ErrExists) || failedOn(cause, executionPrefix)):
		return errLostRace // a status row or a later execution exists
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

// failedOn reports whether the failed operation was on a row with this prefix.
func failedOn(err error, prefix string) bool {
	op, ok := errors.AsType[*tables.OpError](err)
	return ok && strings.HasPrefix(op.Key.Row, prefix)
}

// pause waits for d, or until ctx ends.
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
