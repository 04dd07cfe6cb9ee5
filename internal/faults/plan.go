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

// ErrCrashed is what every call answers once the process that makes it is "dead".
var ErrCrashed = errors.New("this process has crashed")

// Slowness is how long a Slow call takes: longer than anyone waits who has a limit for a single call.
const Slowness = 45 * time.Second

// Fault is what happens at one call.
type Fault int

// The faults that a Plan can inject.
const (
	None        Fault = iota
	CrashBefore       // the process dies before the call reaches storage
	CrashAfter        // it dies after storage has carried the call out
	Applied           // storage carries the call out, and the caller cannot know
	Unknown           // storage does not carry the call out, and the caller cannot know
	// Conflict: storage answers that there is such a thing already (409), and changes nothing. To a call that holds a
	// message it answers that there is no such message (404).
	Conflict
	// Precondition: storage answers that the thing has changed (412), and changes nothing. To a call that holds a message
	// it answers that the pop receipt is void.
	Precondition
	Throttled // storage refuses the call (503)
	// Slow: storage carries the call out, after Slowness. A caller whose context ends before that cannot know, and the
	// call is carried out behind its back.
	Slow
)

// Faults lists everything that can be injected. Where storage cannot answer with Conflict or Precondition, it answers as
// if Throttled.
func Faults() []Fault {
	return []Fault{CrashBefore, CrashAfter, Applied, Unknown, Conflict, Precondition, Throttled, Slow}
}

// String names the fault in test names.
func (f Fault) String() string {
	names := [...]string{None: "none", CrashBefore: "before", CrashAfter: "after", Applied: "applied-but-failed",
		Unknown: "unknown-not-applied", Conflict: "409", Precondition: "412", Throttled: "503", Slow: "slow"}
	if f < 0 || int(f) >= len(names) {
		return fmt.Sprintf("fault-%d", int(f))
	}
	return names[f]
}

// Refusal is what storage answers to a call that it does not carry out: to an Apply, an Interceptor has to return it
// as it is. A fault that is no refusal gives nil.
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
	// Refuse says which calls are Throttled, whatever their number; nil: none.
	Refuse func(Call) bool

	mu      sync.Mutex
	calls   []Call
	crashed bool
	late    sync.WaitGroup // Slow calls that storage has not carried out
}

// Calls returns the calls so far, including failed calls, but not the calls of a process that had crashed.
func (p *Plan) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...)
}

// Crashed says whether the process is dead.
func (p *Plan) Crashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// Done says whether the fault has happened.
func (p *Plan) Done() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.At > 0 && len(p.calls) >= p.At
}

// Wait returns when storage has carried out what was Slow. A test that injects Slow calls it before it looks at the end.
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

// slow hands the call to a storage that does not know whether anyone still waits. Time is virtual: a plan with a Slow
// call belongs into a bubble of testing/synctest.
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
		p.crashed = p.Fault == CrashBefore // concurrent calls that begin after this one must not reach storage
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
