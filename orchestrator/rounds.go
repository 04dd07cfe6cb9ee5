package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// Round is one atomic commit of an orchestration, as it is stored.
type Round struct {
	Execution int
	Number    int
	// Learned holds the events that the orchestration learned, Decided the decisions they led to; each in order.
	Learned []RoundEvent
	Decided []RoundEvent
}

// RoundEvent is one entry of a Round. Fields that do not apply to its kind are zero.
type RoundEvent struct {
	// Kind is the kind of the event: ExecutionStarted, ActivityScheduled, TimerFired and so on.
	Kind string
	At   time.Time
	// Call is the number of the call that the event is about, from 1 in each execution.
	Call int
	// Name is the name of the orchestrator, activity or event.
	Name string
	// Payload is an input or a result. InBlob marks a payload that is stored in a blob; if Payload is empty, it was
	// not read from there.
	Payload json.RawMessage
	InBlob  bool
	Failure *Failure
	// Attempt is the attempt that failed. Due is when the next one is due, or when a timer fires. Of other learned
	// events, it is the clock's reading, if At is later because the clock of a process was ahead before.
	Attempt int
	Due     time.Time
	// Child is the id of the orchestration that was called or started, or that an event was sent to. Of a publication,
	// it is the key.
	Child string
	// Signal is the id of the signal that brought the event, Reason the reason that an operator gave.
	Signal string
	Reason string
	// Trace is the trace context of the orchestration's starter or of the event's sender.
	Trace string
	// Reused marks a result that was taken over from an earlier execution.
	Reused bool
	// Local marks the call of a local activity (WithLocal).
	Local bool
	// CorrelationID and Parent are those of a start. Tenant is the tenant of a start, or of a publication. Key is the
	// publication's key.
	CorrelationID string
	Parent        string
	Tenant        string
	Key           string
	// Sender is the id of the orchestration that sent an event, "" for one from outside.
	Sender string
	// Shielded marks a call that a cancellation does not reach. Undoes is the number of the call that it undoes, 0 for
	// none.
	Shielded bool
	Undoes   int
}

// pageBytes is the size of payloads, in bytes, that ends a page of Rounds.
const pageBytes = 1 << 20

// ErrContinuation: the continuation does not belong to this list.
var ErrContinuation = errors.New("not a continuation of this list")

// Rounds returns the rounds of an orchestration in order, up to limit (1 to 1,000) and about a megabyte, and a
// continuation for the following ones; "" at the end. A page is one query. Rounds of executions that are no longer
// needed are deleted. If a round cannot be read, the rounds before it are returned with the error. The error is
// ErrNotFound, ErrContinuation, ErrCorrupt, or an error of storage.
func (r *Runtime) Rounds(ctx context.Context, id string, limit int, continuation string) ([]Round, string, error) {
	if limit < 1 || limit > maxList {
		return nil, "", fmt.Errorf("rounds of orchestration %s: a page has 1 to %d, not %d", id, maxList, limit)
	}
	from := roundPrefix
	if continuation != "" {
		var execution, number int
		if _, err := fmt.Sscanf(continuation, "%d-%d", &execution, &number); err != nil || execution < 1 || number < 1 || continuation != placeOf(execution, number) {
			return nil, "", fmt.Errorf("rounds of orchestration %s: %w", id, ErrContinuation)
		}
		from = roundKey(execution, number) + "0" // after this round, and before the next
	}
	if !validID(id) {
		return nil, "", fmt.Errorf("orchestration %.400q: %w", id, ErrNotFound)
	}
	var found []Round
	size := 0
	q := tables.Query{Partition: tables.EscapeKey(id), From: from, To: tables.PrefixEnd(roundPrefix)}
	for {
		q.Limit = limit - len(found)
		page, err := r.config.Tables.Query(ctx, r.config.Table, q)
		if err != nil {
			return nil, "", fmt.Errorf("rounds of orchestration %s: %w", id, err)
		}
		for i, e := range page.Entities {
			one, bytes, err := r.readRound(ctx, id, e)
			if errors.Is(err, errRoundGone) {
				continue
			}
			if err != nil {
				return found, "", fmt.Errorf("rounds of orchestration %s: %w", id, err)
			}
			found, size = append(found, one), size+bytes
			more := page.Next != "" || i < len(page.Entities)-1
			if more && (size >= pageBytes || len(found) == limit) {
				return found, placeOf(one.Execution, one.Number), nil
			}
		}
		if q.Continuation = page.Next; q.Continuation == "" {
			break
		}
	}
	if len(found) == 0 && continuation == "" {
		return nil, "", fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
	}
	return found, "", nil
}

// errRoundGone: the round was deleted while it was being read, as rounds of old executions are.
var errRoundGone = errors.New("the round is gone")

// readRound decodes a row, and returns the size of its payloads in bytes.
func (r *Runtime) readRound(ctx context.Context, id string, e tables.Entity) (Round, int, error) {
	err := r.journal.fillBlobs(ctx, id, []tables.Entity{e})
	if errors.Is(err, blobs.ErrNotFound) {
		if _, there := r.config.Tables.Get(ctx, r.config.Table, e.Key); errors.Is(there, tables.ErrNotFound) {
			return Round{}, 0, errRoundGone
		}
	}
	if err != nil {
		return Round{}, 0, err
	}
	return roundOf(e)
}

// placeOf identifies a round in a continuation.
func placeOf(execution, number int) string { return fmt.Sprintf("%d-%d", execution, number) }

// roundOf is readRound for a row that holds its data itself.
func roundOf(e tables.Entity) (Round, int, error) {
	var execution, number int
	if _, err := fmt.Sscanf(e.Row, roundPrefix+"%08d-%08d", &execution, &number); err != nil {
		return Round{}, 0, fmt.Errorf("row %s: %w: %w", e.Row, ErrCorrupt, err)
	}
	r, err := decodeRound(e)
	if err != nil {
		return Round{}, 0, err
	}
	size := 0
	for _, x := range slices.Concat(r.Learned, r.Decided) {
		size += len(x.Payload)
	}
	return r.shown(execution, number), size, nil
}

func (r round) shown(execution, number int) Round {
	out := Round{execution, number, make([]RoundEvent, len(r.Learned)), make([]RoundEvent, len(r.Decided))}
	for i, x := range r.Learned {
		out.Learned[i] = x.shown()
	}
	for i, x := range r.Decided {
		out.Decided[i] = x.shown()
	}
	return out
}

// senderOf returns the orchestration in the name of a stream, "" for none.
func senderOf(stream string) string {
	if i := strings.LastIndexByte(stream, '/'); i > 0 {
		return stream[:i]
	}
	return ""
}

func (e event) shown() RoundEvent {
	s := RoundEvent{Kind: string(e.Kind), At: fromMicros(e.At), Call: e.Task, Name: e.Name, Payload: e.Payload, InBlob: e.Blob != "", Failure: e.Failure,
		Attempt: e.Attempt, Child: e.target().Child, Signal: e.signal().ID, Reason: e.signal().Reason, Reused: e.reused(), Local: e.target().Local, Trace: cmp.Or(e.start().Trace, e.signal().Trace),
		CorrelationID: e.start().CorrelationID, Parent: e.start().Parent, Tenant: e.start().Tenant, Shielded: e.Shielded, Undoes: e.target().Undoes}
	if e.Kind == eventPublished {
		s.Tenant, s.Key = e.target().Tenant, e.target().Child
	}
	if e.Kind == eventRaised {
		s.Sender = senderOf(e.signal().Stream)
	}
	if e.Due != 0 {
		s.Due = fromMicros(e.Due)
	}
	return s
}
