package orchestrator

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errHandedOver ends the driving of a goroutine after another one has taken over its driver.
var errHandedOver = errors.New("another goroutine drives the orchestration")

// holder records which goroutine runs a driver, and whether that goroutine is running an activity instead. The number
// is even while the goroutine drives, and odd while it runs an activity; each goroutine that takes over adds 2.
type holder struct{ state atomic.Int64 }

// current identifies the goroutine that runs the driver. It differs from that of every other goroutine of this driver.
func (h *holder) current() int64 { return h.state.Load() &^ 1 }

// lend marks the goroutine as running an activity, so that other goroutines may take the driver over.
func (h *holder) lend() { h.state.Add(1) }

// reclaim takes the driver back for the goroutine that lent it, unless it was taken over.
func (h *holder) reclaim(mine int64) bool { return h.state.CompareAndSwap(mine+1, mine) }

// takeOver takes the driver over from a goroutine that runs an activity. Only one caller succeeds.
func (h *holder) takeOver() bool {
	state := h.state.Load()
	return state%2 == 1 && h.state.CompareAndSwap(state, state+1)
}

// handOver makes the driver continue while an activity runs on its goroutine. Another goroutine drives from there, and
// the activity becomes an attempt like those with goroutines of their own. Every source of news for the driver calls
// it: a signal, the progress of the activity, a due time, the end of the context. It does nothing when the driver is
// not at an activity.
func (d *driver) handOver() {
	if d.holder.takeOver() {
		go d.driveHere(func(d *driver, ctx context.Context) (Outcome, error) { return d.orStall(ctx, (*driver).steps) })
	}
}

// runHere runs an attempt on the driver's goroutine, because the driver has no other work at the moment. An attempt on
// another goroutine would cost two switches. wake is when the driver has work at the latest, zero for never. Once the
// driver was handed over, the attempt's result is posted like all others, and the error is errHandedOver.
func (d *driver) runHere(ctx context.Context, a *attempt, wake time.Time) error {
	mine := d.holder.current()
	d.holder.lend()
	if ctx.Err() != nil || len(d.inboxReady) > 0 { // these came too early to hand over
		d.handOver()
	}
	if !wake.IsZero() {
		due := time.AfterFunc(wake.Sub(d.rt.config.Now()), d.handOver)
		defer due.Stop()
	}
	r, reclaimed := d.lendTo(a, mine)
	if !reclaimed {
		return errHandedOver
	}
	return d.learnResult(r)
}

// lendTo runs an attempt while the driver is lent. If the driver was taken over meanwhile, or if the activity ends the
// goroutine, the result is posted to the goroutine that drives then.
func (d *driver) lendTo(a *attempt, mine int64) (r result, reclaimed bool) {
	c, returned := d.executor, false
	r.err = errGoexit
	defer func() {
		r = c.conclude(a, r)
		if reclaimed = returned && d.holder.reclaim(mine); !reclaimed {
			d.handOver()
			c.post(r)
		}
	}()
	r = c.perform(a)
	returned = true
	return r, false
}
