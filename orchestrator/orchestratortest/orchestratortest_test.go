package orchestratortest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// brokenVariable makes TestFailures run the test of this name in broken: only another process can observe a test
// failure.
const brokenVariable = "ORCHESTRATORTEST_BROKEN"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type brokenTest struct {
	test   func(t *testing.T)
	says   []string
	panics bool // only a panic ends code that does not return
}

// broken returns tests that must fail, and their messages.
func broken() map[string]brokenTest {
	type none = struct{}
	simple := func(fn func(*orchestrator.Context, none) (int, error)) orchestratortest.Scenario[none, int] {
		return orchestratortest.Scenario[none, int]{Orchestrator: orchestrator.NewOrchestrator("simple", fn)}
	}
	waiting := simple(func(ctx *orchestrator.Context, _ none) (int, error) {
		return orchestrator.Event[int](ctx, "godot").Await()
	})
	unknown := orchestrator.NewActivity("unknown", func(context.Context, none) (int, error) { return 0, nil })
	turns := 0
	return map[string]brokenTest{
		"blocks": {func(t *testing.T) {
			orchestratortest.SetStillness(5 * time.Second)
			orchestratortest.Run(t, simple(func(*orchestrator.Context, none) (int, error) { return <-make(chan int), nil }))
		}, []string{"the run is stalled: orchestration test is blocked: its code has not come back for 10s and stands at"}, true},
		"loops for ever": {func(t *testing.T) {
			orchestratortest.SetStillness(time.Second)
			s := simple(func(ctx *orchestrator.Context, _ none) (int, error) {
				for {
					_ = ctx.Sleep(time.Hour) // result of a cancellation
				}
			})
			s.Steps = []orchestratortest.Step{{At: 90 * time.Minute, Command: "cancel"}}
			orchestratortest.Run(t, s)
		}, []string{"TestFailures: the run is stalled: the code of an orchestrator has not come back for 1s", "orchestratortest_test.go"}, true},
		"a child is stalled": {func(t *testing.T) {
			child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, _ none) (int, error) { return unknown.Call(ctx, none{}).Await() })
			s := simple(func(ctx *orchestrator.Context, _ none) (int, error) { return child.Call(ctx, none{}).Await() })
			s.Orchestrators = []orchestrator.AnyOrchestrator{child}
			orchestratortest.Run(t, s)
		}, []string{"the run is stalled: orchestration", "unknown activity"}, false},
		"no orchestrator": {func(t *testing.T) { orchestratortest.Run(t, orchestratortest.Scenario[none, int]{}) }, []string{"an orchestrator is required"}, false},
		"waits for ever":  {func(t *testing.T) { orchestratortest.Run(t, waiting) }, []string{"has not ended", "simple (test) is Running", "waits for Event godot"}, false},
		"never ends": {func(t *testing.T) {
			s := simple(func(ctx *orchestrator.Context, _ none) (int, error) {
				ctx.Sleep(24 * time.Hour)
				return 0, orchestrator.ContinueAsNew(none{})
			})
			s.Limit = 30 * 24 * time.Hour
			orchestratortest.Run(t, s)
		}, []string{"after 720h0m0s the orchestration has not ended", `waits for Timer timer "24h0m0s"`}, false},
		"missed step": {func(t *testing.T) {
			s := simple(func(*orchestrator.Context, none) (int, error) { return 1, nil })
			s.Steps = []orchestratortest.Step{{Event: "nobody asks", To: "child"}}
			orchestratortest.Run(t, s)
		}, []string{`could happen: event "nobody asks" to child`}, false},
		"bad steps": {func(t *testing.T) {
			s := waiting
			s.Steps = []orchestratortest.Step{{}, {At: -1, Event: "e"}, {Event: "e", Command: "resume"}, {Event: "e", Command: "explode"},
				{Command: "explode"}, {Command: "retry", To: "child"}}
			orchestratortest.Run(t, s)
		}, []string{"step 1: it needs", "step 2: its time is negative", "step 3: it needs", "step 4: it needs",
			"step 5: it needs an Event, a Task or one of the Commands suspend, resume, cancel, terminate, retry, rewind, redeliver", "step 6: retry is about the message"}, false},
		"unknown activity": {func(t *testing.T) {
			orchestratortest.Run(t, simple(func(ctx *orchestrator.Context, _ none) (int, error) { return unknown.Call(ctx, none{}).Await() }))
		}, []string{"the run is stalled: orchestration test calls activity", "unknown activity"}, false},
		"not deterministic": {func(t *testing.T) {
			orchestratortest.Run(t, simple(func(ctx *orchestrator.Context, _ none) (int, error) {
				turns++
				ctx.Sleep(time.Duration(turns) * time.Second)
				return 1, nil
			}))
		}, []string{"replay of the finished history", "a timer of"}, false},
		"crashes show": {func(t *testing.T) {
			orchestratortest.CrashEverywhere(t, func(*testing.T) orchestratortest.Scenario[none, int] {
				runs := 0
				count := orchestrator.NewActivity("count", func(context.Context, none) (int, error) { runs++; return runs, nil })
				s := simple(func(ctx *orchestrator.Context, _ none) (int, error) { return count.Call(ctx, none{}).Await() })
				s.Activities = []orchestrator.AnyActivity{count}
				return s
			})
		}, []string{"the crash changes the outcome", "without: Completed: 1", "with:    Completed: 2",
			"to repeat: ROUNDHOUSE_TEST_SHARE=1 go test ./orchestrator/orchestratortest -run '^TestFailures$/^before-2-tables-Apply$'"}, false},
		"an undo that is not idempotent": {func(t *testing.T) { orchestratortest.FailEverywhere(t, shop{restocks: true}.scenario) },
			[]string{"ordinary-before-2-take", "permanent-before-2-take", "it is sold: 5 in stock"}, false},
		"a memory outside of the run": {func(t *testing.T) { orchestratortest.FailEverywhere(t, shop{remembers: true}.scenario) },
			[]string{"ordinary-after-3-send", "permanent-before-3-send", "it is sold: 5 in stock"}, false},
		"work without a key": {func(t *testing.T) { orchestratortest.FailEverywhere(t, shop{charges: true}.scenario) },
			[]string{"ordinary-after-1-charge", "permanent-after-1-charge", "charged [o-1 o-1]"}, false},
		"a failure that is swallowed": {func(t *testing.T) { orchestratortest.FailEverywhere(t, shop{swallows: true}.scenario) },
			[]string{"ordinary-before-3-send", "permanent-before-2-take", "sent map[]"}, false},
		"work that cannot be asked for twice": {func(t *testing.T) { orchestratortest.FailEverywhere(t, shop{refuses: true}.scenario) },
			[]string{"ordinary-after-1-charge", "a call that fails changes the outcome", "without: Completed", "with:    Failed: activity charge (attempt 1): it is paid"}, false},
		"another output": {func(t *testing.T) { orchestratortest.FailEverywhere(t, shop{notes: true}.scenario) },
			[]string{"permanent-before-4-mail", "a call that fails changes the outcome", "with:    Completed: \"sold, and nobody was told\""}, false},
		"check": {func(t *testing.T) {
			s := simple(func(*orchestrator.Context, none) (int, error) { return 7, nil })
			s.Check = func(t *testing.T, r orchestratortest.Result[int]) { t.Errorf("looked at %d", r.Output) }
			orchestratortest.Run(t, s)
		}, []string{"looked at 7"}, false},
		"golden without file": {func(t *testing.T) { orchestratortest.Golden(t, "testdata/none.json", waiting) }, []string{"ROUNDHOUSE_GOLDEN=write"}, false},
		"golden of other code": {func(t *testing.T) { orchestratortest.Golden(t, "testdata/order.json", waiting) },
			[]string{"golden history testdata/order.json", `decided call 1, a wait for event "godot"`, "recorded is call 1 of activity charge"}, false},
	}
}

