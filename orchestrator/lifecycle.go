package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

// Reuse is the policy of Runtime.Start when the id is taken.
type Reuse int

// These are the policies. With each of them, a start with the orchestrator, correlation id, tenant, input and
// RequestID of the existing orchestration is the same start repeated, and changes nothing. If only the input differs,
// the error is ErrExists, provided that the start has a RequestID or the policy is ReuseNever.
const (
	// ReuseNever rejects the start with ErrExists.
	ReuseNever Reuse = iota
	// ReuseEnded starts the next execution of an orchestration that has ended, and rejects the start with ErrActive
	// otherwise.
	ReuseEnded
	// ReuseAny is like ReuseEnded, but terminates an orchestration that has not ended.
	ReuseAny
)

// Start starts an orchestration and returns when the start is durable; the signal queue then wakes a process that runs
// it. The Outcome is that of the orchestration that has the id then. The errors are ErrUnknownOrchestrator, ErrExists,
// ErrActive, ErrNoSignals, and those of storage; after one of storage, repeat the call with the same RequestID.
func (r *Runtime) Start(ctx context.Context, s Start) (Outcome, error) {
	if _, err := r.startable(s); err != nil {
		return Outcome{}, err
	}
	if r.config.Queues == nil {
		return Outcome{}, fmt.Errorf("start of orchestration %s: %w", s.ID, ErrNoSignals)
	}
	if s.Event != nil {
		return r.startWithEvent(ctx, s)
	}
	return r.startNext(ctx, s.ID, func(all []storedExecution) (*plannedExecution, error) {
		if len(all) == 0 {
			return firstExecution(s), nil
		}
		return r.applyReuse(ctx, s, all)
	})
}

// firstExecution plans the first execution of an orchestration.
func firstExecution(s Start) *plannedExecution {
	return &plannedExecution{start: s, number: 1, event: event{Start: &startDetails{Base: 1, First: 1}, Payload: s.Input, Signal: broughtBy(s.RequestID)}}
}

// plannedExecution is the start of an execution that is about to be committed.
type plannedExecution struct {
	start  Start
	number int
	event  event
}

// errTerminated: the existing orchestration has been terminated, so its rounds have to be loaded again.
var errTerminated = errors.New("the orchestration was terminated")

// startNext commits the start of the next execution that decide returns, and wakes the orchestration. decide is called
// again when another process committed first. If it returns nil, nothing changes.
func (r *Runtime) startNext(ctx context.Context, id string, decide func([]storedExecution) (*plannedExecution, error)) (Outcome, error) {
	for try := 0; ; try++ {
		all, status, err := r.journal.loadWith(ctx, id)
		if err != nil {
			r.noteDamage(ctx, err)
			return Outcome{}, err
		}
		if status.Row == purgeRow {
			if err := r.purgeRest(ctx, id); err != nil {
				return Outcome{}, err
			}
		}
		b, err := decide(all)
		if err == nil && b != nil {
			err = r.commitHeld(ctx, *b, all, status.ETag)
		}
		switch {
		case errors.Is(err, errLostRace) && try < conflictTries:
			r.count(func(c *Counts) { c.Conflicts++ })
			continue
		case errors.Is(err, nodes.ErrFenced) && try < conflictTries: // nothing was committed, and this process has another name now
			continue
		case errors.Is(err, errTerminated):
			continue
		case err != nil:
			return Outcome{}, asElsewhere(err)
		}
		out, err := r.Get(ctx, id)
		if err != nil || out.Status != Pending {
			return out, err
		}
		// The index entry lets the sweeper find the orchestration if the signal is lost.
		now := r.config.Now()
		if err := r.addParked(ctx, parkedEntry{id: id, due: now, since: now}); err != nil {
			return out, err
		}
		return out, r.sendOnce(ctx, Signal{SignalID: uuid.NewString(), InstanceID: id, Type: InternalContinue}, 0)
	}
}

// commitHeld commits the first round of an execution without running its first turn. The process that the signal wakes
// runs that turn.
func (r *Runtime) commitHeld(ctx context.Context, b plannedExecution, all []storedExecution, etag string) error {
	d := newDriver(r, b.start, r.orchestrators[b.start.Orchestrator])
	if d.orchestrator == nil {
		return fmt.Errorf("orchestration %s: %q: %w", b.start.ID, b.start.Orchestrator, ErrUnknownOrchestrator)
	}
	d.executor = newExecutor(ctx, r, b.start)
	defer d.executor.close()
	if d.requiredETag = etag; len(all) > 0 {
		if err := r.repeatLastEffects(ctx, b.start.ID, all, (*driver).emit); err != nil {
			return err
		}
		d.readEarlier(all)
		first, _ := all[0].start()
		d.createdAt = createdOf(first)
		latest := all[len(all)-1]
		d.earlier = append(d.earlier, summarize(b.start.ID, latest))
		d.prior = b.event.priorResults(b.start.ID, all)
	}
	held := b.event.start()
	held.Held = true
	b.event.Start = &held
	defer func() { d.execution.close() }()
	return d.begin(ctx, b.number, b.event)
}

