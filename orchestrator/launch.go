package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Reuse says what Runtime.Start does with an id that is taken.
type Reuse int

// The policies. In each, a start with the orchestrator, correlation id and RequestID that the orchestration began with is
// that start repeated: it changes nothing.
const (
	// ReuseNever refuses an id that is another orchestration's with ErrExists.
	ReuseNever Reuse = iota
	// ReuseEnded starts an orchestration anew that has ended, as its next execution, and refuses one that has not with
	// ErrActive.
	ReuseEnded
	// ReuseAny is ReuseEnded, but terminates one that has not ended.
	ReuseAny
)

// Start starts an orchestration and returns when that is durable; it is taken up through the signal queue. The Outcome
// is what has the id then. The errors are ErrUnknownOrchestrator, ErrExists, ErrActive, ErrNoSignals, or what storage
// said: repeat it then, with the same RequestID.
func (r *Runtime) Start(ctx context.Context, s Start) (Outcome, error) {
	if _, err := r.startable(s); err != nil {
		return Outcome{}, err
	}
	if r.config.Queues == nil {
		return Outcome{}, fmt.Errorf("start of orchestration %s: %w", s.ID, ErrNoSignals)
	}
	return r.change(ctx, s.ID, func(all []generation) (*beginning, error) {
		if len(all) == 0 {
			return &beginning{start: s, number: 1, event: event{Base: 1, First: 1, Payload: s.Input, Signal: s.RequestID}}, nil
		}
		return r.reuse(ctx, s, all)
	})
}

// beginning is the first round of an execution that is to be.
type beginning struct {
	start  Start
	number int
	event  event
}

// errStopped: what was found has been terminated, so that it has more rounds now.
var errStopped = errors.New("the orchestration was terminated")

// change begins the next execution of an orchestration, as decide wants it, and wakes it. decide is asked again when
// somebody else was first. nil from it changes nothing.
func (r *Runtime) change(ctx context.Context, id string, decide func([]generation) (*beginning, error)) (Outcome, error) {
	for try := 0; ; try++ {
		all, etag, err := r.journal.loadTagged(ctx, id)
		if err != nil {
			r.met(ctx, err)
			return Outcome{}, err
		}
		if len(all) == 0 {
			if err := r.purgeRest(ctx, id); err != nil {
				return Outcome{}, err
			}
		}
		b, err := decide(all)
		if err == nil && b != nil {
			err = r.hold(ctx, *b, all, etag)
		}
		switch {
		case errors.Is(err, errLostRace) && try < conflictTries:
			r.tally(func(c *Counts) { c.Conflicts++ })
			continue
		case errors.Is(err, errStopped):
			continue
		case err != nil:
			return Outcome{}, lost(err)
		}
		out, err := r.Get(ctx, id)
		if err != nil || out.Status != Pending {
			return out, err
		}
		// Should the signal be lost, the sweeper finds the orchestration.
		now := r.config.Now()
		if err := r.remember(ctx, parking{id: id, due: now, since: now}); err != nil {
			return out, err
		}
		return out, r.send(ctx, Signal{SignalID: uuid.NewString(), InstanceID: id, Type: InternalContinue}, 0)
	}
}

// hold commits the first round of an execution without its first turn, which is run by who takes it up.
func (r *Runtime) hold(ctx context.Context, b beginning, all []generation, etag string) error {
	d := newDriver(r, b.start, r.orchestrators[b.start.Orchestrator])
	if d.orchestrator == nil {
		return fmt.Errorf("orchestration %s: %q: %w", b.start.ID, b.start.Orchestrator, ErrUnknownOrchestrator)
	}
	d.crew = newCrew(ctx, r, b.start)
	defer d.crew.dismiss()
	if d.etag = etag; len(all) > 0 {
		if err := r.payLast(ctx, b.start.ID, all, (*driver).emit); err != nil {
			return err
		}
		d.survey(all)
		first, _ := all[0].start()
		d.createdAt = createdOf(first)
		latest := all[len(all)-1]
		d.earlier = append(d.earlier, summarize(b.start.ID, latest))
		d.memo = b.event.inherit(b.start.ID, latest)
	}
	b.event.Held = true
	defer func() { d.execution.close() }()
	return d.begin(ctx, b.number, b.event)
}

