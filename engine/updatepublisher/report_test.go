package updatepublisher_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

func at(minute int) time.Time { return time.Date(1999, 11, 1, 0, minute, 0, 0, time.UTC) }

// noted is the report about an instance in the registry.
type noted struct {
	Version    string
	LastUpdate updatepublisher.LastUpdate
	Health     updatepublisher.Health
}

func (p *publisher) noted(t testing.TB, id string) noted {
	t.Helper()
	i, err := p.registry.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var n noted
	_, err1 := i.Field("version", &n.Version)
	_, err2 := i.Field("lastUpdate", &n.LastUpdate)
	_, err3 := i.Field("health", &n.Health)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return n
}

func report(t testing.TB, id string, in updatepublisher.Input) engine.Message {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Message{CorrelationID: "test", Operation: updatepublisher.OperationReport, InstanceID: id, Input: text}
}

// Every outcome of a report, with a crash at any point: it is recorded, it is late, it waits for a lock, or it is
// dead-lettered.
func TestReports(t *testing.T) {
	t.Parallel()
	updated := &release.Finished{InstanceID: "behind", Status: release.Updated, Ring: "stable", Wanted: "2.0", Version: "2.0", CorrelationID: "c", FinishedAtUtc: at(5)}
	rolledBack := &release.Finished{InstanceID: "behind", Status: release.RolledBack, Wanted: "2.1", Version: "2.0", Reason: "it does not start", CorrelationID: "d", FinishedAtUtc: at(6)}
	unknown := &release.Finished{InstanceID: "behind", Status: release.Failed, Wanted: "2.1", CorrelationID: "e", FinishedAtUtc: at(7)}
	ill := &release.Health{InstanceID: "behind", Status: "Unhealthy", SinceUtc: at(3)}
	after := func(f *release.Finished, version string) noted {
		return noted{Version: version, LastUpdate: updatepublisher.LastUpdate{Status: f.Status, Ring: f.Ring, Wanted: f.Wanted, Reason: f.Reason, CorrelationID: f.CorrelationID, FinishedAtUtc: f.FinishedAtUtc}}
	}
	for name, c := range map[string]struct {
		id     string
		in     updatepublisher.Input
		before func(*testing.T, *publisher)
		state  noted
		late   bool
		err    string
	}{
		"updated":     {in: updatepublisher.Input{Finished: updated}, state: after(updated, "2.0")},
		"rolled back": {in: updatepublisher.Input{Finished: rolledBack}, state: after(rolledBack, "2.0")},
		"failed without a version": {in: updatepublisher.Input{Finished: unknown},
			state: after(unknown, "1.9")},
		"ill": {in: updatepublisher.Input{Health: ill}, state: noted{Version: "1.9", Health: updatepublisher.Health{Status: "Unhealthy", SinceUtc: at(3)}}},
		"late": {in: updatepublisher.Input{Finished: updated}, late: true, state: after(rolledBack, "1.9"), before: func(t *testing.T, p *publisher) {
			t.Helper()
			p.change(t, "behind", "lastUpdate", after(rolledBack, "").LastUpdate)
		}},
		"ill, late": {in: updatepublisher.Input{Health: ill}, late: true, state: noted{Version: "1.9", Health: updatepublisher.Health{Status: "Healthy", SinceUtc: at(4)}},
			before: func(t *testing.T, p *publisher) {
				t.Helper()
				p.change(t, "behind", "health", updatepublisher.Health{Status: "Healthy", SinceUtc: at(4)})
			}},
		"locked": {in: updatepublisher.Input{Finished: updated}, state: after(updated, "2.0"), before: func(t *testing.T, p *publisher) {
			t.Helper()
			if _, err := p.registry.Acquire(t.Context(), "behind", "drain/ann", 20*time.Minute); err != nil {
				t.Fatal(err)
			}
		}},
		"of nobody": {id: "nobody", in: updatepublisher.Input{Health: &release.Health{InstanceID: "nobody", Status: "Healthy", SinceUtc: at(1)}}, err: "not in the registry"},
		"damaged": {in: updatepublisher.Input{Health: ill}, err: "damaged", state: noted{}, before: func(t *testing.T, p *publisher) {
			t.Helper()
			p.change(t, "behind", "health", "well")
		}},
		"from the future": {in: updatepublisher.Input{Health: &release.Health{InstanceID: "behind", Status: "Healthy", SinceUtc: time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)}}, err: "ahead of the clock"},
		"of another":      {id: "new", in: updatepublisher.Input{Finished: updated}, err: "invalid input"},
		"of nothing":      {in: updatepublisher.Input{}, err: "invalid input"},
		"of both":         {in: updatepublisher.Input{Finished: updated, Health: ill}, err: "invalid input"},
		"a hostile text":  {in: updatepublisher.Input{Finished: &release.Finished{InstanceID: "behind", Status: release.Updated, Version: "../2", FinishedAtUtc: at(1)}}, err: "invalid input"},
		"no time":         {in: updatepublisher.Input{Finished: &release.Finished{InstanceID: "behind", Status: release.Updated, Version: "2"}}, err: "invalid input"},
		"ill, no status":  {in: updatepublisher.Input{Health: &release.Health{InstanceID: "behind", SinceUtc: at(1)}}, err: "invalid input"},
		"of all of them":  {id: engine.PublisherInstance, in: updatepublisher.Input{Health: ill}, err: "invalid input"},
		"a lot of reason": {in: updatepublisher.Input{Finished: &release.Finished{InstanceID: "behind", Status: release.Failed, Reason: strings.Repeat("x", 1025), FinishedAtUtc: at(1)}}, err: "invalid input"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orchestratortest.CrashEverywhere(t, func(t *testing.T) scenario {
				t.Helper()
				p := newPublisher(t)
				p.fill(t)
				if c.before != nil {
					c.before(t, p)
				}
				id := c.id
				if id == "" {
					id = "behind"
				}
				return p.scenario(t, report(t, id, c.in), func(t *testing.T, r result) {
					t.Helper()
					if c.err != "" {
						if r.Err == nil || !strings.Contains(r.Err.Error(), c.err) || !orchestrator.IsPermanent(r.Err) {
							t.Errorf("error %v, want %q", r.Err, c.err)
						}
						return
					}
					if diff := cmp.Diff(c.state, p.noted(t, id)); r.Err != nil || r.Output.Noted == c.late || diff != "" {
						t.Errorf("%v, %+v (-want +got):\n%s", r.Err, r.Output, diff)
					}
				})
			})
		})
	}
}

