package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/secrets"
)

const (
	application  = "0b1f5a2e-0000-4000-8000-000000000001"
	rotationsSet = `{"hmac":[{"instanceId":"i1","tenantId":"t1"},{"instanceId":"i2"}],
		"spn":[{"applicationId":"0B1F5A2E-0000-4000-8000-000000000001","tenantId":"t2"}],
		"tls":[{"domains":["A.example.com","b.example.com"]}]}`
)

// due is when the ticks of these tests are due.
var due = time.Date(2026, 11, 21, 2, 11, 0, 0, time.UTC)

func parseRotations(t *testing.T, text string) rotations {
	t.Helper()
	all, err := rotationsFrom(emulator.with(rotationsSetting, text).lookup)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// scheduleOf is the schedule of an engine whose queue is there.
func scheduleOf(t *testing.T, name string, messages queues.Store) schedule {
	t.Helper()
	if err := messages.CreateQueue(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return schedule{engine: name, queue: name, targets: parseRotations(t, rotationsSet)[name], queues: messages,
		log: slog.New(slog.DiscardHandler), now: func() time.Time { return due }}
}

// takeAll takes all messages out of a queue.
func takeAll(t *testing.T, from queues.Store, queue string) (bodies [][]byte) {
	t.Helper()
	for {
		got, err := from.Receive(t.Context(), queue, queues.MaxReceive, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			return bodies
		}
		for _, m := range got {
			bodies = append(bodies, queues.Decode(m.Text))
		}
	}
}

func takeMessages(t *testing.T, from queues.Store, queue string) (all []engine.Message) {
	t.Helper()
	for _, body := range takeAll(t, from, queue) {
		var m engine.Message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func TestScheduleSendsAMessageATarget(t *testing.T) {
	t.Parallel()
	id := func(name, target string) string {
		return engine.DeriveCorrelationID("schedule", name, target, "2026-11-21")
	}
	for name, want := range map[string][]engine.Message{
		hmac.Engine: {
			{CorrelationID: id("hmac", "i1"), Engine: "hmac", InstanceID: "i1", TenantID: "t1", Input: []byte(`{"slot":"2026-11-21"}`)},
			{CorrelationID: id("hmac", "i2"), Engine: "hmac", InstanceID: "i2", Input: []byte(`{"slot":"2026-11-21"}`)},
		},
		spn.Engine: {{CorrelationID: id("spn", application), Engine: "spn", TenantID: "t2",
			Input: []byte(`{"applicationId":"` + application + `","slot":"2026-11-21"}`)}},
		tls.Engine: {{CorrelationID: id("tls", tls.CertificateName([]string{"a.example.com"})), Engine: "tls",
			Input: []byte(`{"domains":["a.example.com","b.example.com"]}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := queues.NewMemory()
			s := scheduleOf(t, name, messages)
			if err := s.handle(t.Context(), trigger.TimerDelivery{ScheduledAt: due, FiredAt: due}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, takeMessages(t, messages, name)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoRotationsIsNoMessages(t *testing.T) {
	t.Parallel()
	messages := queues.NewMemory()
	s := scheduleOf(t, hmac.Engine, messages)
	s.targets = parseRotations(t, " ")[hmac.Engine]
	if err := s.handle(t.Context(), trigger.TimerDelivery{ScheduledAt: due}); err != nil || len(takeAll(t, messages, hmac.Engine)) != 0 {
		t.Errorf("there are messages, or %v", err)
	}
}

func TestSlot(t *testing.T) {
	t.Parallel()
	now := due.Add(5 * time.Hour)
	s := schedule{now: func() time.Time { return now }}
	east := time.FixedZone("east", 14*3600)
	for name, tt := range map[string]struct {
		d    trigger.TimerDelivery
		want string
	}{
		"on time":                    {trigger.TimerDelivery{ScheduledAt: due, FiredAt: due.Add(time.Second)}, "2026-11-21"},
		"a moment early":             {trigger.TimerDelivery{ScheduledAt: due, FiredAt: due.Add(-time.Second)}, "2026-11-21"},
		"late, after midnight":       {trigger.TimerDelivery{ScheduledAt: due, FiredAt: due.Add(30 * time.Hour), IsPastDue: true}, "2026-11-21"},
		"by hand, the next is due":   {trigger.TimerDelivery{ScheduledAt: due.AddDate(0, 0, 1), FiredAt: due.Add(time.Hour)}, "2026-11-21"},
		"without a status":           {trigger.TimerDelivery{FiredAt: due}, "2026-11-21"},
		"without any time":           {trigger.TimerDelivery{}, "2026-11-21"},
		"without the time of firing": {trigger.TimerDelivery{ScheduledAt: due.AddDate(0, 0, -1)}, "2026-11-20"},
		"in another time zone":       {trigger.TimerDelivery{ScheduledAt: due.In(east), FiredAt: due.In(east)}, "2026-11-21"},
	} {
		if got := s.slot(tt.d); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A tick that dies at any call, or has one refused, sends what is missing when it is repeated. What it sends twice has the
// same correlation id.
func TestScheduleIsRepeatable(t *testing.T) {
	t.Parallel()
	tick := trigger.TimerDelivery{ScheduledAt: due, FiredAt: due}
	for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied, faults.Unknown, faults.Throttled} {
		for at := 1; at <= 2; at++ {
			t.Run(fmt.Sprintf("%v at %d", fault, at), func(t *testing.T) {
				t.Parallel()
				messages := queues.NewMemory()
				whole := scheduleOf(t, hmac.Engine, messages)
				broken := whole
				plan := &faults.Plan{At: at, Fault: fault}
				broken.queues = faults.Queues(messages, plan.Intercept)
				if err := broken.handle(t.Context(), tick); err == nil {
					t.Fatal("a tick that failed reports nothing")
				}
				late := tick
				late.FiredAt, late.IsPastDue = due.Add(23*time.Hour), true
				if err := whole.handle(t.Context(), late); err != nil {
					t.Fatal(err)
				}
				runs := map[string]string{}
				for _, m := range takeMessages(t, messages, hmac.Engine) {
					runs[m.CorrelationID] = m.InstanceID
				}
				if len(runs) != 2 {
					t.Errorf("the runs are %v, want one for each of two instances", runs)
				}
			})
		}
	}
}

// One that cannot be sent does not keep the others.
func TestScheduleGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	messages := queues.NewMemory()
	s := scheduleOf(t, hmac.Engine, messages)
	plan := &faults.Plan{At: 1, Fault: faults.Throttled}
	s.queues = faults.Queues(messages, plan.Intercept)
	err := s.handle(t.Context(), trigger.TimerDelivery{ScheduledAt: due})
	if !errors.Is(err, queues.ErrThrottled) || !strings.Contains(err.Error(), `schedule hmac of "i1"`) {
		t.Errorf("error %v", err)
	}
	if got := takeMessages(t, messages, hmac.Engine); len(got) != 1 || got[0].InstanceID != "i2" {
		t.Errorf("messages %v", got)
	}
}

// rotator is the hmac engine with its pipeline on memory stores.
func rotator(t *testing.T, st stores) *engine.Pipeline {
	t.Helper()
	e, letters := newEvents(t, st, toQueue)
	steps, err := hmac.New(hmac.Config{Vault: st.vault, Tables: st.tables, Publisher: eventPublisher{e.writer}})
	if err != nil {
		t.Fatal(err)
	}
	d, log := hmac.Definition(steps), slog.New(slog.DiscardHandler)
	rt, err := orchestrator.New(orchestrator.Config{Tables: st.tables, Blobs: st.blobs, Queues: st.queues, Log: log, Publish: e.publish,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: rt, Queues: st.queues, Log: log,
		History: engine.NewHistory(st.tables, ""), DeadLetters: letters})
	if err := errors.Join(err, rt.Prepare(t.Context()), p.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, table := range d.Tables {
		if err := st.tables.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// A tick that comes twice, and once more the next day, late, rotates once; the next tick rotates again.
func TestADoubleTickRotatesOnce(t *testing.T) {
	t.Parallel()
	st := memoryStores(t, &faults.Plan{})
	p := rotator(t, st)
	s := scheduleOf(t, hmac.Engine, st.queues)
	s.queue = hmac.Queue
	tick := func(d trigger.TimerDelivery) (keys int) {
		if err := s.handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		for i, body := range takeAll(t, st.queues, hmac.Queue) {
			delivery := engine.Delivery{Queue: hmac.Queue, ID: fmt.Sprint(d.FiredAt.UnixNano(), i), Body: body, DequeueCount: 1, InsertedAt: due}
			if err := p.Handle(t.Context(), delivery); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range s.targets {
			versions, err := st.vault.Versions(t.Context(), secrets.Name(hmac.Engine, r.target))
			if err != nil {
				t.Fatal(err)
			}
			keys += len(versions)
		}
		return keys
	}
	for _, tt := range []struct {
		d    trigger.TimerDelivery
		want int
	}{
		{trigger.TimerDelivery{ScheduledAt: due, FiredAt: due}, 2},
		{trigger.TimerDelivery{ScheduledAt: due, FiredAt: due.Add(time.Second)}, 2},
		{trigger.TimerDelivery{ScheduledAt: due, FiredAt: due.Add(23 * time.Hour), IsPastDue: true}, 2},
		{trigger.TimerDelivery{ScheduledAt: due.AddDate(0, 0, 1), FiredAt: due.AddDate(0, 0, 1)}, 4},
	} {
		if got := tick(tt.d); got != tt.want {
			t.Errorf("%d keys after the tick %v, want %d", got, tt.d, tt.want)
		}
	}
	if n := p.Count(engine.Duplicate); n != 4 {
		t.Errorf("%d duplicates, want 4", n)
	}
}

func TestRotationsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                          "set a JSON object",
		`{} {}`:                       "something behind",
		`{"update":[]}`:               `unknown field "update"`,
		`{"hmac":[{}]}`:               "target 1 of hmac: ",
		`{"spn":[{}]}`:                "target 1 of spn: ",
		`{"tls":[{}]}`:                "target 1 of tls: ",
		`{"hmac":[{"instance":"i"}]}`: `unknown field "instance"`,
		`{"hmac":[{"instanceId":"i"},{"instanceId":"i"}]}`:             `target 2 of hmac: "i" is listed twice`,
		`{"spn":[{"applicationId":"me"}]}`:                             "target 1 of spn: ",
		`{"tls":[{"domains":["a.com"]},{"domains":["A.com"]}]}`:        "is listed twice",
		`{"tls":[{"domains":["a.com"]},{"domains":["b c"]}]}`:          "target 2 of tls: ",
		`{"hmac":[{"instanceId":"` + strings.Repeat("x", 600) + `"}]}`: "allowed are 512",
	} {
		all, err := rotationsFrom(emulator.with(rotationsSetting, text).lookup)
		if err == nil || !strings.HasPrefix(err.Error(), rotationsSetting) || !strings.Contains(err.Error(), want) || all != nil {
			t.Errorf("%.80s: %v, error %v, want %q in it", text, all, err, want)
		}
	}
}
