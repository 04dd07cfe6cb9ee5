package faults

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vibedata/roundhouse/tables"
)

// ErrCrashed is what every call answers once the process that makes it is "dead".
var ErrCrashed = errors.New("this process has crashed")

// Fault is what happens at one call.
type Fault int

// The faults that a Plan can inject.
const (
	None        Fault = iota
	CrashBefore       // the process dies before the call reaches storage
	CrashAfter        // it dies after storage has carried the call out
	Unknown           // storage does not carry the call out, and the caller cannot know
	Applied           // storage carries the call out, and the caller cannot know
	Throttled         // storage refuses the call
)

// Faults lists everything that can be injected.
func Faults() []Fault { return []Fault{CrashBefore, CrashAfter, Unknown, Applied, Throttled} }

// String names the fault in test names.
func (f Fault) String() string {
	switch f {
	case None:
		return "none"
	case CrashBefore:
		return "crash-before"
	case CrashAfter:
		return "crash-after"
	case Unknown:
		return "unknown-not-applied"
	case Applied:
		return "unknown-applied"
	case Throttled:
		return "throttled"
	}
	return fmt.Sprintf("fault-%d", int(f))
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
}

// Calls returns the calls so far, those that failed included.
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

// Intercept is the Interceptor of the plan.
func (p *Plan) Intercept(c Call, next func() error) error {
	switch p.next(c) {
	case CrashBefore:
		return p.crash()
	case CrashAfter:
		if err := next(); err != nil {
			return err
		}
		return p.crash()
	case Unknown:
		return tables.ErrOutcomeUnknown
	case Applied:
		if err := next(); err != nil {
			return err
		}
		return tables.ErrOutcomeUnknown
	case Throttled:
		return tables.ErrThrottled
	case None:
	}
	return next()
}

func (p *Plan) next(c Call) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crashed {
		return CrashBefore
	}
	p.calls = append(p.calls, c)
	if len(p.calls) == p.At {
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
