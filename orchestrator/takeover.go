package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// takeoverInline bounds the orchestrations of a lost node that the process that takes over drives itself. Signals
	// spread the others over all processes.
	takeoverInline = 64
	// takeoverSends bounds how many signals are sent at the same time.
	takeoverSends = 16
	// takeoverMargin allows for a clock that was set back. signalMargin also allows for a signal that another process
	// has delivered meanwhile, by a clock that may differ.
	takeoverMargin = 5 * time.Second
	signalMargin   = clockSkew + takeoverMargin
)

// Lost is a process that is gone, and the known part of its work.
type Lost struct {
	// Node is its name.
	Node string
	// Orchestrations are those that it had in progress at some time, and Since is that time by its own clock. TakeOver
	// finds the orchestrations that it has worked on since then.
	Orchestrations []string
	Since          time.Time
	// Begun is zero for the first takeover of the process. For a repeated one it is when the first began, by the clock
	// of the process that began it. Orchestrations that another process has continued since then are left to that
	// process.
	Begun time.Time
	// KeepEnds announces that the messages of orchestrations that have ended are redelivered soon, and trigger the
	// work that follows their ends.
	KeepEnds bool
}

// TakeOver continues the orchestrations that a lost process was responsible for. It calls begun with their number when
// all of them are running or have a signal, and returns when those that it drives itself have come to rest. The first
// round of each records the takeover, so that a late round of the lost process is rejected. A repeated takeover
// signals only the orchestrations that the first one has not reached.
func (r *Runtime) TakeOver(ctx context.Context, l Lost, begun func(orchestrations int)) error {
	if r.config.Queues == nil {
		return fmt.Errorf("take over from %s: %w", l.Node, ErrNoSignals)
	}
	ids, err := r.inHandOf(ctx, l)
	if err != nil {
		return fmt.Errorf("take over from %s: %w", l.Node, err)
	}
	mine := ids[:min(len(ids), takeoverInline)]
	var sends errgroup.Group
	sends.SetLimit(takeoverSends)
	for _, s := range ids[len(mine):] {
		sends.Go(func() error { return r.sendOnce(ctx, s, 0) })
	}
	if err := sends.Wait(); err != nil {
		return fmt.Errorf("take over from %s: %w", l.Node, err)
	}
	if _, err := r.sweep(ctx, sweepAtTakeover, takeoverMargin); err != nil { // the lost process's host had received messages of timers, too
		r.config.Log.WarnContext(ctx, "not all timers that are overdue were looked for", "error", err.Error())
	}
	return r.driveTaken(ctx, mine, func() { begun(len(ids)) })
}

// sweepAtTakeover bounds how many overdue timers a takeover wakes.
const sweepAtTakeover = 1000

// driveTaken delivers signals at the same time, and calls begun when each is applied, or was sent to other processes
// instead.
func (r *Runtime) driveTaken(ctx context.Context, signals []Signal, begun func()) error {
	var going taking
	for _, s := range signals {
		going.applied.Add(1)
		applied := sync.OnceFunc(going.applied.Done)
		s.RuntimeProvider, s.OccurredAtUtc = provider, r.config.Now().UTC()
		going.rested.Go(func() {
			defer applied()
			_, err := r.deliverAndTell(ctx, s, applied)
			switch {
			case err == nil, errors.Is(err, ErrNotFound):
				return
			case errors.Is(err, nodes.ErrFenced): // the process that takes over from this one finishes the takeover
			default:
				other := r.sendOnce(context.WithoutCancel(ctx), s, 0)
				if other == nil {
					return
				}
				err = errors.Join(err, other)
			}
			going.fail(fmt.Errorf("orchestration %s: %w", s.InstanceID, err))
		})
	}
	going.applied.Wait()
	if going.failed() == nil {
		begun()
	}
	going.rested.Wait()
	return going.failed()
}

// taking tracks the progress of the orchestrations that a process takes over.
type taking struct {
	applied, rested sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

func (t *taking) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, err)
}

func (t *taking) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.errs...)
}

