package orchestrator

import (
	"context"
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

// learn takes an event in, now.
func (d *driver) learn(e event) error {
	e.At = d.execution.tick()
	if len(d.learned) == 0 {
		d.linger = d.rt.config.Now().Add(d.rt.config.Linger)
	}
	d.learned = append(d.learned, e)
	return d.execution.apply(e)
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
