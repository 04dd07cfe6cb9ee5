package handler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/handler/poison"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	// sweeperJob is the lock of the one active sweeper among all instances and slots that share a storage account.
	sweeperJob = "sweeper"
	// sweeperLease is the wait after a sweeper dies.
	sweeperLease = time.Minute
	// sweepLimit bounds the orchestrations that one run wakes: more than an invocation has time for, so that after a
	// queue was cleared the time bounds a run.
	sweepLimit = 25_000
	// poisonTime bounds the work of a run on messages of poison queues. A message that takes longer is requeued.
	poisonTime = 2 * time.Minute
)

// sweeper is the timer function for lost work: it wakes orchestrations whose messages are lost, handles the poison
// queues, repairs a slice of the list of orchestrations, and checks whether a host listens to the queues.
type sweeper struct {
	runtime *orchestrator.Runtime
	list    *catalog.Catalog  // nil for none
	probe   *queueprobe.Probe // nil for none
	node    *nodes.Node       // nil for none
	poison  *poison.Receiver  // nil for none
	locks   hostlock.Locks
	log     *slog.Logger
}

// takePoison handles the messages of the poison queues, for a limited time: the invocation has more work.
func (s sweeper) takePoison(ctx context.Context) (taken int, err error) {
	ctx, cancel := context.WithTimeout(ctx, poisonTime)
	defer cancel()
	return s.poison.Receive(ctx)
}

// handle runs when the timer is due, late or not: its work depends on the clock and not on the occurrence. While
// another sweeper is running, it does nothing.
func (s sweeper) handle(ctx context.Context, _ trigger.TimerDelivery) error {
	woken, mended, taken := 0, 0, 0
	err := s.locks.Do(ctx, sweeperJob, sweeperLease, func(ctx context.Context) (err error) {
		if s.probe != nil { // first: a sweep may take all the available time
			err = s.probe.Look(ctx)
		}
		if s.node != nil {
			err = errors.Join(err, s.node.Sweep(ctx))
		}
		if s.poison != nil {
			var stays error
			taken, stays = s.takePoison(ctx)
			err = errors.Join(err, stays)
		}
		var lost error
		woken, lost = s.runtime.Sweep(ctx, sweepLimit)
		err = errors.Join(err, lost)
		if s.list == nil || ctx.Err() != nil {
			return err
		}
		var broken error // a failure of one does not stop the other
		mended, broken = s.list.Repair(ctx)
		return errors.Join(err, broken)
	})
	if errors.Is(err, hostlock.ErrHeld) {
		s.log.DebugContext(ctx, "sweep left to another", "error", err.Error())
		return nil
	}
	s.log.Log(ctx, levelFor(woken+mended+taken > 0 || err != nil), "sweep", "woken", woken, "mended", mended, "poison", taken, "complete", err == nil)
	return err
}