// An invalid test fails and reports the reason.
func TestFailures(t *testing.T) {
	if b, ok := broken()[os.Getenv(brokenVariable)]; ok {
		b.test(t)
		return
	}
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range broken() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestFailures$")
			cmd.Env = append(os.Environ(), brokenVariable+"="+name, "ROUNDHOUSE_GOLDEN=", sample.Share+"=1")
			said, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 && !b.panics {
				t.Errorf("it ended with %v", err)
			}
			for _, want := range b.says {
				if !strings.Contains(string(said), want) {
					t.Errorf("%q is missing in:\n%s", want, said)
				}
			}
			if strings.Contains(string(said), "panic:") && !b.panics {
				t.Errorf("it panicked:\n%s", said)
			}
		})
	}
}

// The same run writes the same history, and the file can be replayed.
func TestGoldenWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "order.json")
	t.Setenv("ROUNDHOUSE_GOLDEN", "write")
	var histories []string
	for range 2 {
		orchestratortest.Golden(t, file, newStore().scenario())
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		histories = append(histories, string(text))
	}
	if histories[0] != histories[1] || !strings.Contains(histories[0], `"at": 946684800000000`) {
		t.Errorf("the histories differ, or hold no virtual time:\n%s\n%s", histories[0], histories[1])
	}
}

