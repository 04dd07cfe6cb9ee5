package orchestratortest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

type none = struct{}

// flaky returns an orchestration whose activity fails in the executions before the given one.
func flaky(until int, permanent bool) orchestratortest.Scenario[none, string] {
	work := orchestrator.NewActivity("work", func(ctx context.Context, in string) (string, error) {
		err := errors.New("not yet")
		if permanent {
			err = orchestrator.Permanent(err)
		}
		if in == "b" && orchestrator.Info(ctx).Execution < until {
			return "", err
		}
		return in, nil
	})
	return orchestratortest.Scenario[none, string]{
		Orchestrator: orchestrator.NewOrchestrator("flaky", func(ctx *orchestrator.Context, _ none) (string, error) {
			var all string
			for _, in := range []string{"a", "b"} {
				out, err := work.Call(ctx, in).Await()
				if err != nil {
					return "", err
				}
				all += out
			}
			number, err := orchestrator.Event[int](ctx, "number").Await()
			return fmt.Sprint(all, number), err
		}),
		Activities: []orchestrator.AnyActivity{work},
	}
}

// Every way to another attempt, with a crash at any point: the outcome, the time, and the activities that ran.
func TestAttempts(t *testing.T) {
	t.Parallel()
	number := orchestratortest.Step{Event: "number", Data: 7}
	command := func(name string, at time.Duration) orchestratortest.Step {
		return orchestratortest.Step{Command: name, At: at}
	}
	for name, c := range map[string]struct {
		until     int // the first execution that does not fail
		permanent bool
		attempts  int
		steps     []orchestratortest.Step
		want      string // the output, "" for a failure
		takes     time.Duration
		ran       int
	}{
		"one":                                  {until: 2, ran: 2},
		"the message comes again":              {until: 3, attempts: 3, steps: []orchestratortest.Step{number}, want: "ab7", takes: time.Minute, ran: 4},
		"the last fails, too":                  {until: 9, attempts: 3, takes: time.Minute, ran: 4},
		"another attempt cannot help":          {until: 9, attempts: 3, permanent: true, ran: 2},
		"retry":                                {until: 2, steps: []orchestratortest.Step{command("retry", 0), number}, want: "ab7", ran: 3},
		"retry later":                          {until: 2, steps: []orchestratortest.Step{command("retry", time.Hour), number}, want: "ab7", takes: time.Hour, ran: 3},
		"retry in vain":                        {until: 9, steps: []orchestratortest.Step{command("retry", 0), command("retry", time.Hour)}, takes: time.Hour, ran: 4},
		"rewind":                               {until: 2, permanent: true, steps: []orchestratortest.Step{command("rewind", 0), number}, want: "ab7", ran: 3},
		"rewind later, with attempts anew":     {until: 4, attempts: 2, steps: []orchestratortest.Step{command("rewind", time.Hour), number}, want: "ab7", takes: time.Hour + 30*time.Second, ran: 5},
		"redeliver while it waits":             {steps: []orchestratortest.Step{command("redeliver", 0), number}, want: "ab7", ran: 2},
		"redeliver when it has completed":      {steps: []orchestratortest.Step{number, command("redeliver", time.Hour)}, want: "ab7", ran: 2},
		"redeliver when it has failed":         {until: 2, permanent: true, steps: []orchestratortest.Step{command("redeliver", time.Hour), number}, want: "ab7", takes: time.Hour, ran: 3},
		"an event comes between two attempts":  {until: 2, attempts: 2, steps: []orchestratortest.Step{{At: 10 * time.Second, Event: "number", Data: 8}}, want: "ab8", takes: 30 * time.Second, ran: 3},
		"canceled between two attempts":        {until: 2, attempts: 2, steps: []orchestratortest.Step{{At: 10 * time.Second, Command: "cancel"}}, takes: 10 * time.Second, ran: 2},
		"terminated in the second of attempts": {until: 2, attempts: 2, steps: []orchestratortest.Step{{At: time.Hour, Command: "terminate"}}, takes: time.Hour, ran: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := func(*testing.T) orchestratortest.Scenario[none, string] {
				s := flaky(c.until, c.permanent)
				s.Attempts, s.Steps = c.attempts, c.steps
				return s
			}
			check := func(t *testing.T, r orchestratortest.Result[string]) {
				if (r.Err == nil) != (c.want != "") || r.Output != c.want || r.Elapsed.Round(10*time.Second) != c.takes {
					t.Error(r)
				}
			}
			r := orchestratortest.Run(t, scenario(t))
			if check(t, r); len(r.Ran("work")) != c.ran {
				t.Errorf("%d functions ran, want %d: %v", len(r.Ledger), c.ran, r.Ledger)
			}
			orchestratortest.CrashEverywhere(t, func(t *testing.T) orchestratortest.Scenario[none, string] {
				s := scenario(t)
				s.Check = check
				return s
			})
		})
	}
}

