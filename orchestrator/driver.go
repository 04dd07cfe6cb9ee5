package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// driver takes one orchestration from where its rounds end as far as it can go. There is at most one for an
// orchestration in a process; all its fields but finished belong to the goroutine that runs it, until finished closes.
type driver struct {
	rt           *Runtime
	start        Start
	orchestrator AnyOrchestrator
	crew         *crew

	execution *execution
	rounds    []round // of this execution, committed
	version   int     // rounds of all executions
	committed int     // rounds that this driver has added
	createdAt time.Time
	earlier   []Outcome
	memo      memo
	reused    int // calls of this execution that the memo has seen

	inbox     []*delivery   // guarded by rt.mu
	mail      chan struct{} // says that the inbox is not empty
	unsettled []*delivery   // read, not committed

	learned []event   // applied, not committed
	linger  time.Time // when they have to be

	finished chan struct{}
	outcome  Outcome
	err      error
}

func newDriver(r *Runtime, s Start, o AnyOrchestrator) *driver {
	return &driver{rt: r, start: s, orchestrator: o, finished: make(chan struct{}), mail: make(chan struct{}, 1)}
}

// run leaves outcome and err behind. It runs on a goroutine of its own, because user code may end it with Goexit.
func (d *driver) run(ctx context.Context) {
	d.err = fmt.Errorf("orchestration %s: the orchestrator called runtime.Goexit", d.start.ID)
	d.crew = newCrew(ctx, d.rt, d.start)
	defer d.crew.dismiss()
	defer func() {
		if d.execution != nil {
			d.execution.close()
		}
	}()
	d.outcome, d.err = d.drive(ctx)
}

func (d *driver) drive(ctx context.Context) (Outcome, error) {
	if err := d.open(ctx); err != nil {
		return Outcome{}, lost(err)
	}
	for {
		if next := d.continuation(); next != nil {
			if err := d.begin(ctx, d.execution.number+1, d.execution.number+1, next.Payload, next.Inherited); err != nil {
				return Outcome{}, lost(err)
			}
		}
		if err := d.read(); err != nil {
			return Outcome{}, err
		}
		if err := d.reuse(); err != nil {
			return Outcome{}, err
		}
		if d.mustCommit() {
			if err := d.commit(ctx); err != nil {
				return Outcome{}, lost(err)
			}
		}
		if d.ended() {
			return d.summary(), nil
		}
		if ctx.Err() != nil {
			return d.park(ctx, d.rt.config.Now())
		}
		if d.continuation() != nil {
			continue
		}
		if d.overdue() {
			if err := d.learn(event{Kind: executionTimedOut}); err != nil {
				return Outcome{}, err
			}
			continue
		}
		fired, next := d.crew.dispatch()
		if d.crew.idleUntil(ctx, next) && len(fired) == 0 {
			return d.park(ctx, next)
		}
		if err := d.proceed(ctx, fired, next); err != nil {
			return Outcome{}, err
		}
	}
}

// overdue says that the execution's time is over.
func (d *driver) overdue() bool {
	deadline := d.execution.deadline
	return deadline != 0 && d.rt.config.Now().UnixMicro() >= deadline
}

// proceed learns what is there, or waits for it.
func (d *driver) proceed(ctx context.Context, fired []*task, next time.Time) error {
	if len(fired) == 0 {
		return d.listen(ctx, next)
	}
	for _, t := range fired {
		at, err := marshal(fromMicros(t.due))
		if err != nil {
			return err
		}
		if err := d.learn(event{Kind: timerFired, Task: t.number, Payload: at}); err != nil {
			return err
		}
	}
	return nil
}

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

