package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
)

// Observe is called for each delivery, with the time since its message was sent, waits of the run included.
func TestObserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rests = between
		var told []engine.Settled
		w.observe = func(_ context.Context, s engine.Settled) { told = append(told, s) }
		w.Send(testQueue, good)
		p := w.Restart(nil)
		p.Run()
		w.Send(testQueue, good)
		p.Run()
		var fates []engine.Fate
		for _, s := range told {
			if fates = append(fates, s.Fate); s.Engine != "turntable" || s.Took < 0 {
				t.Errorf("%+v", s)
			}
			if since := s.SinceSent; s.Fate == engine.Succeeded && (since < time.Hour || since > time.Hour+5*time.Minute) {
				t.Errorf("a run that rests for an hour took %v", since)
			}
		}
		if diff := cmp.Diff([]engine.Fate{engine.Parked, engine.Succeeded, engine.Duplicate}, fates); diff != "" {
			t.Error(diff)
		}
	})
}

// Metrics cover every fate.
func TestFates(t *testing.T) {
	t.Parallel()
	seen := map[engine.Fate]bool{}
	for _, f := range engine.Fates() {
		seen[f] = true
	}
	for _, f := range []engine.Fate{engine.Succeeded, engine.Duplicate, engine.Failed, engine.DeadLettered, engine.Terminated, engine.Parked, engine.Elsewhere, engine.Conflicting, engine.Stalled} {
		if !seen[f] {
			t.Errorf("%s is missing", f)
		}
	}
}

// The runs of a singleton, each of which finds the end of the previous one, and a repeated report of an end are no
// duplicates.
func TestEndsThatAreRecordedAreNoDuplicates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.scope = engine.PerInstance
		p := w.Restart(nil)
		for i := range 5 {
			w.Send(testQueue, strings.Replace(good, "c1", fmt.Sprint("c", i), 1))
			p.Run()
		}
		if err := p.Ended(t.Context(), w.Outcome("turntable-i1")); err != nil {
			t.Fatal(err)
		}
		if done, again := p.Count(engine.Succeeded), p.Count(engine.Duplicate); done != 5 || again != 0 {
			t.Errorf("%d succeeded, %d duplicates", done, again)
		}
	})
}
