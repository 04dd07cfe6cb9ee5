package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A frozen process reports that it was frozen, with the remedy; a process that needs more time reports that, also
// when the machine's clock was set meanwhile.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		frozen time.Duration
		want   string
	}{
		"in time":     {0, "the time of the invocation ran out before any activity ended"},
		"busy":        {50 * time.Second, "the time of the invocation ran out before any activity ended"},
		"frozen":      {time.Hour, "the process was frozen: it noticed the end of its invocation 1h0m"},
		"frozen soon": {61 * time.Second, "the process was frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				passed := time.Duration(0)
				w.now = func() time.Time { return time.Now().Add(passed) }
				w.turn = func(ctx context.Context) error {
					<-ctx.Done()
					passed = test.frozen
					return ctx.Err()
				}
				w.Send(testQueue, good)
				p := w.Restart(nil)
				w.deliverWithin(p, 10*time.Second) // which starts the run
				passed = 0
				w.deliverWithin(p, 10*time.Second)
				entries := w.History("turntable", "c1")
				if len(entries) != 1 || !strings.HasPrefix(entries[0].Error, test.want) {
					t.Errorf("%+v", entries)
				}
			})
		})
	}
}
