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
	// ErrNotFound: there is no such operation.
	ErrNotFound = errors.New("no such operation")
	// ErrEnded: the operation has ended and cannot be canceled, paused or resumed any more.
	ErrEnded = errors.New("the operation has ended")
	// ErrKeyReused: the idempotency key belongs to an operation that was asked for something else.
	ErrKeyReused = errors.New("the idempotency key belongs to another request")
)

// Operation is an operation as its caller sees it.
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

// Ended reports whether the operation has ended, well or not.
func (o Operation) Ended() bool { return !o.EndedAt.IsZero() }

// Operations starts operations and tells of them, on a runtime that has the Orchestrators and the Activities. It is safe
// for concurrent use.
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

// Start starts an operation of a kind, OutboxKind, DeadLetterKind or OrchestrationKind; when it returns without error, the
// operation is durable. Without Request.To, what is added from now on is not meant. A key that is not "" makes it the same operation when the request is repeated,
// with ErrKeyReused for another request; without one, each Start is an operation. The other errors are those of
// Runtime.Start and Get.
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
	// It may be the operation of an earlier request with the same key, whether the runtime said so or took it for that
	// start repeated.
	op, err := o.Get(ctx, id)
	if err == nil && !asked.sameAs(op.Request) {
		err = fmt.Errorf("start operation %s: %w", id, ErrKeyReused)
	}
	return op, err
}

// Get tells of an operation, for one transaction, or two until its first slice is recorded. The errors are ErrNotFound and
// those of the runtime.
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

// read makes an operation of the status row of its orchestration.
func (o *Operations) read(ctx context.Context, kind string, s orchestrator.Summary) (op Operation, err error) {
	op = Operation{ID: s.ID, Kind: kind, CorrelationID: s.CorrelationID, Status: s.Status, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, EndedAt: s.EndedAt}
	op.Request, op.Progress, err = o.asked(ctx, s)
	return op, err
}

// Is says whether an orchestration is an operation.
func Is(out orchestrator.Outcome) bool {
	kind, ok := kindOf(out.ID)
	return ok && kind == out.Orchestrator
}

// kinds are the names of all kinds.
func kinds() []string { return []string{OutboxKind, DeadLetterKind, OrchestrationKind} }

// kindOf is the kind of an operation with this id; ok is false for the id of none.
func kindOf(id string) (kind string, ok bool) {
	for _, kind := range kinds() {
		if rest, ok := strings.CutPrefix(id, kind+"-"); ok && uuid.Validate(rest) == nil {
			return kind, true
		}
	}
	return "", false
}

// asked reads the custom status, and the input where there is none yet. What is neither as an operation has it is damaged.
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

// Cancel asks an operation to end after what its slice is doing, a paused one, too. The errors are ErrNotFound, ErrEnded and
// those of the runtime.
func (o *Operations) Cancel(ctx context.Context, id, reason string) (Operation, error) {
	return o.command(ctx, "cancel", id, func() error { return o.runtime.Cancel(ctx, id, reason) })
}

// Pause keeps an operation from beginning another slice until Resume. What its slice is doing it finishes first, and counts when it
// goes on. The errors are those of Cancel.
func (o *Operations) Pause(ctx context.Context, id, reason string) (Operation, error) {
	return o.command(ctx, "pause", id, func() error { return o.runtime.Suspend(ctx, id, reason) })
}

// Resume lets an operation go on that was paused. The errors are those of Cancel.
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