// The ledger has every function that ran: real activities, fakes, and wrappers around them.
func TestEveryActivityIsInTheLedger(t *testing.T) {
	t.Parallel()
	type wrapped struct{ orchestrator.AnyActivity }
	type pair struct{ A, B *int }
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 2, FirstInterval: time.Second})
	busy := errors.New("busy")
	real := orchestrator.NewActivity("real", func(ctx context.Context, in pair) (*pair, error) {
		if orchestrator.Info(ctx).Attempt == 1 {
			return nil, busy
		}
		return &in, nil
	}, retry)
	faked := orchestrator.NewActivity("faked", func(context.Context, string) (string, error) { return "", errors.New("real") })
	inner := orchestrator.NewActivity("wrapped", func(context.Context, []byte) (map[string]any, error) { panic("oh") })
	o := orchestrator.NewOrchestrator("test", func(ctx *orchestrator.Context, _ none) (string, error) {
		one := 1
		p, err := real.Call(ctx, pair{A: &one}).Await()
		if err != nil || p.B != nil || *p.A != 1 {
			return "", fmt.Errorf("%v, %w", p, err)
		}
		if _, err := inner.Call(ctx, nil).Await(); err == nil || !strings.Contains(err.Error(), "panic: oh") {
			return "", fmt.Errorf("no panic: %w", err)
		}
		return faked.Call(ctx, "<in>").Await()
	})
	got := orchestratortest.Run(t, orchestratortest.Scenario[none, string]{Orchestrator: o, Activities: []orchestrator.AnyActivity{real, wrapped{inner}, faked,
		orchestratortest.Fake(faked, func(_ context.Context, in string) (string, error) { return in, nil })}})
	var lines []string
	for _, e := range got.Ledger {
		lines = append(lines, e.String())
	}
	want := []string{`real {"A":1,"B":null} of test/1/1, attempt 1, failed: busy`, `real {"A":1,"B":null} of test/1/1, attempt 2`,
		`wrapped null of test/1/2, attempt 1, failed: panic: oh`, `faked "<in>" of test/1/3, attempt 1`}
	if got.Output != "<in>" || !slices.Equal(lines, want) || !errors.Is(got.Ledger[0].Err, busy) || len(got.Ran("real")) != 2 {
		t.Errorf("%v\n%s\nwant\n%s", got, strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// Sub-orchestrations that are canceled at their caller's end are driven to their end, with their clean-up, before
// Check runs; abandoned ones continue.
func TestChildrenEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(*testing.T) orchestratortest.Scenario[none, int] {
		var said []string
		tell := orchestrator.NewActivity("tell", func(_ context.Context, what string) (none, error) { said = append(said, what); return none{}, nil })
		child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, what string) (none, error) {
			waited := ctx.Sleep(24 * time.Hour)
			shielded := orchestrator.WithoutCancel(ctx)
			if err := shielded.Sleep(time.Hour); err != nil {
				return none{}, err
			}
			_, err := tell.Call(shielded, fmt.Sprint(what, " ", waited)).Await()
			return none{}, errors.Join(waited, err)
		})
		caller := orchestrator.NewOrchestrator("caller", func(ctx *orchestrator.Context, _ none) (int, error) {
			left := child.Call(ctx, "left", orchestrator.WithParentClose(orchestrator.AbandonChild))
			return orchestrator.Any(ctx, left, child.Call(ctx, "lost"), orchestrator.Timer(ctx, time.Minute)), nil
		})
		return orchestratortest.Scenario[none, int]{Orchestrator: caller, Orchestrators: []orchestrator.AnyOrchestrator{child}, Activities: []orchestrator.AnyActivity{tell},
			Check: func(t *testing.T, r orchestratortest.Result[int]) {
				said := slices.Compact(said)
				if r.Output != 2 || r.Elapsed.Round(time.Minute) != time.Minute || len(said) != 2 || !strings.HasPrefix(said[0], "lost ") || said[1] != "left <nil>" {
					t.Errorf("%v\n%q", r, said)
				}
			}}
	})
}
