package alerts_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

func definition(t *testing.T) engine.Definition {
	t.Helper()
	steps, err := alerts.New(alerts.Config{Rules: []alerts.Rule{{Name: "page", Event: "alert.page", TenantID: "ops"}, {Name: "note", Event: "alert.note"}}})
	if err != nil {
		t.Fatal(err)
	}
	return alerts.Definition(steps)
}

func scenario(t *testing.T) orchestratortest.Scenario[engine.Message, alerts.ProcessOutput] {
	t.Helper()
	d := definition(t)
	m, _, err := d.Adapt([]byte(common("Fired")))
	if err != nil {
		t.Fatal(err)
	}
	return orchestratortest.Scenario[engine.Message, alerts.ProcessOutput]{Orchestrator: d.Orchestrator, Activities: d.Operations, Input: m,
		Check: func(t *testing.T, r orchestratortest.Result[alerts.ProcessOutput]) {
			var told []string
			for _, p := range r.Published {
				told = append(told, p.TenantID+" "+p.Type)
				if strings.Contains(string(p.Payload), "in-the-context") || !strings.Contains(string(p.Payload), alertID) {
					t.Errorf("payload %s", p.Payload)
				}
			}
			if diff := cmp.Diff([]string{"ops alert.page", "publisher alert.note"}, told); r.Err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", r.Err, diff)
			}
		}}
}

// The engine decides as when the golden history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden.json", scenario(t))
}

// With any crash in the runtime, each event is published once.
func TestCrashesEverywhere(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, scenario)
}

func newPlatform(t *testing.T) *enginetest.World {
	t.Helper()
	return enginetest.New(t, enginetest.Config{Engines: func(enginetest.Stores) []engine.Definition {
		return []engine.Definition{definition(t)}
	}})
}

// deliver returns the body's only delivery, or the last of several.
func deliver(t *testing.T, w *enginetest.World, body string, count int) error {
	t.Helper()
	return w.Process().Handle(t.Context(), engine.Delivery{Queue: alerts.Queue, ID: "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11",
		Body: []byte(body), DequeueCount: count})
}

// An alert from the queue becomes a row of the history, its repetition none.
func TestQueueToHistory(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for range 2 {
		if err := deliver(t, p, common("Fired"), 1); err != nil {
			t.Fatal(err)
		}
	}
	m, _, err := alerts.Adapt([]byte(common("Fired")))
	if err != nil {
		t.Fatal(err)
	}
	entries := p.History(alerts.Engine, m.CorrelationID)
	if len(entries) != 1 || entries[0].Operation != alerts.OperationProcess || entries[0].RunStatus != engine.StatusSucceeded {
		t.Errorf("%+v", entries)
	}
	if len(p.Published()) != 2 {
		t.Errorf("told %v", p.Published())
	}
}

// An alert that exceeds a message runs from its blob, once the blob can be read.
func TestLargeAlert(t *testing.T) {
	t.Parallel()
	broken := true
	p := newPlatform(t)
	claims := engine.NewClaims(p.Blobs, "")
	p.RestartOver(func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if broken && c.Operation == "Get" && c.Service == "blobs" {
			return blobs.ErrThrottled
		}
		return next(ctx)
	})
	m, _, err := alerts.Adapt([]byte(strings.Replace(common("Fired"), `"a":"b"`, `"a":"`+strings.Repeat("b", 200<<10)+`"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := claims.Pack(t.Context(), m)
	if err != nil || len(body) > engine.MaxMessage {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if err := deliver(t, p, string(body), 1); !errors.Is(err, blobs.ErrThrottled) {
		t.Errorf("without the blob: %v", err)
	}
	broken = false
	if err := deliver(t, p, string(body), 2); err != nil || p.Process().Count(engine.Succeeded) != 1 || len(p.Published()) != 2 {
		t.Errorf("%v, %d succeeded, told %v", err, p.Process().Count(engine.Succeeded), p.Published())
	}
}

// A message that is no alert is a dead letter, with its original body.
func TestQueueToDeadLetter(t *testing.T) {
	t.Parallel()
	for _, body := range []string{common("Closed"), `{"input":{"schemaId":"x"}}`, `{"operation":"rotate"}`, `{}`, `not JSON`} {
		p := newPlatform(t)
		if err := deliver(t, p, body, 1); err != nil {
			t.Fatal(err)
		}
		dead := p.DeadLetters(alerts.Engine)
		if len(dead) != 1 || string(dead[0].OriginalMessage) != body || p.Process().Count(engine.DeadLettered) != 1 {
			t.Errorf("%s: %+v", body, dead)
		}
	}
}

// An alert is identified by its natural key, with any details, in a message or in a blob. Under a correlation id that
// a sender chose, other content is other work and becomes a dead letter.
func TestAlertsUnderOneCorrelationID(t *testing.T) {
	t.Parallel()
	detailed := func(detail string) string {
		return strings.Replace(common("Fired"), `"description":"d"`, `"description":"`+detail+`"`, 1)
	}
	accepted := func(t *testing.T, w *enginetest.World, body string) string {
		t.Helper()
		m, err := definition(t).Accept([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		packed, err := engine.NewClaims(w.Blobs, "").Pack(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return string(packed)
	}
	envelope := func(t *testing.T, w *enginetest.World, detail string) string {
		t.Helper()
		return `{"correlationId":"chosen","input":` + detailed(detail) + `}`
	}
	long := strings.Repeat("long", engine.MaxMessage/4)
	for name, c := range map[string]struct {
		body          func(t *testing.T, w *enginetest.World, detail string) string
		first, second string
		conflicts     int
	}{
		"as it arrives":    {func(_ *testing.T, _ *enginetest.World, detail string) string { return detailed(detail) }, "one", "two", 0},
		"over HTTP":        {func(t *testing.T, w *enginetest.World, detail string) string { return accepted(t, w, detailed(detail)) }, "one", "two", 0},
		"over HTTP, large": {func(t *testing.T, w *enginetest.World, detail string) string { return accepted(t, w, detailed(detail)) }, long, long + "er", 0},
		"envelope":         {envelope, "one", "two", 1},
		"same envelope":    {envelope, "one", "one", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlatform(t)
			for _, detail := range []string{c.first, c.second} {
				w.Send(alerts.Queue, c.body(t, w, detail))
				w.Deliver()
			}
			dead := w.DeadLetters(alerts.Engine)
			if len(dead) != c.conflicts || len(w.Published()) != 2 {
				t.Fatalf("%d events, dead letters %+v", len(w.Published()), dead)
			}
			if c.conflicts == 1 && (dead[0].DetectedReason != engine.ReasonCorrelationConflict || string(dead[0].OriginalMessage) != envelope(t, w, c.second)) {
				t.Errorf("%+v", dead[0])
			}
		})
	}
}