// inHandOf returns the signals for the orchestrations that a lost process was responsible for; running ones come
// first.
func (r *Runtime) inHandOf(ctx context.Context, l Lost) ([]Signal, error) {
	var running, resting, ended []Signal
	known := map[string]bool{}
	for _, id := range l.Orchestrations {
		if validID(id) && !known[id] {
			known[id] = true
			running = append(running, l.signal(id, true))
		}
	}
	running, err := r.notContinued(ctx, l, running)
	if err != nil {
		return nil, err
	}
	scan := tables.Scan{Row: statusRow, Where: map[string]any{columnResponsible: l.Node}, NotBefore: map[string]time.Time{columnExecutedOn: l.Since.Add(-signalMargin)}}
	for {
		page, err := r.config.Tables.Scan(ctx, r.config.Table, scan)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Entities {
			s, err := summaryOf(e)
			switch {
			case err != nil:
				r.noteUnnamedDamage(ctx, e.Partition, err)
			case known[s.ID], l.KeepEnds && s.Status == Retrying:
			case !s.Ended() && s.Running:
				running = append(running, l.signal(s.ID, false))
			case !s.Ended():
				resting = append(resting, l.signal(s.ID, false))
			case !l.KeepEnds && !s.UpdatedAt.Before(l.Since.Add(-takeoverMargin)):
				ended = append(ended, l.signal(s.ID, false))
			}
		}
		if scan.Continuation = page.Next; page.Next == "" {
			return append(append(running, resting...), ended...), nil
		}
	}
}

// notContinued drops the signals of orchestrations that another process has continued since the first takeover began.
func (r *Runtime) notContinued(ctx context.Context, l Lost, signals []Signal) ([]Signal, error) {
	if l.Begun.IsZero() {
		return signals, nil
	}
	continued := make([]bool, len(signals))
	var reads errgroup.Group
	reads.SetLimit(takeoverSends)
	for i, s := range signals {
		reads.Go(func() error {
			row, err := r.config.Tables.Get(ctx, r.config.Table, tables.Key{Partition: tables.EscapeKey(s.InstanceID), Row: statusRow})
			if err != nil && !errors.Is(err, tables.ErrNotFound) {
				return fmt.Errorf("orchestration %s: %w", s.InstanceID, err)
			}
			responsible := row.String(columnResponsible)
			continued[i] = err == nil && responsible != "" && responsible != l.Node && row.Time(columnExecutedOn).After(l.Begun.Add(-clockSkew))
			return nil
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	var left []Signal
	for i, s := range signals {
		if !continued[i] {
			left = append(left, s)
		}
	}
	return left, nil
}

// signal returns the signal that makes a process continue an orchestration. held records that the lost process had it
// in progress when it was last seen.
func (l Lost) signal(id string, held bool) Signal {
	return Signal{SignalID: "takeover:" + l.Node + ":" + id, InstanceID: id, Type: InternalContinue, Payload: Payload{TakenFrom: l.Node, Held: held}}
}

// classifyTakeover classifies the signal of a takeover to an execution that has not ended. If another process is
// responsible by now, the signal is stale, unless the lost process had itself reported the orchestration as in
// progress. Then it may have taken the orchestration over without having committed a round.
func (d *driver) classifyTakeover(s Signal) signalClass {
	switch {
	case d.execution.received.contains(s.SignalID):
		return signalKnown
	case d.responsible != s.Payload.TakenFrom && !s.Payload.Held:
		return signalStale
	case d.codeless:
		return signalWakes
	default:
		return signalTakesOver
	}
}

// learnTakeover learns that this process is responsible now, and rechecks all open calls and tasks.
func (d *driver) learnTakeover(s Signal) error {
	d.executor.recheckAll()
	d.checkTasks = true
	return d.learn(event{Kind: executionTakenOver, Name: s.Payload.TakenFrom, Signal: &signalDetails{ID: s.SignalID, Reason: "in place of node " + s.Payload.TakenFrom + ", which is gone"}})
}