// applyReuse applies the policy of a start under a taken id.
func (r *Runtime) applyReuse(ctx context.Context, s Start, all []storedExecution) (*plannedExecution, error) {
	latest, started := latestOf(all)
	otherInput := false
	for _, g := range all {
		e, _ := g.start()
		repeats := e.Name == s.Orchestrator && e.start().CorrelationID == s.CorrelationID && tenant.Sees(s.TenantID, e.start().Tenant)
		if end := g.end(); repeats && s.Once && s.Event == nil && (end == nil || end.Kind == executionCompleted) && s.checkSame(e.start().Carry) == nil {
			return nil, nil
		}
		if repeats && e.signal().ID == s.RequestID && (s.RequestID != "" || s.Reuse == ReuseNever) {
			if err := s.checkSame(e.start().Carry); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrExists, err)
			}
			if s.sameInput(g, all) {
				return nil, nil
			}
			otherInput = true
		}
	}
	active := latest.active()
	switch {
	case otherInput:
		return nil, fmt.Errorf("%w: orchestration %s was started with another input: %w: %w", ErrExists, s.ID, ErrOtherWork, ErrConflict)
	case s.Reuse == ReuseNever:
		return nil, fmt.Errorf("orchestration %s was started by %s for correlation id %s: %w", s.ID, started.Name, started.start().CorrelationID, ErrExists)
	case active && s.Reuse == ReuseEnded:
		return nil, fmt.Errorf("orchestration %s: %w", s.ID, ErrActive)
	case active:
		reason := "another orchestration was started under its id"
		if err := r.endWithoutCode(ctx, s.ID, latest, event{Kind: executionTerminated, Signal: &signalDetails{Reason: reason}}); err != nil {
			return nil, err
		}
		return nil, errTerminated
	}
	return freshExecution(s, latest, s.RequestID), nil
}

// sameInput reports whether the run to which an execution belongs was started with the input of s, as far as the
// rounds still hold it. If Same is set, it decides instead.
func (s Start) sameInput(g storedExecution, all []storedExecution) bool {
	started, _ := g.start()
	first := slices.IndexFunc(all, func(other storedExecution) bool { return other.number == max(started.start().First, 1) })
	if s.Same != nil || first < 0 {
		return true
	}
	e, _ := all[first].start()
	input := compact(s.Input)
	return bytes.Equal(e.Payload, input) || len(e.Payload) == 0 && blobHash(e.Blob) == hashOf(input)
}

// freshExecution plans an execution that inherits only the record of applied signals, because one of these may be
// redelivered.
func freshExecution(s Start, latest storedExecution, requestID string) *plannedExecution {
	number := latest.number + 1
	e := event{Start: &startDetails{Base: number, First: number}, Payload: s.Input, Signal: broughtBy(requestID)}
	e.Inherited = e.Inherited.with(latest.received(), latest.lastEventAt())
	return &plannedExecution{start: s, number: number, event: e}
}

// hasRequest reports whether this request started any of the executions.
func hasRequest(all []storedExecution, requestID string) bool {
	return requestID != "" && slices.ContainsFunc(all, func(g storedExecution) bool {
		started, _ := g.start()
		return started.signal().ID == requestID
	})
}

// Rewind makes another attempt at an orchestration that failed. The attempt keeps results by the rule for attempts
// (see the package comment), and so do the attempts of the sub-orchestrations that it calls again. With the same
// requestID, repeating the call changes nothing. ErrActive and ErrEnded mean that the orchestration has not failed.
func (r *Runtime) Rewind(ctx context.Context, id, requestID string) (Outcome, error) {
	return r.startAfterEnd(ctx, id, requestID, func(all []storedExecution) (*plannedExecution, error) {
		latest, started := latestOf(all)
		if latest.end().Kind != executionFailed {
			return nil, fmt.Errorf("orchestration %s has not failed: %w", id, ErrEnded)
		}
		e := nextAttempt(latest, started)
		e.Signal = broughtBy(requestID)
		return &plannedExecution{start: startFrom(id, started), number: latest.number + 1, event: e}, nil
	})
}

// Restart starts over an orchestration that has ended, with its original input. With the same requestID, repeating the
// call changes nothing. ErrActive means that it has not ended.
func (r *Runtime) Restart(ctx context.Context, id, requestID string) (Outcome, error) {
	return r.startAfterEnd(ctx, id, requestID, func(all []storedExecution) (*plannedExecution, error) {
		latest, started := latestOf(all)
		s := startFrom(id, started)
		for _, g := range all {
			if first, _ := g.start(); g.number == max(started.start().First, 1) {
				s.Input = first.Payload
			}
		}
		return freshExecution(s, latest, requestID), nil
	})
}

// startAfterEnd starts another execution of an orchestration that has ended, once for each requestID.
func (r *Runtime) startAfterEnd(ctx context.Context, id, requestID string, next func([]storedExecution) (*plannedExecution, error)) (Outcome, error) {
	return r.startNext(ctx, id, func(all []storedExecution) (*plannedExecution, error) {
		if len(all) == 0 {
			return nil, fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
		}
		latest, _ := latestOf(all)
		switch {
		case hasRequest(all, requestID):
			return nil, nil
		case latest.active():
			return nil, fmt.Errorf("orchestration %s: %w", id, ErrActive)
		}
		return next(all)
	})
}

// startFrom returns the Start with which an execution began.
func startFrom(id string, started event) Start {
	s := started.start()
	return Start{ID: id, Orchestrator: started.Name, Input: started.Payload, CorrelationID: s.CorrelationID, TenantID: s.Tenant, Carry: s.Carry,
		Timeout: time.Duration(s.Timeout) * time.Microsecond, Parent: s.Parent, Reference: s.Reference, Trace: s.Trace,
		WillRetry: s.WillRetry, call: s.Call, errors: s.Errors}
}

// latestOf returns the latest execution and its start.
func latestOf(all []storedExecution) (storedExecution, event) {
	latest := all[len(all)-1]
	started, _ := latest.start()
	return latest, started
}
