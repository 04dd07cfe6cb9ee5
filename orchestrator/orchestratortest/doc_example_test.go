package orchestratortest_test

import (
	"context"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// A test of an orchestrator that waits for two days, which take no time, with a fake activity; and then with a crash
// at every storage call. Here it is a plain function; in a test file it is a Test function.
func Example() {
	mail := orchestrator.NewActivity("mail", func(context.Context, string) (bool, error) { panic("tests send no mail") })
	reminder := orchestrator.NewOrchestrator("reminder", func(ctx *orchestrator.Context, to string) (string, error) {
		paid := orchestrator.Event[bool](ctx, "paid")
		if orchestrator.Any(ctx, paid, orchestrator.Timer(ctx, 48*time.Hour)) == 0 {
			return "paid", nil
		}
		_, err := mail.Call(ctx, to).Await()
		return "reminded", err
	})
	// Every run of CrashEverywhere gets a scenario of its own.
	scenario := func(*testing.T) orchestratortest.Scenario[string, string] {
		return orchestratortest.Scenario[string, string]{
			Orchestrator: reminder,
			Input:        "ada@example.org",
			Activities: []orchestrator.AnyActivity{
				orchestratortest.Fake(mail, func(context.Context, string) (bool, error) { return true, nil }),
			},
		}
	}
	_ = func(t *testing.T) {
		if got := orchestratortest.Run(t, scenario(t)); got.Output != "reminded" || got.Elapsed != 48*time.Hour {
			t.Error(got)
		}
		orchestratortest.CrashEverywhere(t, scenario)
	}
}
