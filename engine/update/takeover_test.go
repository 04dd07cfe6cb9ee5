package update_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// takeOver delivers signals and timers until the lock is free, for less than the visibility timeout of a dead host's
// messages.
func (p *plant) takeOver(t *testing.T, taker *enginetest.Process) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Minute && p.state(t).Lock != ""; time.Sleep(time.Second) {
		for _, queue := range []string{"orchestration-signals", "orchestration-schedules"} {
			p.DeliverTo(queue, func(ctx context.Context, d engine.Delivery) error {
				err := taker.HandleSignal(ctx, d)
				if err != nil {
					t.Error(err)
				}
				return err
			})
		}
	}
}

// node returns a process of this name.
func (p *plant) node(name string, plan *enginetest.Plan) *enginetest.Process {
	p.Config.Runtime = func(c *orchestrator.Config) { c.Node = name }
	return p.Restart(plan)
}

// watchLock checks that one job holds the lock until it is free, and that it stays free.
func (p *plant) watchLock(t *testing.T, job string, freed *atomic.Bool) {
	i, err := p.registry.Get(t.Context(), instance)
	if err != nil {
		t.Error(err)
		return
	}
	if i.Lock.JobID == "" {
		freed.Store(true)
	} else if i.Lock.JobID != job || freed.Load() {
		t.Errorf("the lock is that of %q, not of %q, or was free in between", i.Lock.JobID, job)
	}
}

// A process dies with its host at any call while its update holds the lock of the instance. The next process
// continues under the same lock, which belongs to the update and not to the process, and releases it at the end. It
// does not wait for the dead host's message.
func TestATakeoverGoesOnUnderTheLock(t *testing.T) {
	t.Parallel()
	noCrash := func(_ int, _ enginetest.Call, f enginetest.Fault) bool { return f > faults.CrashAfter }
	enginetest.FailEverywhere(t, noCrash, func(t *testing.T, plan *enginetest.Plan) {
		p := newPlant(t)
		p.send("one", twoUp)
		held := 0
		plan.Refuse = func(enginetest.Call) bool {
			if p.state(t).Lock != "" {
				held++
			}
			return false
		}
		dying := p.node("lost", plan)
		d := p.Take(update.Queue)
		began := time.Now()
		err := dying.Handle(t.Context(), d)
		if plan.At == 0 && (err != nil || held < 5) {
			t.Errorf("without a crash: %v, %d calls with the lock in its hands", err, held)
		}
		lock := p.state(t).Lock
		if err == nil || !plan.Crashed() || lock == "" {
			return
		}
		var freed atomic.Bool
		taker := p.node("taker", &enginetest.Plan{Refuse: func(enginetest.Call) bool { p.watchLock(t, lock, &freed); return false }})
		lost := orchestrator.Lost{Node: "lost", Orchestrations: []string{"update-" + instance}, Since: began}
		if err := taker.Runtime.TakeOver(t.Context(), lost, func(int) {}); err != nil {
			t.Error(err)
		}
		p.takeOver(t, taker)
		if s := p.state(t); s.Lock != "" || s.Pending || s.Db != "8" {
			t.Errorf("%v after the death: %+v", time.Since(began), s)
		}
		if rows := p.history("one"); len(rows) == 0 || rows[len(rows)-1] != "component-update Succeeded Succeeded" {
			t.Errorf("history: %v", rows)
		}
	})
}
