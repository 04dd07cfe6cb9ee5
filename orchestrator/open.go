package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// lastDecision is the last of the committed rounds of the execution; nil when they end without one.
func (d *driver) lastDecision() *event {
	return generation{rounds: d.rounds}.end()
}

func (d *driver) ended() bool {
	end := d.lastDecision()
	return end != nil && end.Kind != executionContinued
}

// continuation is the decision to continue as new, when it is committed and not carried out.
func (d *driver) continuation() *event {
	if end := d.lastDecision(); end != nil && end.Kind == executionContinued {
		return end
	}
	return nil
}

// open starts the orchestration, or finds out where it stands.
func (d *driver) open(ctx context.Context) error {
	if !d.start.Resume && !d.start.deliver {
		err := d.begin(ctx, 1, 1, d.start.Input, nil)
		if !errors.Is(err, errLostRace) {
			return err
		}
	}
	all, err := d.rt.journal.load(ctx, d.start.ID)
	if err != nil {
		return err
	}
	if len(all) == 0 && d.start.deliver {
		return fmt.Errorf("orchestration %s: %w", d.start.ID, ErrNotFound)
	}
	if len(all) == 0 {
		return d.begin(ctx, 1, 1, d.start.Input, nil)
	}
	return d.resume(ctx, all)
}

// begin makes the first round of an execution. Nothing outside has happened before it is committed.
func (d *driver) begin(ctx context.Context, number, base int, input json.RawMessage, inherited *inheritance) error {
	if number == base {
		d.earlier, d.memo = nil, nil // it begins anew, and inherits nothing
	}
	d.fresh(number, base)
	started := event{Kind: executionStarted, Name: d.orchestrator.Name(), Payload: input, CorrelationID: d.start.CorrelationID, Base: base,
		Parent: d.start.Parent, Carry: d.start.Carry, Timeout: d.start.Timeout.Microseconds(), Inherited: inherited}
	if err := d.learn(started); err != nil {
		return err
	}
	if number == 1 {
		d.createdAt = d.execution.clock
	}
	if err := d.reuse(); err != nil {
		return err
	}
	return d.commit(ctx)
}

// fresh replaces the execution in memory by an empty one.
func (d *driver) fresh(number, base int) {
	last := int64(0)
	if d.execution != nil {
		last = d.execution.last
		d.execution.close()
	}
	if n := len(d.earlier); n > 0 {
		last = max(last, d.earlier[n-1].EndedAt.UnixMicro())
	}
	d.execution = &execution{id: d.start.ID, number: number, base: base, correlationID: d.start.CorrelationID, last: last,
		orchestrator: d.orchestrator, log: d.rt.config.Log, now: d.rt.config.Now}
	d.crew.serve(d.execution)
	d.rounds, d.learned, d.reused = nil, nil, 0
}

// resume takes over what the rounds hold: it replays what runs, and starts the next execution of what failed.
func (d *driver) resume(ctx context.Context, all []generation) error {
	latest := all[len(all)-1]
	if err := d.identify(all[0], latest); err != nil {
		return err
	}
	started, ok := latest.start()
	if !ok {
		return fmt.Errorf("execution %d of orchestration %s does not begin with a start: %w", latest.number, d.start.ID, ErrCorrupt)
	}
	base := max(started.Base, 1)
	d.version = 0
	for _, g := range all {
		d.version += len(g.rounds)
		if g.number >= base && g.number < latest.number {
			d.earlier = append(d.earlier, summarize(d.start.ID, g))
		}
	}
	if end := latest.end(); end != nil && end.Kind == executionFailed {
		before := summarize(d.start.ID, latest)
		if d.start.deliver {
			d.fresh(latest.number, base) // a signal does not revive what has failed; a message does
			d.rounds, d.execution.ended = latest.rounds, true
			return nil
		}
		d.earlier = append(d.earlier, before)
		d.memo = newMemo(before)
		return d.begin(ctx, latest.number+1, base, started.Payload, latest.raised())
	}
	d.fresh(latest.number, base)
	d.rounds = latest.rounds
	if end := latest.end(); end != nil {
		d.execution.last, d.execution.ended, d.execution.continues = end.At, true, end.Kind == executionContinued
		return nil
	}
	if n := len(d.earlier); n > 0 {
		d.memo = newMemo(d.earlier[n-1])
	}
	for i, r := range latest.rounds {
		if err := d.execution.replay(i+1, r); err != nil {
			return err
		}
		d.forget(r)
	}
	return nil
}

// identify refuses an id that belongs to something else.
func (d *driver) identify(first, latest generation) error {
	started, ok := first.start()
	if !ok {
		return fmt.Errorf("orchestration %s does not begin with a start: %w", d.start.ID, ErrCorrupt)
	}
	if d.start.deliver {
		return d.adopt(started, latest)
	}
	if started.Name != d.orchestrator.Name() || started.CorrelationID != d.start.CorrelationID {
		return fmt.Errorf("orchestration %s was started by %s for correlation id %s: %w",
			d.start.ID, started.Name, started.CorrelationID, ErrConflict)
	}
	d.createdAt = fromMicros(started.At)
	return nil
}

// adopt makes the driver of a signal that of the orchestration that it found.
func (d *driver) adopt(first event, latest generation) error {
	started, _ := latest.start()
	d.orchestrator = d.rt.orchestrators[first.Name]
	if d.orchestrator == nil {
		return fmt.Errorf("orchestration %s: %q: %w", d.start.ID, first.Name, ErrUnknownOrchestrator)
	}
	d.start.Orchestrator, d.start.CorrelationID, d.start.Parent, d.start.Carry = first.Name, first.CorrelationID, started.Parent, started.Carry
	d.start.Timeout = time.Duration(started.Timeout) * time.Microsecond
	d.crew.start = d.start
	d.createdAt = fromMicros(first.At)
	return nil
}

// reuse answers calls that the execution before has made already. Each answer can lead to the next call.
func (d *driver) reuse() error {
	for ; d.reused < len(d.execution.tasks); d.reused++ {
		t := d.execution.tasks[d.reused]
		if t.done {
			continue
		}
		c, ok := d.memo.take(t)
		if !ok {
			continue
		}
		from := c.origin
		if err := d.learn(event{Kind: t.kind.completion(), Task: t.number, Payload: c.Output, Origin: &from}); err != nil {
			return err
		}
	}
	return nil
}

// forget takes what a replayed round has reused out of the memo.
func (d *driver) forget(r round) {
	for _, e := range r.Learned {
		if e.reused() {
			d.memo.take(d.execution.tasks[e.Task-1])
		}
	}
}