// learn takes an event in, now.
func (d *driver) learn(e event) error {
	e.At = d.execution.tick()
	if len(d.learned) == 0 {
		d.linger = d.rt.config.Now().Add(d.rt.config.Linger)
	}
	d.learned = append(d.learned, e)
	return d.execution.apply(e)
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

// mustCommit says whether what was learned can wait for company.
func (d *driver) mustCommit() bool {
	if len(d.execution.decided) > 0 || len(d.unsettled) > 0 {
		return true
	}
	return len(d.learned) > 0 &&
		(len(d.learned) >= d.rt.config.LingerResults || !d.rt.config.Now().Before(d.linger))
}

// commit makes what was learned and decided durable. Only then may it have effects.
func (d *driver) commit(ctx context.Context) error {
	r := round{Learned: d.learned, Decided: d.execution.decided}
	err := d.rt.journal.commit(ctx, d.start.ID, d.execution.number, len(d.rounds)+1, r, d.status(d.rt.config.Now()))
	if errors.Is(err, tables.ErrTooLarge) && len(r.Decided) > 1 {
		return d.commitOversize(ctx, err)
	}
	if err != nil {
		return err
	}
	d.settle(r)
	return nil
}

// settle takes note that a round is durable.
func (d *driver) settle(r round) {
	d.rounds = append(d.rounds, r)
	d.version++
	d.committed++
	d.learned, d.execution.decided = nil, nil
	d.acknowledge()
}

// commitOversize ends an execution whose turn decided more than a round can hold: trying again cannot help.
func (d *driver) commitOversize(ctx context.Context, cause error) error {
	x := d.execution
	x.close()
	x.decided = nil
	x.end(event{Kind: executionFailed, Failure: failureOf(Permanent(fmt.Errorf(
		"the turn after %s decided more than a round holds, call less at once: %w", d.learned[len(d.learned)-1].Kind, cause)))})
	r := round{Learned: d.learned, Decided: x.decided}
	if err := d.rt.journal.commit(ctx, d.start.ID, x.number, len(d.rounds)+1, r, d.status(d.rt.config.Now())); err != nil {
		return err
	}
	d.settle(r)
	return nil
}

// lost tells a caller that another process has the orchestration.
func lost(err error) error {
	if errors.Is(err, errLostRace) {
		return fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	return err
}

// listen waits for results until next, or until what was learned has lingered long enough, and takes in all there are.
func (d *driver) listen(ctx context.Context, next time.Time) error {
	wake := next
	if len(d.learned) > 0 && (wake.IsZero() || d.linger.Before(wake)) {
		wake = d.linger
	}
	var timer <-chan time.Time
	if !wake.IsZero() {
		t := time.NewTimer(wake.Sub(d.rt.config.Now()))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return nil
	case <-timer:
		return nil
	case <-d.mail:
		return nil
	case r := <-d.crew.results:
		if err := d.take(r); err != nil {
			return err
		}
	}
	for len(d.learned) < d.rt.config.LingerResults {
		select {
		case r := <-d.crew.results:
			if err := d.take(r); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// take learns how an attempt ended.
func (d *driver) take(r result) error {
	t := r.task
	d.crew.back(r)
	if r.interrupted || r.parked {
		return nil
	}
	if r.broken {
		return r.err
	}
	if r.err == nil {
		return d.learn(event{Kind: t.kind.completion(), Task: t.number, Payload: r.output})
	}
	failure, attempt := failureOf(r.err), t.attempts+1
	t.options.keep(failure, r.err)
	due, again := t.retryAt(failure, attempt, d.rt.config.Now(), d.crew.info(t).IdempotencyKey())
	if !again {
		return d.learn(event{Kind: t.kind.failure(), Task: t.number, Attempt: attempt, Failure: failure})
	}
	return d.learn(event{Kind: attemptFailed, Task: t.number, Attempt: attempt, Failure: failure, Due: due.UnixMicro()})
}

// park leaves the orchestration to a later Run: its time is over, or what it waits for is too far away.
func (d *driver) park(ctx context.Context, resumeAt time.Time) (Outcome, error) {
	for r := range d.crew.recall() {
		if err := d.take(r); err != nil {
			return Outcome{}, err
		}
	}
	if len(d.learned) > 0 || len(d.execution.decided) > 0 {
		if err := d.commit(ctx); err != nil {
			return Outcome{}, lost(err)
		}
	}
	out := d.summary()
	if out.Ended() {
		return out, nil
	}
	out.ResumeAt = resumeAt
	out.Woken = d.rt.config.Queues != nil && (resumeAt.IsZero() || resumeAt.After(d.rt.config.Now()))
	if !out.Woken || (d.start.Parent != "" && !d.start.deliver) {
		return out, nil // who called it sees to it
	}
	return out, d.wake(ctx, resumeAt)
}

func (d *driver) summary() Outcome {
	out := summarize(d.start.ID, generation{number: d.execution.number, rounds: d.rounds})
	out.Earlier, out.Rounds = d.earlier, d.committed
	return out
}