func (p *publisher) change(t testing.TB, id, field string, v any) {
	t.Helper()
	if _, err := p.registry.Update(t.Context(), id, "", func(i *registry.Instance) error { return i.SetField(field, v) }); err != nil {
		t.Fatal(err)
	}
}

// Reports in any order, some of them twice: in the end the registry has the newest.
func TestReportsInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := newPublisher(t)
		p.fill(t)
		steps := p.steps(t)
		var all []updatepublisher.ReportInput
		for n := range 6 {
			f := release.Finished{InstanceID: "new", Status: release.Updated, Version: fmt.Sprint("2.", n), CorrelationID: fmt.Sprint(n), FinishedAtUtc: at(n)}
			h := release.Health{InstanceID: "new", Status: fmt.Sprint("s", n), SinceUtc: at(n)}
			all = append(all, updatepublisher.ReportInput{InstanceID: "new", Finished: &f}, updatepublisher.ReportInput{InstanceID: "new", Health: &h})
		}
		all = append(all, all[:4]...)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, in := range all {
			if _, err := steps.Report(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.noted(t, "new"); n.Version != "2.5" || n.LastUpdate.CorrelationID != "5" || n.Health.Status != "s5" {
			t.Errorf("seed %d: %+v", seed, n)
		}
	}
}

// An instance whose application has reported the version is not notified again.
func TestWhoHasTheVersionIsNotToldAgain(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.fill(t)
	steps := p.steps(t)
	due := func() string {
		page, err := steps.Evaluate(t.Context(), updatepublisher.EvaluateInput{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(page.Due, " ")
	}
	if got := due(); !strings.Contains(got, "behind") {
		t.Fatalf("due: %s", got)
	}
	f := release.Finished{InstanceID: "behind", Status: release.Updated, Version: "2.0", CorrelationID: "c", FinishedAtUtc: at(1)}
	if _, err := steps.Report(t.Context(), updatepublisher.ReportInput{InstanceID: "behind", Finished: &f}); err != nil {
		t.Fatal(err)
	}
	if got := due(); strings.Contains(got, "behind") {
		t.Errorf("due again: %s", got)
	}
}

// An event of a managed application becomes a message of its instance and id; other and invalid events do not.
func TestAdaptReport(t *testing.T) {
	t.Parallel()
	event := func(kind, data string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":"e1","source":"/s","type":%q,"tenantid":"t","correlationid":"c","data":%s}`, kind, data)
	}
	const well = `{"instanceId":"i1","status":"Healthy","sinceUtc":"2026-11-01T00:00:00Z"}`
	m, ok, err := updatepublisher.AdaptReport([]byte(event("health.changed", well)))
	want := engine.Message{CorrelationID: engine.DeriveCorrelationID("report", "i1", "e1"), Engine: "update-publisher", Operation: "report", InstanceID: "i1", Input: json.RawMessage(`{"health":` + well + `}`)}
	if diff := cmp.Diff(want, m); !ok || err != nil || diff != "" {
		t.Errorf("%v %v (-want +got):\n%s", ok, err, diff)
	}
	for name, body := range map[string]string{
		"another event": event("update.available", well),
		"no instance":   event("health.changed", `{"status":"Healthy","sinceUtc":"1999-11-01T00:00:00Z"}`),
		"no data":       event("health.changed", "null"),
		"another form":  event("update.finished", `[]`),
		"no event":      `{"instanceId":"i1"}`,
		"no JSON":       `{`,
	} {
		if m, ok, err := updatepublisher.AdaptReport([]byte(body)); ok && err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
