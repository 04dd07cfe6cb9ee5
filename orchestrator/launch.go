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
	if err := s.validate(); err != nil {
		return Outcome{}, err
	}
	if r.orchestrators[s.Orchestrator] == nil {
		return Outcome{}, fmt.Errorf("orchestration %s: %q: %w", s.ID, s.Orchestrator, ErrUnknownOrchestrator)
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
		d.survey(all)
		first, _ := all[0].start()
		d.createdAt = createdOf(first)
		d.earlier = append(d.earlier, summarize(b.start.ID, all[len(all)-1])) // times go on from its end
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
		if err := r.stop(ctx, s.ID, latest); err != nil {
			return nil, err
		}
		return nil, errStopped
	}
	// Whoever terminated it may have died before it told the sub-orchestrations.
	if err := r.stopChildren(ctx, summarize(s.ID, latest)); err != nil {
		return nil, err
	}
	return anew(s, latest, s.RequestID), nil
}

// anew is the beginning of an execution that inherits nothing but which signals were applied: one of them may come again.
func anew(s Start, latest generation, requestID string) *beginning {
	number := latest.number + 1
	e := event{Base: number, First: number, Payload: s.Input, Signal: requestID}
	if signals := latest.signals(); len(signals) > 0 {
		e.Inherited = &inheritance{Signals: signals[max(0, len(signals)-rememberedSignals):]}
	}
	return &beginning{start: s, number: number, event: e}
}

// requested says that an execution began with the request.
func requested(all []generation, requestID string) bool {
	return requestID != "" && slices.ContainsFunc(all, func(g generation) bool {
		started, _ := g.start()
		return started.Signal == requestID
	})
}

// stop terminates an execution here and now: that runs no code. Whoever drives it finds out at its next commit.
func (r *Runtime) stop(ctx context.Context, id string, latest generation) error {
	d := newDriver(r, Start{ID: id, deliver: true}, nil)
	d.crew = newCrew(ctx, r, d.start)
	defer d.crew.dismiss()
	all, err := r.loadKnown(ctx, id)
	if err != nil {
		return err
	}
	if err := d.identify(all); err != nil {
		return err
	}
	if err := d.follow(all); err != nil {
		return err
	}
	defer func() { d.execution.close() }()
	if d.execution.ended || d.execution.number != latest.number {
		return nil
	}
	if err := d.pay(ctx); err != nil {
		return err
	}
	if err := d.learn(event{Kind: executionTerminated, Reason: "another orchestration was started under its id"}); err != nil {
		return err
	}
	return d.commitRound(ctx)
}

// Rewind lets an orchestration that failed go on as its next execution: calls that completed keep their results, the
// others run again; sub-orchestrations that failed go on the same way. requestID makes it the same when it is repeated.
// ErrActive and ErrEnded say that it has not failed.
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
		Timeout: time.Duration(started.Timeout) * time.Microsecond, Parent: started.Parent, Reference: started.Reference}
}

// latestOf is the latest execution and its start.
func latestOf(all []generation) (generation, event) {
	latest := all[len(all)-1]
	started, _ := latest.start()
	return latest, started
}
