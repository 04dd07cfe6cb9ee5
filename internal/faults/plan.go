package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// ErrCrashed is the answer to every call of a crashed process.
var ErrCrashed = errors.New("this process has crashed")

// Slowness is the duration of a Slow call: longer than any limit for a single call.
const Slowness = 45 * time.Second

// Fault is the fault of one call.
type Fault int

// The faults that a Plan can inject.
const (
	None        Fault = iota
	CrashBefore       // the process dies before the call reaches storage
	CrashAfter        // the process dies after storage has carried the call out
	Applied           // storage carries the call out, and the caller does not know
	Unknown           // storage does not carry the call out, and the caller does not know
	// Conflict: storage answers that the object exists already (409), and changes nothing. The answer to a call with a
	// message is that it does not exist (404).
	Conflict
	// Precondition: storage answers that the object has changed (412), and changes nothing. The answer to a call with a
	// message is that the pop receipt is invalid.
	Precondition
	Throttled // storage refuses the call (503)
	// Slow: storage carries the call out after Slowness. A caller whose context ends before that does not know the
	// outcome, and the call is carried out afterwards.
	Slow
)

// Faults returns all faults. Where storage cannot answer with Conflict or Precondition, it answers as if Throttled.
func Faults() []Fault {
	return []Fault{CrashBefore, CrashAfter, Applied, Unknown, Conflict, Precondition, Throttled, Slow}
}

// String returns the fault's name in test names.
func (f Fault) String() string {
	names := [...]string{None: "none", CrashBefore: "before", CrashAfter: "after", Applied: "applied-but-failed",
		Unknown: "unknown-not-applied", Conflict: "409", Precondition: "412", Throttled: "503", Slow: "slow"}
	if f < 0 || int(f) >= len(names) {
		return fmt.Sprintf("fault-%d", int(f))
	}
	return names[f]
}

// Refusal returns storage's answer to a call that it does not carry out: for an Apply, an Interceptor has to return it
// as it is. It returns nil for a fault that does not refuse.
func (f Fault) Refusal(c Call) error {
	held := c.Service == "queues" && (c.Operation == "Renew" || c.Operation == "Delete")
	applied := c.Service == "tables" && c.Operation == "Apply"
	switch {
	case f != Conflict && f != Precondition && f != Throttled:
		return nil
	case f == Conflict && applied:
		return tables.ErrExists
	case f == Precondition && applied:
		return tables.ErrPrecondition
	case f == Conflict && held:
		return queues.ErrNotFound
	case (f == Conflict || f == Precondition) && c.Operation == "PutIf":
		return tables.ErrPrecondition
	case f == Precondition && held:
		return queues.ErrPopReceipt
	default:
		return tables.ErrThrottled
	}
}

// Plan counts the calls of one simulated process and injects one Fault at call At (from 1; 0 is never). The zero value
// only counts. It is safe for concurrent use.
type Plan struct {
	At    int
	Fault Fault
	// Refuse selects the calls that are Throttled, regardless of At; nil selects none.
	Refuse func(Call) bool

	mu      sync.Mutex
	calls   []Call
	crashed bool
	late    sync.WaitGroup // Slow calls in progress
}

// Calls returns the calls so far, including failed calls, but without those of a crashed process.
func (p *Plan) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...)
}

// Crashed reports whether the process is dead.
func (p *Plan) Crashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// Done reports whether the fault has happened.
func (p *Plan) Done() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.At > 0 && len(p.calls) >= p.At
}

// Wait returns when storage has carried out all Slow calls. A test that injects Slow calls Wait before it checks the
// result.
func (p *Plan) Wait() { p.late.Wait() }

// Intercept is the Interceptor of the plan.
func (p *Plan) Intercept(ctx context.Context, c Call, next func(context.Context) error) error {
	fault := p.next(c)
	switch fault {
	case CrashBefore:
		return p.crash()
	case CrashAfter:
		if err := next(ctx); err != nil {
			return err
		}
		return p.crash()
	case Applied:
		if err := next(ctx); err != nil {
			return err
		}
		return tables.ErrOutcomeUnknown
	case Unknown:
		return tables.ErrOutcomeUnknown
	case Conflict, Precondition, Throttled:
		return fault.Refusal(c)
	case Slow:
		return p.slow(ctx, next)
	case None:
	}
	return next(ctx)
}

// slow passes the call to storage, which carries it out even without a waiting caller. Time is virtual: a plan with a
// Slow call belongs into a bubble of testing/synctest.
func (p *Plan) slow(ctx context.Context, next func(context.Context) error) error {
	answer := make(chan error, 1)
	p.late.Go(func() {
		<-time.After(Slowness)
		answer <- next(context.WithoutCancel(ctx))
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", tables.ErrOutcomeUnknown, ctx.Err())
	}
}

func (p *Plan) next(c Call) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crashed {
		return CrashBefore
	}
	p.calls = append(p.calls, c)
	if len(p.calls) == p.At {
		p.crashed = p.Fault == CrashBefore // concurrent calls that start after this one must not reach storage
		return p.Fault
	}
	if p.Refuse != nil && p.Refuse(c) {
		return Throttled
	}
	return None
}

func (p *Plan) crash() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crashed = true
	return ErrCrashed
}
