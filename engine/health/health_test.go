package health_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

type scenario = orchestratortest.Scenario[engine.Message, health.Result]

type result = orchestratortest.Result[health.Result]

func message(operation, input string) engine.Message {
	return engine.Message{CorrelationID: "test", InstanceID: instance, Operation: operation, Input: json.RawMessage(input)}
}

func (s *site) scenario(t *testing.T, m engine.Message, check func(*testing.T, result), steps ...orchestratortest.Step) scenario {
	t.Helper()
	d := health.Definition(s.steps(t, s.registry))
	return scenario{Orchestrator: d.Orchestrator, Activities: append(d.Operations, d.Activities...), Input: m, Check: check, Steps: steps}
}

var (
	warned = health.Report{Status: health.Degraded, Message: "the disk is nearly full"}
	failed = health.Report{Status: health.Unhealthy, Message: "no database"}
	well   = health.Report{Status: health.Healthy}
)

// statuses returns the statuses in events, each event once.
func statuses(t *testing.T, events []orchestrator.Publication) []health.Status {
	t.Helper()
	var all []health.Status
	seen := map[string]bool{}
	for _, e := range events {
		var h release.Health
		if err := json.Unmarshal(e.Payload, &h); err != nil || h.InstanceID != instance || h.SinceUtc.IsZero() {
			t.Errorf("event %s: %v", e.Payload, err)
		}
		if !seen[e.Key] {
			seen[e.Key], all = true, append(all, health.Status(h.Status))
		}
	}
	return all
}

// Every outcome of a check, with a crash at any point.
func TestChecks(t *testing.T) {
	t.Parallel()
	type reports = map[string]health.Report
	type answers = map[string]healthtest.Answer
	const slot = `{"slot":"1999-12-31T23:55:00Z"}`
	hangs := health.Report{Status: health.Unhealthy, Message: "deadline"}
	for name, c := range map[string]struct {
		components answers
		spoil      []healthtest.Answer
		m          engine.Message
		steps      []orchestratortest.Step
		want       string // of the error, "" for none
		state      state
		ill        int
	}{
		"all well":          {components: answers{"web": healthtest.Pass(), "db": healthtest.Pass()}, m: message("", slot), state: state{Status: health.Healthy, Components: reports{"web": well, "db": well}}},
		"asked for by name": {components: answers{"web": healthtest.Pass()}, m: message("check", ""), state: state{Status: health.Healthy, Components: reports{"web": well}}},
		"one not so well":   {components: answers{"web": healthtest.Pass(), "db": healthtest.Warn()}, m: message("", slot), ill: 1, state: state{Status: health.Degraded, Components: reports{"web": well, "db": warned}}},
		"one ill":           {components: answers{"web": healthtest.Fail(), "db": healthtest.Warn()}, m: message("", slot), ill: 2, state: state{Status: health.Unhealthy, Components: reports{"web": failed, "db": warned}}},
		"one cut off once":  {components: answers{"web": {Cut: true, Body: `{"status":"up"}`}}, m: message("", slot), state: state{Status: health.Healthy, Components: reports{"web": well}}},
		"one hangs":         {components: answers{"web": {Hang: true}, "db": healthtest.Pass()}, m: message("", slot), ill: 1, state: state{Status: health.Unhealthy, Components: reports{"web": hangs, "db": well}}},
		"no components":     {m: message("", slot), state: state{Status: health.Healthy}},
		"a bad moment":      {components: answers{"web": healthtest.Pass()}, spoil: []healthtest.Answer{{Status: 503}, {Status: 403}}, m: message("", slot), state: state{Status: health.Healthy, Components: reports{"web": well}}},
		"refused":           {spoil: []healthtest.Answer{{Status: 404}, {Status: 404}, {Status: 404}, {Status: 404}}, m: message("", slot), want: "refuses"},
		"a hostile name":    {components: answers{"..": healthtest.Pass()}, m: message("", slot), want: "refuses"},
		"unknown instance":  {m: engine.Message{CorrelationID: "test", InstanceID: "nobody"}, want: "not in the registry"},
		"no instance":       {m: engine.Message{CorrelationID: "test", InstanceID: engine.PublisherInstance}, want: "instanceId is required"},
		"another operation": {m: message("explode", slot), want: "cannot be asked for"},
		"an unknown field":  {m: message("", `{"solt":1}`), want: "unknown field"},
		"canceled":          {components: answers{"web": {Hang: true}}, m: message("", slot), steps: []orchestratortest.Step{{At: 3 * time.Second, Command: "cancel"}}, want: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orchestratortest.CrashEverywhere(t, func(t *testing.T) scenario {
				t.Helper()
				s := newSite(t, c.components)
				s.server.Spoil(c.spoil...)
				return s.scenario(t, c.m, func(t *testing.T, r result) {
					t.Helper()
					if (r.Err == nil) != (c.want == "") || (r.Err != nil && !strings.Contains(r.Err.Error(), c.want)) {
						t.Errorf("error %v, want %q", r.Err, c.want)
					}
					if r.Err != nil && r.Status == orchestrator.Failed && !orchestrator.IsPermanent(r.Err) {
						t.Errorf("another attempt would follow: %v", r.Err)
					}
					now := s.state(t)
					if told := statuses(t, r.Published); now.Status != "" && !slices.Equal(told, []health.Status{now.Status}) {
						t.Errorf("published %v of %s", told, now.Status)
					}
					if got := now.Components["web"]; name == "one hangs" && strings.Contains(got.Message, "deadline") {
						now.Components["web"] = hangs
					}
					if diff := cmp.Diff(c.state, now); diff != "" || len(r.Output.Ill) != c.ill {
						t.Errorf("%+v, state (-want +got):\n%s", r.Output, diff)
					}
				}, c.steps...)
			})
		})
	}
}