// reuse decides what a start does to an orchestration that has its id.
func (r *Runtime) reuse(ctx context.Context, s Start, all []generation) (*beginning, error) {
	latest, started := latestOf(all)
	for _, g := range all {
		e, _ := g.start()
		if e.Name == s.Orchestrator && e.CorrelationID == s.CorrelationID && e.Signal == s.RequestID && (s.RequestID != "" || s.Reuse == ReuseNever) {
			return nil, nil
		}
	}
	active := latest.active()
	switch {
	case s.Reuse == ReuseNever:
		return nil, fmt.Errorf("orchestration %s was started by %s for correlation id %s: %w", s.ID, started.Name, started.CorrelationID, ErrExists)
	case active && s.Reuse == ReuseEnded:
		return nil, fmt.Errorf("orchestration %s: %w", s.ID, ErrActive)
	case active:
		reason := "another orchestration was started under its id"
		if err := r.amend(ctx, s.ID, latest, event{Kind: executionTerminated, Reason: reason}); err != nil {
			return nil, err
		}
		return nil, errStopped
	}
	return anew(s, latest, s.RequestID), nil
}

// anew is the beginning of an execution that inherits nothing but which signals were applied: one of them may come again.
func anew(s Start, latest generation, requestID string) *beginning {
	number := latest.number + 1
	e := event{Base: number, First: number, Payload: s.Input, Signal: requestID}
	e.Inherited = e.Inherited.with(latest.memory(), latest.last())
	return &beginning{start: s, number: number, event: e}
}

// requested says that an execution began with the request.
func requested(all []generation, requestID string) bool {
	return requestID != "" && slices.ContainsFunc(all, func(g generation) bool {
		started, _ := g.start()
		return started.Signal == requestID
	})
}

// Rewind makes another attempt at an orchestration that failed, which keeps the results that the rule for attempts says
// (see the package comment); so do the sub-orchestrations that it calls again. requestID makes it the same when it is
// repeated. ErrActive and ErrEnded say that it has not failed.
func (r *Runtime) Rewind(ctx context.Context, id, requestID string) (Outcome, error) {
	return r.afterEnd(ctx, id, requestID, func(all []generation) (*beginning, error) {
		latest, started := latestOf(all)
		if latest.end().Kind != executionFailed {
			return nil, fmt.Errorf("orchestration %s has not failed: %w", id, ErrEnded)
		}
		e := again(latest, started)
		e.Signal = requestID
		return &beginning{start: startedAs(id, started), number: latest.number + 1, event: e}, nil
	})
}

// Restart starts an orchestration that has ended over, with the input that it was started with. requestID makes it the
// same when it is repeated. ErrActive says that it has not ended.
func (r *Runtime) Restart(ctx context.Context, id, requestID string) (Outcome, error) {
	return r.afterEnd(ctx, id, requestID, func(all []generation) (*beginning, error) {
		latest, started := latestOf(all)
		s := startedAs(id, started)
		for _, g := range all {
			if first, _ := g.start(); g.number == max(started.First, 1) {
				s.Input = first.Payload
			}
		}
		return anew(s, latest, requestID), nil
	})
}

// afterEnd begins another execution of an orchestration that has ended, once for each requestID.
func (r *Runtime) afterEnd(ctx context.Context, id, requestID string, next func([]generation) (*beginning, error)) (Outcome, error) {
	return r.change(ctx, id, func(all []generation) (*beginning, error) {
		if len(all) == 0 {
			return nil, fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
		}
		latest, _ := latestOf(all)
		switch {
		case requested(all, requestID):
			return nil, nil
		case latest.active():
			return nil, fmt.Errorf("orchestration %s: %w", id, ErrActive)
		}
		return next(all)
	})
}

// startedAs is the Start that an execution began with.
func startedAs(id string, started event) Start {
	return Start{ID: id, Orchestrator: started.Name, Input: started.Payload, CorrelationID: started.CorrelationID, Carry: started.Carry,
		Timeout: time.Duration(started.Timeout) * time.Microsecond, Parent: started.Parent, Reference: started.Reference,
		WillRetry: started.WillRetry, call: started.Call, errors: started.Errors}
}

// latestOf is the latest execution and its start.
func latestOf(all []generation) (generation, event) {
	latest := all[len(all)-1]
	started, _ := latest.start()
	return latest, started
}
