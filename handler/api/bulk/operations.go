package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/orchestrator"
)

var (
	// ErrNotFound: the operation does not exist.
	ErrNotFound = errors.New("no such operation")
	// ErrEnded: the operation has ended and can no longer be canceled, paused or resumed.
	ErrEnded = errors.New("the operation has ended")
	// ErrKeyReused: the idempotency key belongs to an operation with another request.
	ErrKeyReused = errors.New("the idempotency key belongs to another request")
)

// Operation is an operation for its caller.
type Operation struct {
	ID string
	// Kind is the name of its Kind.
	Kind          string
	CorrelationID string
	Status        orchestrator.Status
	Request       Request
	Progress      Progress
	CreatedAt     time.Time
	UpdatedAt     time.Time
	// EndedAt is zero while it runs.
	EndedAt time.Time
}

// Ended reports whether the operation has ended, with any result.
func (o Operation) Ended() bool { return !o.EndedAt.IsZero() }

// Operations starts and reads operations, on a runtime that has the Orchestrators and the Activities. It is safe for
// concurrent use.
type Operations struct {
	runtime *orchestrator.Runtime
	now     func() time.Time
}

// NewOperations makes an Operations; nil for now means time.Now.
func NewOperations(r *orchestrator.Runtime, now func() time.Time) *Operations {
	if now == nil {
		now = time.Now
	}
	return &Operations{r, now}
}

// Start starts an operation of a kind, OutboxKind, DeadLetterKind or OrchestrationKind; when it returns without
// error, the operation is durable. Without Request.To, rows that are added from now on are not selected. With a key,
// a repeated request is the same operation, and another request returns ErrKeyReused; without one, each Start is an
// operation. The other errors are those of Runtime.Start and Get.
func (o *Operations) Start(ctx context.Context, kind string, r Request, key, correlationID string) (Operation, error) {
	id := kind + "-" + uuid.NewString()
	if key != "" {
		id = kind + "-" + uuid.NewSHA1(uuid.NameSpaceOID, []byte(kind+"\n"+key)).String()
	}
	asked := r
	if r.To.IsZero() {
		r.To = o.now()
	}
	input, err := json.Marshal(state{Request: r})
	if err == nil {
		_, err = o.runtime.Start(ctx, orchestrator.Start{ID: id, Orchestrator: kind, Input: input, CorrelationID: correlationID})
	}
	if err != nil && !errors.Is(err, orchestrator.ErrExists) {
		return Operation{}, fmt.Errorf("start operation %s: %w", id, err)
	}
	// It may be the operation of an earlier request with the same key: the runtime reported that, or treated this
	// start as its repeat.
	op, err := o.Get(ctx, id)
	if err == nil && !asked.sameAs(op.Request) {
		err = fmt.Errorf("start operation %s: %w", id, ErrKeyReused)
	}
	return op, err
}

// Get reads an operation, in one transaction, or two until its first slice is recorded. The errors are ErrNotFound
// and those of the runtime.
func (o *Operations) Get(ctx context.Context, id string) (Operation, error) {
	kind, ok := kindOf(id)
	if !ok {
		return Operation{}, fmt.Errorf("get operation: %w", ErrNotFound)
	}
	s, err := o.runtime.Status(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) || err == nil && s.Orchestrator != kind {
		err = ErrNotFound
	}
	if err != nil {
		return Operation{}, fmt.Errorf("get operation %s: %w", id, err)
	}
	op, err := o.read(ctx, kind, s)
	if err != nil {
		return Operation{}, fmt.Errorf("get operation %s: %w", id, err)
	}
	return op, nil
}

// read converts the status row of an orchestration to an operation.
func (o *Operations) read(ctx context.Context, kind string, s orchestrator.Summary) (op Operation, err error) {
	op = Operation{ID: s.ID, Kind: kind, CorrelationID: s.CorrelationID, Status: s.Status, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, EndedAt: s.EndedAt}
	op.Request, op.Progress, err = o.asked(ctx, s)
	return op, err
}

// Is reports whether an orchestration is an operation.
func Is(out orchestrator.Outcome) bool {
	kind, ok := kindOf(out.ID)
	return ok && kind == out.Orchestrator
}

// kinds returns the names of all kinds.
func kinds() []string { return []string{OutboxKind, DeadLetterKind, OrchestrationKind} }

// kindOf returns the kind of an operation with this id; ok is false for any other id.
func kindOf(id string) (kind string, ok bool) {
	for _, kind := range kinds() {
		if rest, ok := strings.CutPrefix(id, kind+"-"); ok && uuid.Validate(rest) == nil {
			return kind, true
		}
	}
	return "", false
}

// asked reads the custom status, or the input if it is not set yet. If neither has the form of an operation, it is
// damaged.
func (o *Operations) asked(ctx context.Context, s orchestrator.Summary) (Request, Progress, error) {
	if s.CustomStatus != "" {
		var status shown
		err := decode(s.CustomStatus, &status)
		return status.Request, status.Progress, err
	}
	out, err := o.runtime.Get(ctx, s.ID)
	var input state
	if err == nil {
		err = decode(string(out.Input), &input)
	}
	return input.Request.Summary(), input.Progress, err
}

func decode(text string, out any) error {
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return fmt.Errorf("%w: what it was asked for: %w", orchestrator.ErrCorrupt, err)
	}
	return nil
}

// Cancel cancels an operation, also a paused one: it ends after the current step of its slice. The errors are
// ErrNotFound, ErrEnded and those of the runtime.
func (o *Operations) Cancel(ctx context.Context, id, reason string) (Operation, error) {
	return o.command(ctx, "cancel", id, func() error { return o.runtime.Cancel(ctx, id, reason) })
}

// Pause keeps an operation from beginning another slice until Resume. It finishes the current slice first, and counts
// it when it continues. The errors are those of Cancel.
func (o *Operations) Pause(ctx context.Context, id, reason string) (Operation, error) {
	return o.command(ctx, "pause", id, func() error { return o.runtime.Suspend(ctx, id, reason) })
}

// Resume continues a paused operation. The errors are those of Cancel.
func (o *Operations) Resume(ctx context.Context, id, reason string) (Operation, error) {
	return o.command(ctx, "resume", id, func() error { return o.runtime.Resume(ctx, id, reason) })
}

// command sends a command to an operation that has not ended.
func (o *Operations) command(ctx context.Context, name, id string, send func() error) (Operation, error) {
	op, err := o.Get(ctx, id)
	if err != nil {
		return Operation{}, err
	}
	if op.Ended() {
		return Operation{}, fmt.Errorf("%s operation %s: %w", name, id, ErrEnded)
	}
	if err := send(); err != nil {
		return Operation{}, fmt.Errorf("%s operation %s: %w", name, id, err)
	}
	return op, nil
}