// The engine decides as when the golden histories were written, of which the first is from before changes were
// published.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"golden", "golden-told"} {
		s := newSite(t, map[string]healthtest.Answer{"web": healthtest.Pass(), "db": healthtest.Fail(), "cache": {Body: "{}"}})
		orchestratortest.Golden(t, "testdata/"+file+".json", s.scenario(t, message("", `{"slot":"1999-12-31T23:55:00Z"}`), nil))
	}
}

// A late check neither runs nor overwrites a later result, and a status keeps its start time.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]healthtest.Answer{"web": healthtest.Pass()})
	steps, noon := s.steps(t, s.registry), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if _, err := s.registry.Acquire(t.Context(), instance, "job", 0); err != nil {
		t.Fatal(err)
	}
	aggregate := func(at time.Time, r health.Report, scheduled bool) error {
		_, err := steps.Aggregate(t.Context(), health.AggregateInput{InstanceID: instance, JobID: "job", CheckedAt: at, Scheduled: scheduled,
			Findings: []health.Finding{{Component: "web", Report: r}}})
		return err
	}
	if err := errors.Join(aggregate(noon, failed, true), aggregate(noon.Add(time.Minute), failed, true), aggregate(noon.Add(-time.Hour), well, true)); err != nil {
		t.Fatal(err)
	}
	i, err := s.registry.Get(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	want := health.Summary{Status: health.Unhealthy, SinceUtc: noon, Untold: true, CheckedAtUtc: noon.Add(time.Minute), ScheduledAtUtc: noon.Add(time.Minute), Components: map[string]health.Component{"web": {Report: failed, SinceUtc: noon}}}
	if got, _, err := health.SummaryOf(i); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	if err := aggregate(noon.Add(20*time.Minute), well, false); err != nil { // manual: it covers no slot
		t.Fatal(err)
	}
	for slot, superseded := range map[time.Time]bool{{}: false, noon: true, noon.Add(5 * time.Minute): false, noon.Add(15 * time.Minute): false} {
		if list, err := steps.List(t.Context(), health.ListInput{InstanceID: instance, Slot: slot}); err != nil || list.Superseded != superseded {
			t.Errorf("slot %v: %+v, %v", slot, list, err)
		}
	}
	_, err = steps.Aggregate(t.Context(), health.AggregateInput{InstanceID: instance, JobID: "other", CheckedAt: noon.Add(time.Hour)})
	if !errors.Is(err, registry.ErrLocked) {
		t.Errorf("without the lock: %v", err)
	}
}

// Messages of components are untrusted: bounded, and without secrets.
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"long": strings.Repeat("ä", 400), "secret": "AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0;EndpointSuffix=x"} {
		body, err := json.Marshal(map[string]string{"status": "fail", "output": text})
		if err != nil {
			t.Fatal(err)
		}
		s := newSite(t, map[string]healthtest.Answer{"web": {Body: string(body)}})
		got, err := s.steps(t, s.registry).Check(t.Context(), health.CheckInput{InstanceID: instance, Component: "web"})
		if err != nil || len(got.Message) > 260 || strings.Contains(got.Message, "c2VjcmV0") || strings.Contains(got.Message, "\uFFFD") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	many := map[string]healthtest.Answer{}
	for n := range 201 {
		many[fmt.Sprint("c", n)] = healthtest.Pass()
	}
	s := newSite(t, many)
	if _, err := s.steps(t, s.registry).List(t.Context(), health.ListInput{InstanceID: instance}); !errors.Is(err, health.ErrRefused) {
		t.Errorf("201 components: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := health.New(health.Config{CheckTimeout: -1})
	if err == nil || !strings.Contains(err.Error(), "required") || !strings.Contains(err.Error(), "negative") {
		t.Errorf("error %v", err)
	}
}