// Untimed events arrive once for each wait, also over continue-as-new, in children and in coroutines.
func TestEventsComeWhenTheyAreWaitedFor(t *testing.T) {
	t.Parallel()
	next := func(ctx *orchestrator.Context) (int, error) { return orchestrator.Event[int](ctx, "Number").Await() }
	child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, _ int) (int, error) { return next(ctx) })
	parent := orchestrator.NewOrchestrator("parent", func(ctx *orchestrator.Context, sum int) (int, error) {
		own := orchestrator.Go(ctx, next)
		children, err := orchestrator.All(child.Call(ctx, 1), child.Call(ctx, 2))
		if err != nil {
			return 0, err
		}
		mine, err := own.Await()
		if err != nil {
			return 0, err
		}
		if sum += mine + 10*children[0] + 100*children[1]; sum < 900 {
			ctx.Sleep(time.Hour)
			return 0, orchestrator.ContinueAsNew(sum)
		}
		return sum, nil
	})
	orchestratortest.CrashEverywhere(t, func(*testing.T) orchestratortest.Scenario[int, int] {
		return orchestratortest.Scenario[int, int]{
			Orchestrator: parent, Orchestrators: []orchestrator.AnyOrchestrator{parent, child},
			Steps: []orchestratortest.Step{
				{Event: "number", Data: 1}, {Event: "number", Data: 2, To: "child"}, {Event: "number", Data: 3, To: "child"},
				{Event: "number", Data: 4}, {Event: "number", Data: 5, To: "child"}, {At: 2 * time.Hour, Event: "number", Data: 6, To: "child"},
			},
			Check: func(t *testing.T, r orchestratortest.Result[int]) {
				if r.Output != 1+20+300+4+50+600 || r.Elapsed.Round(time.Second) != 2*time.Hour {
					t.Error(r)
				}
			},
		}
	})
}

// A failed sub-orchestration continues as its next execution, long activities take only virtual time, and so does a
// timer beyond the longest message delay.
func TestLongRuns(t *testing.T) {
	t.Parallel()
	work := orchestrator.NewActivity("work", func(ctx context.Context, d time.Duration) (string, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if orchestrator.Info(ctx).Execution < 3 {
			return "", errors.New("not yet")
		}
		return "done", nil
	})
	child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, d time.Duration) (string, error) {
		return work.Call(ctx, d).Await()
	})
	parent := orchestrator.NewOrchestrator("parent", func(ctx *orchestrator.Context, d time.Duration) (string, error) {
		ctx.Sleep(40 * 24 * time.Hour)
		retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 3, FirstInterval: time.Minute})
		return child.Call(ctx, d, retry).Await()
	})
	got := orchestratortest.Run(t, orchestratortest.Scenario[time.Duration, string]{
		Orchestrator: parent, Orchestrators: []orchestrator.AnyOrchestrator{child}, Activities: []orchestrator.AnyActivity{work},
		Input: 8 * time.Hour, Limit: 42 * 24 * time.Hour,
	})
	want := 40*24*time.Hour + 3*8*time.Hour + 3*time.Minute
	if got.Err != nil || got.Output != "done" || got.Elapsed != want || len(got.Called("work")) != 3 {
		t.Errorf("%v\nwant it after %v", got, want)
	}
}

