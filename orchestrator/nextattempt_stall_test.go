package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/sample"
)

// An orchestrator that blocks without the runtime's knowledge stalls: Run returns long before its timeout, and the
// status shows it. With code that does not block, the orchestration continues, with the events that arrived meanwhile.
func TestCodeThatBlocksNativelyFreesRun(t *testing.T) {
	t.Parallel()
	blocks := map[string]func(release chan struct{}){
		"on a channel": func(release chan struct{}) { <-release },
		"in a native sleep": func(release chan struct{}) {
			select {
			case <-release:
			case <-time.After(30 * time.Minute):
			}
		},
	}
	tests := map[string]func(*testing.T){}
	for name, block := range blocks {
		for place, first := range map[string]bool{"in its first turn": true, "behind an event": false} {
			tests[name+", "+place] = func(t *testing.T) {
				w, release := newWorld(t), make(chan struct{})
				flow := func(block func(chan struct{})) []AnyOrchestrator {
					return []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
						if first {
							block(release)
						}
						n, err := Event[int](ctx, "number").Await()
						if err == nil && !first {
							block(release)
						}
						return n, err
					})}
				}
				rt := w.signalling(t, nil, flow(block), nil)
				if !first {
					mustRun(t, rt, startOf("a", 1))
					raise(t, w, "a", 7, 0)
				}
				freed := make(chan time.Duration, 1)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				go func() {
					begin := time.Now()
					if first {
						_, _ = rt.Run(ctx, startOf("a", 1))
					} else {
						w.deliver(ctx, t, rt)
					}
					freed <- time.Since(begin)
				}()
				time.Sleep(20 * time.Minute)
				select {
				case after := <-freed:
					if after > 30*time.Second {
						t.Errorf("it is freed after %v", after)
					}
					wants(t, "it is", shownStatus(t, rt, "a"), Stalled)
				default:
					t.Error("it hangs: its time is over for 19 minutes")
				}
				close(release) // nothing is left behind
				synctest.Wait()
				if t.Failed() {
					return
				}
				mended := w.signalling(t, nil, flow(func(chan struct{}) {}), nil)
				if first {
					raise(t, w, "a", 7, 0)
				}
				w.attend(t, mended, time.Hour)
				wants(t, "mended", stands(t, mended, "a"), "Completed 7")
			}
		}
	}
	inBubbles(t, tests)
}

// deployment is the code that is deployed at a time.
type deployment struct {
	orchestrators []AnyOrchestrator
	activities    []AnyActivity
}

// A run that is stalled by its code shows that with the reason for as long as it lasts, and continues by itself within
// a sweep of the repair, after a month as after three days.
func TestWhatIsStalledGoesOnWhenTheCodeIsMended(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	step := (&ledger{}).step("step")
	another := func(version string, options ...OrchestratorOption) *Orchestrator[int, int] {
		return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if version == "other" {
				return Event[int](ctx, "never").Await()
			}
			if _, err := Timer(ctx, time.Hour).Await(); err != nil {
				return 0, err
			}
			m, err := Event[int](ctx, "number").Await()
			if err != nil {
				return 0, err
			}
			return step.Call(ctx, n+m).Await()
		}, options...)
	}
	good := deployment{[]AnyOrchestrator{another("1", WithVersion("1"))}, []AnyActivity{step}}
	bad := map[string]deployment{
		"the code decides differently":   {[]AnyOrchestrator{another("other", WithVersion("1"))}, []AnyActivity{step}},
		"the orchestrator is not there":  {nil, []AnyActivity{step}},
		"the version is not there":       {[]AnyOrchestrator{another("2", WithVersion("2"))}, []AnyActivity{step}},
		"the activity is not registered": {good.orchestrators, nil},
	}
	tests := map[string]func(*testing.T){}
	for name, bad := range bad {
		for _, stalled := range []time.Duration{3 * day, 31 * day} {
			if stalled > 3*day && !sample.Keep(t, name) {
				continue
			}
			tests[fmt.Sprintf("%s for %d days", name, stalled/day)] = func(t *testing.T) {
				w := newWorld(t)
				rt := w.signalling(t, nil, good.orchestrators, good.activities)
				mustRun(t, rt, startOf("a", 1))
				broken := w.signalling(t, nil, bad.orchestrators, bad.activities)
				time.Sleep(30 * time.Minute)
				raise(t, w, "a", 7, 0)
				w.attend(t, broken, stalled)
				out := mustGet(t, broken, "a")
				wants(t, "it shows", shownStatus(t, broken, "a"), Stalled)
				if out.Status != Stalled || out.Failure == nil || out.Ended() {
					t.Errorf("it is %s: %v", out.Status, out.Failure)
				}
				mended := w.signalling(t, nil, good.orchestrators, good.activities)
				w.attend(t, mended, 2*sweepEvery)
				wants(t, "after a sweep with mended code", stands(t, mended, "a"), "Completed 9")
				w.replays(t, mended)
			}
		}
	}
	inBubbles(t, tests)
}

// The configuration that code saw in its process is recorded: switching publications or queues on or off between two
// deployments stalls nothing.
func TestWhatIsSwitchedBetweenDeploymentsStallsNothing(t *testing.T) {
	t.Parallel()
	publishes := func(ctx *Context) string {
		return fmt.Sprint(errors.Is(ctx.Publish(Publication{TenantID: "t", Type: "news", Payload: []byte("1")}), ErrNoPublisher))
	}
	asks := func(ctx *Context) string {
		asked := AskPerson[answer](ctx, question())
		if !asked.Done() {
			Cancel(ctx, asked)
		}
		_, err := asked.Await()
		return fmt.Sprint(errors.Is(err, ErrNoSignals))
	}
	switches := map[string]struct {
		before, after func(*testing.T, *world, AnyOrchestrator) *Runtime
		do            func(*Context) string
		without       bool // the first deployment lacks it
	}{
		"publications are switched on":  {speechless, outspoken, publishes, true},
		"publications are switched off": {outspoken, speechless, publishes, false},
		"queues are switched on":        {queueless, speechless, asks, true},
	}
	tests := map[string]func(*testing.T){}
	for name, s := range switches {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
				without := s.do(ctx)
				if _, err := Timer(ctx, 10*time.Second).Await(); err != nil { // in the same process
					return "", err
				}
				_, err := Timer(ctx, time.Hour).Await()
				return without, err
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if out, err := s.before(t, w, o).Run(ctx, startOf("a", 1)); err != nil || out.Status != Running {
				t.Fatalf("%s %v", out.Status, err)
			}
			rt := s.after(t, w, o)
			if _, err := rt.Run(ctx, startOf("a", 1)); err != nil {
				t.Errorf("after the switch: %v", err)
			}
			w.attend(t, rt, 3*time.Hour)
			wants(t, "it ends", stands(t, rt, "a"), fmt.Sprintf(`Completed "%v"`, s.without))
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// speechless returns a process that has queues and does not publish.
func speechless(t *testing.T, w *world, o AnyOrchestrator) *Runtime {
	t.Helper()
	return w.publishing(t, nil, nil, []AnyOrchestrator{o}, nil)
}

// outspoken returns a process that has queues and publishes.
func outspoken(t *testing.T, w *world, o AnyOrchestrator) *Runtime {
	t.Helper()
	return w.publishing(t, nil, &post{}, []AnyOrchestrator{o}, nil)
}

// queueless returns a process without queues.
func queueless(t *testing.T, w *world, o AnyOrchestrator) *Runtime {
	t.Helper()
	return w.process(t, nil, o)
}
