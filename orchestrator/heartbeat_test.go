package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// copier copies ten things, ten seconds each, from the recorded progress on.
func copier(l *ledger, trouble func(ctx context.Context, done int) error, options ...CallOption) *Activity[int, int] {
	return NewActivity("copy", func(ctx context.Context, _ int) (int, error) {
		done := 0
		if p := Info(ctx).Progress; p != nil {
			if err := json.Unmarshal(p, &done); err != nil {
				return 0, err
			}
		}
		l.add(fmt.Sprint("from ", done))
		for ; done < 10; done++ {
			if err := Heartbeat(ctx, done); err != nil {
				l.add("told to stop")
				return 0, err
			}
			if err := trouble(ctx, done); err != nil {
				return 0, err
			}
			l.add(fmt.Sprint("copied ", done))
			if err := pause(ctx, 10*time.Second); err != nil {
				return 0, err
			}
		}
		return done, nil
	}, options...)
}

func calling(a *Activity[int, int]) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return a.Call(ctx, n).Await() })
}

// An attempt without heartbeats fails with that as the reason, and the next one knows its progress.
func TestHeartbeatThatIsMissed(t *testing.T) {
	t.Parallel()
	for _, stubborn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			release := make(chan struct{})
			defer close(release)
			work := copier(l, func(ctx context.Context, done int) error {
				if Info(ctx).Attempt == 1 && done == 4 {
					if stubborn {
						<-release
					}
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}, WithHeartbeat(time.Minute), WithRetry(Retry{MaxAttempts: 2}))
			rt := w.process(t, nil, calling(work), work)
			begin := time.Now()
			out := mustRun(t, rt, startOf("a", 1))
			if out.Status != Completed || l.count("from 4") != 1 || l.count("copied 3") != 1 || l.count("copied 4") != 1 {
				t.Errorf("%s %v: %v", out.Status, out.Failure, l.all())
			}
			if d := time.Since(begin); d < 160*time.Second || d > 165*time.Second { // 40 s, the silence, 60 s, and the pause
				t.Errorf("it took %v", d)
			}
			var reasons []string
			for _, g := range w.stored(t, "a") {
				for _, r := range g.rounds {
					for _, e := range r.Learned {
						if e.Kind == attemptFailed {
							reasons = append(reasons, e.Failure.Message)
						}
					}
				}
			}
			if len(reasons) != 1 || !strings.HasPrefix(reasons[0], "no heartbeat within 1m0s") {
				t.Errorf("reasons %q", reasons)
			}
			w.replays(t, rt)
		})
	}
}

// Progress is recorded from time to time, so that it survives the process; a short interval records more.
func TestProgressSurvivesTheProcess(t *testing.T) {
	t.Parallel()
	for interval, want := range map[time.Duration]string{30 * time.Second: "from 6", 10 * time.Second: "from 7", time.Hour: "from 0"} {
		synctest.Test(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			work := copier(l, func(context.Context, int) error { return nil })
			ctx, die := context.WithCancel(t.Context())
			var dead atomic.Bool
			plan := &faults.Plan{Refuse: func(faults.Call) bool { return dead.Load() }}
			c := Config{Orchestrators: []AnyOrchestrator{calling(work)}, Activities: []AnyActivity{work}, ProgressInterval: interval}
			dying := w.configured(t, plan, c)
			done := runInBackground(ctx, dying, startOf("a", 1))
			time.Sleep(75 * time.Second)
			dead.Store(true) // no call reaches storage from here on
			die()
			<-done
			rt := w.configured(t, nil, c)
			out := mustRun(t, rt, startOf("a", 1))
			if out.Status != Completed || string(out.Output) != "10" || l.count(want) < 1 {
				t.Errorf("interval %v: %s %v: %v, want %s", interval, out.Status, out.Failure, l.all(), want)
			}
			w.replays(t, rt)
		})
	}
}

// Progress survives every failure of storage: the copy never starts over once a round holds its progress.
func TestProgressAndFaults(t *testing.T) {
	t.Parallel()
	f := flow{output: "10", config: Config{ProgressInterval: 10 * time.Second}, make: func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
		work := copier(l, func(ctx context.Context, done int) error {
			if done == 5 && Info(ctx).Attempt == 1 {
				return errors.New("once")
			}
			return nil
		}, WithRetry(Retry{MaxAttempts: 2}))
		return []AnyOrchestrator{calling(work)}, []AnyActivity{work}
	}}
	f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
		for i := range 10 {
			if n := l.count(fmt.Sprint("copied ", i)); n < 1 || n > 4 {
				t.Errorf("%d was copied %d times", i, n)
			}
		}
		if l.count("from 5") == 0 {
			t.Errorf("%v", l.all())
		}
	}
	f.runs(t, faults.CrashBefore, faults.CrashAfter, faults.Applied)
}

// Outside of an activity a heartbeat has no receiver, and progress that cannot be encoded is an error, not a
// heartbeat.
func TestHeartbeatsThatCannotBe(t *testing.T) {
	t.Parallel()
	if err := Heartbeat(t.Context(), 1); !errors.Is(err, errNoActivity) {
		t.Errorf("outside of an activity: %v", err)
	}
	w := newWorld(t)
	var said error
	step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
		said = Heartbeat(ctx, func() {})
		return n, nil
	})
	if out := mustRun(t, w.process(t, nil, calling(step), step), startOf("a", 1)); out.Status != Completed || said == nil {
		t.Errorf("%s, %v", out.Status, said)
	}
	bad := NewActivity("bad", func(context.Context, int) (int, error) { return 0, nil }, WithHeartbeat(-1))
	if _, err := New(Config{Tables: w.tables, Blobs: w.blobs, Activities: []AnyActivity{bad}}); err == nil {
		t.Error("a negative interval is taken")
	}
}

// An activity knows when its attempt ends: its timeout, or the end of the invocation, whichever comes first.
func TestDeadlineOfAnActivity(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		timeout, invocation, want time.Duration
	}{
		"none":           {},
		"its time-out":   {timeout: time.Minute, invocation: time.Hour, want: time.Minute},
		"the invocation": {timeout: time.Hour, invocation: time.Minute, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var info ActivityInfo
				step := NewActivity("step", func(ctx context.Context, n int) (int, error) { info = Info(ctx); return n, nil }, WithTimeout(tt.timeout))
				ctx, begin := t.Context(), time.Now()
				if tt.invocation > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.invocation)
					defer cancel()
				}
				noError(t, errorOf(w.process(t, nil, calling(step), step).Run(ctx, startOf("a", 1))))
				if (tt.want == 0) != info.Deadline.IsZero() || tt.want != 0 && info.Deadline.Sub(begin) != tt.want {
					t.Errorf("deadline %v", info.Deadline)
				}
			})
		})
	}
}
