package updatepublisher_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

type scenario = orchestratortest.Scenario[engine.Message, updatepublisher.Result]

type result = orchestratortest.Result[updatepublisher.Result]

func (p *publisher) scenario(t *testing.T, m engine.Message, check func(*testing.T, result)) scenario {
	t.Helper()
	d := updatepublisher.Definition(p.steps(t))
	return scenario{Orchestrator: d.Orchestrator, Activities: append(d.Operations, d.Activities...), Input: m, Check: check}
}

// told returns the tenants, instances and versions of events, sorted.
func told(t *testing.T, events []orchestrator.Publication) []string {
	t.Helper()
	var all []string
	for _, p := range events {
		var n release.Notice
		if err := json.Unmarshal(p.Payload, &n); err != nil || p.Type != "update.available" || p.OrderKey != n.InstanceID {
			t.Errorf("event %+v: %v", p, err)
		}
		all = append(all, fmt.Sprintf("%s: %s %s %d", p.TenantID, n.InstanceID, n.Version, len(n.Components)))
	}
	slices.Sort(all)
	return all
}

// The notices of a run, with a crash at any point.
func TestRuns(t *testing.T) {
	t.Parallel()
	all := engine.Message{CorrelationID: "test", InstanceID: engine.PublisherInstance}
	ask := func(operation, instance, input string) engine.Message {
		return engine.Message{CorrelationID: "test", Operation: operation, InstanceID: instance, Input: json.RawMessage(input)}
	}
	everybody := []string{"publisher: behind 2.0 0", "t1: " + canary + " 2.10 2", "t5: new 2.0 0", "t6: odd 2.0 0"}
	for name, c := range map[string]struct {
		m    engine.Message
		want updatepublisher.Result
		told []string
		err  string
	}{
		"all":                    {m: all, want: updatepublisher.Result{Evaluated: 9, Notified: 4, Unreadable: 1, UnknownRings: map[string]int{"none": 1}}, told: everybody},
		"all by name":            {m: ask("evaluate", engine.PublisherInstance, `{"slot":"2026-01-01T00:00:00Z"}`), want: updatepublisher.Result{Evaluated: 9, Notified: 4, Unreadable: 1, UnknownRings: map[string]int{"none": 1}}, told: everybody},
		"one":                    {m: ask("notify", "new", ""), want: updatepublisher.Result{Notified: 1}, told: []string{"t5: new 2.0 0"}},
		"one that has it":        {m: ask("notify", "current", "")},
		"one that is gone":       {m: ask("notify", "nobody", "")},
		"a report to evaluate":   {m: ask("evaluate", engine.PublisherInstance, `{"health":{"instanceId":"new","status":"Healthy","sinceUtc":"2026-11-01T00:00:00Z"}}`), err: "needs the operation report"},
		"one that is unreadable": {m: ask("notify", "broken", ""), err: "damaged"},
		"notify all":             {m: ask("notify", engine.PublisherInstance, ""), err: "invalid input"},
		"evaluate one":           {m: ask("evaluate", "new", ""), err: "invalid input"},
		"another operation":      {m: ask("explode", engine.PublisherInstance, ""), err: "invalid input"},
		"an unknown field":       {m: ask("", engine.PublisherInstance, `{"version":"3"}`), err: "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orchestratortest.CrashEverywhere(t, func(t *testing.T) scenario {
				t.Helper()
				p := newPublisher(t)
				p.fill(t)
				return p.scenario(t, c.m, func(t *testing.T, r result) {
					t.Helper()
					if (r.Err == nil) != (c.err == "") || (r.Err != nil && (!strings.Contains(r.Err.Error(), c.err) || !orchestrator.IsPermanent(r.Err))) {
						t.Errorf("error %v, want %q", r.Err, c.err)
					}
					if diff := cmp.Diff(c.want, r.Output) + cmp.Diff(c.told, told(t, r.Published)); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
			})
		})
	}
}

// An empty registry, and one without releases.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(t *testing.T) scenario {
		t.Helper()
		m := engine.Message{CorrelationID: "test", InstanceID: engine.PublisherInstance}
		return newPublisher(t).scenario(t, m, func(t *testing.T, r result) {
			t.Helper()
			if r.Err != nil || !cmp.Equal(r.Output, updatepublisher.Result{}) {
				t.Errorf("%+v, %v", r.Output, r.Err)
			}
		})
	})
}

// The engine decides as when the golden history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.fill(t)
	orchestratortest.Golden(t, "testdata/golden.json", p.scenario(t, engine.Message{CorrelationID: "test", InstanceID: engine.PublisherInstance}, nil))
	orchestratortest.Golden(t, "testdata/golden-report.json", p.scenario(t, report(t, "behind", updatepublisher.Input{
		Health: &release.Health{InstanceID: "behind", Status: "Healthy", SinceUtc: at(1)}}), nil))
}

// An instance that was updated between its evaluation and its notice is not notified.
func TestUpdatedMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.add(t, "one", "t", nil)
	p.add(t, "two", "t", nil)
	steps := p.steps(t)
	page, err := steps.Evaluate(t.Context(), updatepublisher.EvaluateInput{})
	if err != nil || len(page.Due) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	_, err = p.registry.Update(t.Context(), "one", "", func(i *registry.Instance) error { return i.SetField("version", "2.0") })
	if err != nil {
		t.Fatal(err)
	}
	out, err := steps.Notify(t.Context(), updatepublisher.NotifyInput{Instances: page.Due})
	if err != nil || len(out.Notices) != 1 || out.Notices[0].InstanceID != "two" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	reg := newPublisher(t).registry
	component := release.Component{Name: "web", Version: "1"}
	for want, c := range map[string]updatepublisher.Config{
		"required":         {},
		"default ring":     {Registry: reg, DefaultRing: "a b"},
		"a page of":        {Registry: reg, Page: 1001},
		"two releases":     {Registry: reg, Releases: []updatepublisher.Release{{Ring: "a", Version: "1"}, {Ring: "a", Version: "2"}}},
		"the release":      {Registry: reg, Releases: []updatepublisher.Release{{Ring: "a", Version: "../1"}}},
		"51 components":    {Registry: reg, Releases: []updatepublisher.Release{{Ring: "a", Version: "1", Components: make([]release.Component, 51)}}},
		`component "web"`:  {Registry: reg, Releases: []updatepublisher.Release{{Ring: "a", Version: "1", Components: []release.Component{component, component}}}},
		"the release \"\"": {Registry: reg, Releases: []updatepublisher.Release{{}}},
	} {
		if _, err := updatepublisher.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestParseReleases(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(releases())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := updatepublisher.ParseReleases(string(text)); err != nil || !cmp.Equal(got, releases()) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := updatepublisher.ParseReleases(""); err != nil || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"{", "{}", `[{"rnig":"a"}]`, "[] []", `[{"ring":1}]`} {
		if got, err := updatepublisher.ParseReleases(bad); err == nil {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}
