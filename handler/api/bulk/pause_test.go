package bulk

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// slow starts an operation that changes ten in a slice of ten seconds.
func (p *process) slow(t *testing.T) Operation {
	t.Helper()
	op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionExpire, Engine: "hmac", RatePerSecond: 1}, "", "corr")
	testenv.Check(t, err)
	return op
}

// get is how an operation stands.
func (p *process) get(t *testing.T, id string) Operation {
	t.Helper()
	op, err := p.operations.Get(t.Context(), id)
	testenv.Check(t, err)
	return op
}

// pauseInFirst pauses an operation in the middle of its first slice, and lets its process work until nothing comes.
func (p *process) pauseInFirst(t *testing.T, w *world, id string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.work(t, w)
	}()
	<-time.After(4500 * time.Millisecond)
	if _, err := p.operations.Pause(t.Context(), id, "why"); err != nil {
		t.Error(err)
	}
	p.work(t, w) // another invocation hears of it
	<-done
}

// A paused operation finishes its slice and begins no other. It stays so for days and in other processes, asks storage for nothing
// meanwhile, and goes on where it was.
func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const letters = 25
		w := newWorld(t, 0)
		w.bury(t, letters, nil)
		first := w.process(t, nil)
		op := first.slow(t)
		first.pauseInFirst(t, w, op.ID)
		if got := first.get(t, op.ID); got.Status != orchestrator.Suspended || got.Progress.Done != 0 {
			t.Fatalf("%+v", got) // what its slice has done is counted when it goes on
		}
		w.sweepFor(t, first, 24*time.Hour) // what is left of its slice is tidied
		second := w.process(t, nil)
		w.sweepFor(t, second, 7*24*time.Hour)
		idle := newWorld(t, 0)
		nothing := idle.process(t, nil)
		idle.sweepFor(t, nothing, 7*24*time.Hour)
		if with, without := len(second.plan.Calls()), len(nothing.plan.Calls()); with != without {
			t.Errorf("%d calls of storage while it is paused, %d without it", with, without)
		}
		if expired := w.counts(t).Expired; expired != 10 || second.get(t, op.ID).Status != orchestrator.Suspended {
			t.Errorf("%d are expired while it is paused", expired)
		}
		testenv.Done(t)(second.operations.Resume(t.Context(), op.ID, ""))
		second.work(t, w)
		if got := second.get(t, op.ID); got.Status != orchestrator.Completed || got.Progress.Done != letters || w.counts(t).Expired != letters {
			t.Errorf("%+v, and %+v", got, w.counts(t))
		}
		for name, command := range map[string]func() error{
			"pause":  func() error { _, err := second.operations.Pause(t.Context(), op.ID, ""); return err },
			"resume": func() error { _, err := second.operations.Resume(t.Context(), op.ID, ""); return err },
		} {
			if err := command(); !errors.Is(err, ErrEnded) {
				t.Errorf("%s at the end: %v", name, err)
			}
		}
	})
}

// sweepFor lets time pass, with a sweep every hour, and what signals come are handled.
func (w *world) sweepFor(t *testing.T, p *process, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		testenv.Done(t)(p.runtime.Sweep(t.Context(), 100))
		p.work(t, w)
		<-time.After(time.Hour)
	}
}

// A paused operation that is canceled ends, and leaves the rest alone.
func TestCancelWhilePaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 25, nil)
		p := w.process(t, nil)
		op := p.slow(t)
		p.pauseInFirst(t, w, op.ID)
		testenv.Done(t)(p.operations.Cancel(t.Context(), op.ID, "enough"))
		p.work(t, w)
		if got := p.get(t, op.ID); got.Status != orchestrator.Canceled || got.Progress.Done != 10 || w.counts(t).Expired != 10 {
			t.Errorf("%+v, and %+v", got, w.counts(t))
		}
	})
}

// A canary that comes back while the operation is paused ends it all the same, after it was resumed.
func TestPauseInTheCanary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 5, nil)
		p := w.process(t, nil)
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Engine: "hmac", Canary: 2, CanarySeconds: 300}, "", "corr")
		testenv.Check(t, err)
		p.work(t, w)
		testenv.Done(t)(p.operations.Pause(t.Context(), op.ID, ""))
		for range 30 {
			p.work(t, w)
		}
		if got := p.get(t, op.ID); got.Status != orchestrator.Suspended || got.Progress.Done != 2 || w.counts(t).Pending != 3 {
			t.Errorf("%+v, and %+v", got, w.counts(t))
		}
		testenv.Done(t)(p.operations.Resume(t.Context(), op.ID, ""))
		p.work(t, w)
		if got := p.get(t, op.ID); got.Status != orchestrator.Completed || got.Progress.Done != 5 {
			t.Errorf("%+v", got)
		}
	})
}