// A cancellation interrupts waits, here and in a sub-orchestration; both undo their work.
func TestAnOrchestrationIsCanceled(t *testing.T) {
	t.Parallel()
	undo := orchestrator.NewActivity("undo", func(_ context.Context, who string) (string, error) { return who, nil })
	wait := func(ctx *orchestrator.Context, err error) (string, error) {
		if !errors.Is(err, orchestrator.ErrCanceled) {
			return "", fmt.Errorf("not canceled: %w", err)
		}
		if _, undone := undo.Call(orchestrator.WithoutCancel(ctx), ctx.ID()[:1]).Await(); undone != nil {
			return "", undone
		}
		return "", err
	}
	child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, _ string) (string, error) {
		_, err := orchestrator.Event[int](ctx, "never").Await()
		return wait(ctx, err)
	})
	parent := orchestrator.NewOrchestrator("parent", func(ctx *orchestrator.Context, in string) (string, error) {
		_, err := child.Call(ctx, in).Await()
		return wait(ctx, err)
	})
	for _, to := range []string{"", "child"} {
		orchestratortest.CrashEverywhere(t, func(*testing.T) orchestratortest.Scenario[string, string] {
			return orchestratortest.Scenario[string, string]{
				Orchestrator: parent, Orchestrators: []orchestrator.AnyOrchestrator{child}, Activities: []orchestrator.AnyActivity{undo},
				Steps: []orchestratortest.Step{{At: time.Hour, Command: "cancel", Reason: "not wanted", To: to}},
				Check: func(t *testing.T, r orchestratortest.Result[string]) {
					want := orchestrator.Canceled
					if to != "" {
						want = orchestrator.Failed // the parent was not canceled, and returns its result
					}
					if r.Status != want || !errors.Is(r.Err, orchestrator.ErrCanceled) || len(r.Called("undo")) != 2 || r.Elapsed.Round(time.Minute) != time.Hour {
						t.Error(r)
					}
				},
			}
		})
	}
}

// Detached orchestrations run, too, and steps reach them.
func TestDetachedOrchestrationsRun(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(*testing.T) orchestratortest.Scenario[int, int] {
		said := map[string]bool{}
		tell := orchestrator.NewActivity("tell", func(_ context.Context, what string) (string, error) { said[what] = true; return "", nil })
		detached := orchestrator.NewOrchestrator("detached", func(ctx *orchestrator.Context, n int) (string, error) {
			ctx.Sleep(time.Duration(n) * time.Hour)
			v, err := orchestrator.Event[string](ctx, "word").Await()
			if err != nil {
				return "", err
			}
			return tell.Call(ctx, fmt.Sprint(v, n)).Await()
		})
		starter := orchestrator.NewOrchestrator("starter", func(ctx *orchestrator.Context, n int) (int, error) {
			for i := range n {
				if _, err := detached.Start(ctx, fmt.Sprint("detached-", i), i); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		return orchestratortest.Scenario[int, int]{
			Orchestrator: starter, Orchestrators: []orchestrator.AnyOrchestrator{detached}, Activities: []orchestrator.AnyActivity{tell}, Input: 3,
			Steps: []orchestratortest.Step{{Event: "word", Data: "one", To: "detached"}, {At: 90 * time.Minute, Event: "word", Data: "two", To: "detached"}},
			Check: func(t *testing.T, r orchestratortest.Result[int]) {
				if r.Output != 3 || r.Elapsed > time.Minute || len(r.Calls) != 0 || len(said) != 2 || !said["one0"] || !said["two1"] {
					t.Errorf("%v\n%v", r, said)
				}
			},
		}
	})
}

// A fan-out of any width runs in the one process.
func TestWideFanOut(t *testing.T) {
	t.Parallel()
	square := orchestrator.NewActivity("square", func(_ context.Context, n int) (int, error) { return n * n, nil })
	wide := orchestrator.NewOrchestrator("wide", func(ctx *orchestrator.Context, n int) (int, error) {
		var calls []*orchestrator.Future[int]
		for i := range n {
			calls = append(calls, square.Call(ctx, i))
		}
		all, err := orchestrator.All(calls...)
		return len(all), err
	})
	got := orchestratortest.Run(t, orchestratortest.Scenario[int, int]{Orchestrator: wide, Activities: []orchestrator.AnyActivity{square}, Input: 1200})
	if got.Output != 1200 {
		t.Errorf("%s: %v", got.Status, got.Err)
	}
}

// A published event leaves once, at any number of crashes.
func TestPublished(t *testing.T) {
	t.Parallel()
	step := orchestrator.NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	o := orchestrator.NewOrchestrator("news", func(ctx *orchestrator.Context, n int) (int, error) {
		n, err := step.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		return n, ctx.Publish(orchestrator.Publication{TenantID: "t", Type: "stepped", Payload: []byte("1")})
	})
	orchestratortest.CrashEverywhere(t, func(*testing.T) orchestratortest.Scenario[int, int] {
		return orchestratortest.Scenario[int, int]{Orchestrator: o, Activities: []orchestrator.AnyActivity{step}, Check: func(t *testing.T, r orchestratortest.Result[int]) {
			if len(r.Published) != 1 || r.Published[0].Type != "stepped" || r.Published[0].CorrelationID != "test" {
				t.Errorf("published %+v", r.Published)
			}
		}}
	})
}
