package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
)

const (
	application  = "0b1f5a2e-0000-4000-8000-000000000001"
	rotationsSet = `{"hmac":[{"instanceId":"i1","tenantId":"t1"},{"instanceId":"i2"}],
		"spn":[{"applicationId":"0B1F5A2E-0000-4000-8000-000000000001","tenantId":"t2"}],
		"tls":[{"domains":["A.example.com","b.example.com"]}]}`
)

// due is the time of the ticks in these tests.
var due = time.Date(2026, 11, 21, 2, 11, 0, 0, time.UTC)

// scheduled returns the messages of a slot of an engine's schedule with its own expression.
func scheduled(t *testing.T, text, name, cron string, slot time.Time) []engine.Message {
	t.Helper()
	r := only(rotationsSetting, text)
	s := rotationsFrom(r).schedule(name, cron)
	var messages []engine.Message
	for item, err := range s.Items.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := item.Message(slot)
		if err = errors.Join(err, r.Err()); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

func TestScheduleSendsAMessageATarget(t *testing.T) {
	t.Parallel()
	id := func(name, target string) string {
		return engine.ScheduleCorrelationID("schedule", name, target, "2026-11-21")
	}
	for name, want := range map[string][]engine.Message{
		hmac.Engine: {
			{CorrelationID: id("hmac", "i1"), InstanceID: "i1", TenantID: "t1", Input: []byte(`{"slot":"2026-11-21"}`)},
			{CorrelationID: id("hmac", "i2"), InstanceID: "i2", Input: []byte(`{"slot":"2026-11-21"}`)},
		},
		spn.Engine: {{CorrelationID: id("spn", application), TenantID: "t2", Input: []byte(`{"applicationId":"` + application + `","slot":"2026-11-21"}`)}},
		tls.Engine: {{CorrelationID: id("tls", tls.CertificateName([]string{"a.example.com"})), Input: []byte(`{"domains":["a.example.com","b.example.com"]}`)}},
	} {
		if diff := cmp.Diff(want, scheduled(t, rotationsSet, name, "0 11 2 * * *", due)); diff != "" {
			t.Errorf("%s: messages (-want +got):\n%s", name, diff)
		}
	}
	for slot, want := range map[time.Time]string{{}: `{}`, due.Add(time.Hour): `{"slot":"2026-11-21T03:11:00Z"}`} {
		if got := scheduled(t, rotationsSet, hmac.Engine, "0 11 2 * * *", slot); string(got[0].Input) != want {
			t.Errorf("slot %v: %s", slot, got[0].Input)
		}
	}
	if got := scheduled(t, " ", hmac.Engine, "0 11 2 * * *", due); len(got) != 0 {
		t.Errorf("without rotations there are messages: %v", got)
	}
}

// A slot that is sent twice rotates once; those of the next day, and of another time of that day, rotate again.
func TestASlotRotatesOnce(t *testing.T) {
	t.Parallel()
	h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{rotationsSetting: rotationsSet})
	vault := secrets.NewDevelopment(h.Tables)
	for _, tt := range []struct {
		due  time.Time
		want int
	}{
		{due, 2}, {due, 2}, {due.AddDate(0, 0, 1), 4}, {due.AddDate(0, 0, 1).Add(12 * time.Hour), 6},
	} {
		if sent := h.Schedule(hmac.Engine, "schedule", tt.due); sent != 2 {
			t.Fatalf("%d messages", sent)
		}
		h.Deliver()
		keys := 0
		for _, instance := range []string{"i1", "i2"} {
			versions := testenv.Must(vault.Versions(t.Context(), secrets.Name(hmac.Engine, instance)))(t)
			keys += len(versions)
		}
		if keys != tt.want {
			t.Errorf("%d keys after the slot %v, want %d; dead letters %v", keys, tt.due, tt.want, h.DeadLetters("hmac"))
		}
	}
}

func TestRotationsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                          "it is not the JSON document",
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
		r := only(rotationsSetting, text)
		all, err := rotationsFrom(r), r.Err()
		if err == nil || !strings.HasPrefix(err.Error(), rotationsSetting) || !strings.Contains(err.Error(), want) || all != nil {
			t.Errorf("%.80s: %v, error %v, want %q in it", text, all, err, want)
		}
	}
}

// The schedule times in docs/settings.md are valid, and errors in them are reported.
func TestScheduleSetting(t *testing.T) {
	t.Parallel()
	text := testenv.Must(os.ReadFile(filepath.Join(root, "docs", "settings.md")))(t)
	_, example, found := strings.Cut(string(text), "```json setting ROUNDHOUSE_SCHEDULES\n")
	example, _, ended := strings.Cut(example, "```")
	if !found || !ended {
		t.Fatal("there is no example")
	}
	for setting, complaint := range map[string]string{
		example: "",
		`{"hmac": {"items": {"payments": {"cron": "0 0 3 * * 0"}, "ledger": {"cron": "off"}}}}`: "",
		`{"tls": {"cron": "0 0 * * * 8"}}`:    "ROUNDHOUSE_SCHEDULES: tls: cron: ",
		`{"hmac": {"times": "often"}}`:        `ROUNDHOUSE_SCHEDULES: it is not the JSON document that docs/settings.md describes: unknown field "times"`,
		`{"health": {}}`:                      `ROUNDHOUSE_SCHEDULES: "health": there is no such schedule here: there are hmac, hmac/schedule, `,
		`{"hmac": {"items": {"nobody": {}}}}`: "ROUNDHOUSE_SCHEDULES: ",
	} {
		settings := map[string]string{"ROUNDHOUSE_SCHEDULES": setting, "AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "100", rotationsSetting: `{"hmac": [{"instanceId": "payments"}, {"instanceId": "ledger"}]}`}
		_, err := handler.Describe(handler.App{Engines: engines}, func(name string) (string, bool) { v, ok := settings[name]; return v, ok })
		if (err == nil) != (complaint == "") || err != nil && !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v, want %q", setting, err, complaint)
		}
	}
}
