package orchestratortest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// The engine of the README, with a site in memory. internal/architecture compiles the README's code.

type change struct{ InstanceID, Component, Version string }

type upgrade struct {
	InstanceID string
	Components []string
	Version    string
}

type upgraded struct{ Updated int }

// installation is the target of the engine: it holds the installed versions.
type installation struct {
	mu       sync.Mutex
	versions map[string]string
	broken   int // number of attempts of the orchestration in which verify fails
}

func (i *installation) install(component, version string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions[component] = version
}

func (i *installation) update(_ context.Context, c change) (change, error) {
	i.install(c.Component, c.Version)
	return c, nil
}

func (i *installation) verify(ctx context.Context, _ string) (struct{}, error) {
	if orchestrator.Info(ctx).Execution <= i.broken {
		return struct{}{}, orchestrator.Permanent(errors.New("it does not answer"))
	}
	return struct{}{}, nil
}

func (i *installation) rollback(_ context.Context, c change) (struct{}, error) {
	i.install(c.Component, "1")
	return struct{}{}, nil
}

// all reports whether every component has the version.
func (i *installation) all(version string) bool {
	for installed := range maps.Values(i.versions) {
		if installed != version {
			return false
		}
	}
	return true
}

// scenario returns an update from version 1 to 2 that must end as Completed with every component updated, or as
// Failed with none.
func (i *installation) scenario(steps ...orchestratortest.Step) orchestratortest.Scenario[upgrade, upgraded] {
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 5, FirstInterval: 2 * time.Second, Jitter: 0.5})
	update := orchestrator.NewActivity("update", i.update, retry)
	verify := orchestrator.NewActivity("verify", i.verify, retry, orchestrator.WithTimeout(time.Minute))
	rollback := orchestrator.NewActivity("rollback", i.rollback, retry)
	run := func(ctx *orchestrator.Context, r upgrade) (upgraded, error) {
		var updates []*orchestrator.Future[change]
		for _, component := range r.Components {
			change := change{r.InstanceID, component, r.Version}
			updates = append(updates, update.Call(ctx, change, orchestrator.WithUndo(rollback, change)))
		}
		made, err := orchestrator.All(updates...)
		if err == nil {
			err = ctx.Sleep(24 * time.Hour)
		}
		if err == nil {
			_, err = verify.Call(ctx, r.InstanceID).Await()
		}
		if err == nil {
			return upgraded{Updated: len(made)}, nil
		}
		if failed := orchestrator.Undo(ctx); failed != nil {
			return upgraded{}, errors.Join(err, failed)
		}
		return upgraded{}, orchestrator.Permanent(err)
	}
	return orchestratortest.Scenario[upgrade, upgraded]{
		Orchestrator: orchestrator.NewOrchestrator("update", run),
		Activities:   []orchestrator.AnyActivity{update, verify, rollback},
		Input:        upgrade{"i1", []string{"web", "db"}, "2"},
		Attempts:     3,
		Steps:        steps,
		Check: func(t *testing.T, r orchestratortest.Result[upgraded]) {
			right := i.all("1") // Failed or Canceled
			if r.Status == orchestrator.Completed {
				right = r.Output.Updated == 2 && i.all("2")
			}
			if slices.ContainsFunc(steps, func(s orchestratortest.Step) bool { return s.Command == "cancel" }) && r.Status == orchestrator.Failed && strings.Contains(r.Err.Error(), "activity rollback") {
				right = true // a person has to repair it, and is notified
			}
			if !right {
				t.Errorf("installed is %v\n%v\n%v", i.versions, r, r.Ledger)
			}
		},
	}
}

// An update that works, one that fails and is rewound, once or twice, one that fails for ever, and one that is canceled: with
// a second chance at every call, and with a crash at every storage call.
func TestTheReadmesEngine(t *testing.T) {
	t.Parallel()
	rewind := orchestratortest.Step{Command: "rewind", Reason: "the cause is mended"}
	redeliver := orchestratortest.Step{Command: "redeliver", At: 72 * time.Hour}
	for name, c := range map[string]struct {
		broken int
		steps  []orchestratortest.Step
		want   orchestrator.Status
	}{
		"works":                  {want: orchestrator.Completed, steps: []orchestratortest.Step{redeliver}},
		"is rewound":             {broken: 1, want: orchestrator.Completed, steps: []orchestratortest.Step{rewind}},
		"is rewound twice":       {broken: 2, want: orchestrator.Completed, steps: []orchestratortest.Step{rewind, rewind}},
		"comes again, and works": {broken: 1, want: orchestrator.Completed, steps: []orchestratortest.Step{redeliver}},
		"fails":                  {broken: 1000, want: orchestrator.Failed},
		"is canceled":            {want: orchestrator.Canceled, steps: []orchestratortest.Step{{At: time.Hour, Command: "cancel"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := func(*testing.T) orchestratortest.Scenario[upgrade, upgraded] {
				i := &installation{versions: map[string]string{"web": "1", "db": "1"}, broken: c.broken}
				return i.scenario(c.steps...)
			}
			got := orchestratortest.Run(t, scenario(t))
			if got.Status != c.want {
				t.Errorf("want %s: %v", c.want, got)
			}
			orchestratortest.FailEverywhere(t, scenario)
			orchestratortest.CrashEverywhere(t, scenario)
		})
	}
}

// The first version of the engine: it rolls back by its own calls and does not register them as compensations. This
// is also correct, because its next attempt starts over.
func TestRollbackByHand(t *testing.T) {
	t.Parallel()
	scenario := func(*testing.T) orchestratortest.Scenario[upgrade, upgraded] {
		i := &installation{versions: map[string]string{"web": "1", "db": "1"}, broken: 1}
		s := i.scenario(orchestratortest.Step{Command: "rewind"})
		update, verify := orchestrator.NewActivity("update", i.update), orchestrator.NewActivity("verify", i.verify)
		rollback := orchestrator.NewActivity("rollback", i.rollback)
		s.Activities = []orchestrator.AnyActivity{update, verify, rollback}
		s.Orchestrator = orchestrator.NewOrchestrator("update", func(ctx *orchestrator.Context, r upgrade) (out upgraded, err error) {
			var made []change
			defer func() {
				if err == nil || ctx.Parking() {
					return
				}
				for _, c := range made {
					if _, failed := rollback.Call(ctx, c).Await(); failed != nil {
						err = fmt.Errorf("%w, and it is not rolled back: %w", err, failed)
					}
				}
			}()
			for _, component := range r.Components {
				c := change{r.InstanceID, component, r.Version}
				made = append(made, c)
				if _, err := update.Call(ctx, c).Await(); err != nil {
					return out, err
				}
			}
			if _, err := verify.Call(ctx, r.InstanceID).Await(); err != nil {
				return out, err
			}
			return upgraded{Updated: len(made)}, nil
		})
		return s
	}
	orchestratortest.FailEverywhere(t, scenario)
	orchestratortest.CrashEverywhere(t, scenario)
}
