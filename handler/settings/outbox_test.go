package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/outbound"
)

const toLog = `{"destinations":{"log":{"log":{}}},"routes":[{"eventType":"*","destination":"log"}]}`

func TestOutboxSettings(t *testing.T) {
	t.Parallel()
	document := `{
		"destinations": {
			"crm": {"http": {"url": "https://crm.example.com/hooks?code=hidden", "structured": true, "timeout": "7s", "source": "/x/{tenant}", "subject": "{type}",
				"signingKeys": [{"id": "2026-11", "secret": "crm-hook"}, {"id": "2026-10", "secret": "crm-hook-old"}],
				"allow": ["10.1.0.0/16"], "allowPlaintext": true}},
			"billing": {"queue": {"queue": "billing-events"}},
			"nowhere": {"log": {}}
		},
		"routes": [
			{"eventType": "*", "destination": "nowhere"},
			{"eventType": "hmac.*", "tenant": "contoso", "destination": "crm"}
		]
	}`
	s, err := Load(NewReader(emulator.With("ROUNDHOUSE_OUTBOX", document).Lookup))
	testenv.OK(t, err)
	want := Outbox{
		Options:   outbox.DefaultOptions(),
		Retention: 30 * 24 * time.Hour,
		Destinations: map[string]Destination{
			"crm": {HTTP: &HTTPDestination{Origin: Origin{"/x/{tenant}", "{type}"}, URL: "https://crm.example.com/hooks?code=hidden",
				Structured: true, Auth: outbound.Auth{SigningKeys: []outbound.SigningKey{{ID: "2026-11", Secret: "crm-hook"}, {ID: "2026-10", Secret: "crm-hook-old"}}},
				Allow: []string{"10.1.0.0/16"}, AllowPlaintext: true, Timeout: duration(7 * time.Second)}},
			"billing": {Queue: &QueueDestination{Queue: "billing-events"}},
			"nowhere": {Log: &struct{}{}},
		},
		Routes: []outbox.Route{{EventType: "*", Destination: "nowhere"}, {EventType: "hmac.*", TenantID: "contoso", Destination: "crm"}},
	}
	if diff := cmp.Diff(want, s.Outbox, cmp.AllowUnexported(HTTPDestination{}, QueueDestination{})); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestOutboxOptions(t *testing.T) {
	t.Parallel()
	s, err := Load(NewReader(emulator.With(
		"ROUNDHOUSE_OUTBOX_POLL_INTERVAL_SECONDS", "5", "ROUNDHOUSE_OUTBOX_BATCH_SIZE", "200", "ROUNDHOUSE_OUTBOX_MAX_RETRIES", "7",
		"ROUNDHOUSE_OUTBOX_BASE_RETRY_DELAY_SECONDS", "3", "ROUNDHOUSE_OUTBOX_USE_EXPONENTIAL_BACKOFF", "false",
		"ROUNDHOUSE_OUTBOX_MAX_ERROR_TEXT_LENGTH", "100", "ROUNDHOUSE_OUTBOX_MAX_RETRY_DELAY", "5m", "ROUNDHOUSE_OUTBOX_MISCONFIGURED_AFTER", "7m", "ROUNDHOUSE_OUTBOX_DELIVERY_TIMEOUT", "2s",
		"ROUNDHOUSE_OUTBOX_CLAIM_DURATION", "8s", "ROUNDHOUSE_OUTBOX_MAX_CONCURRENCY", "9", "ROUNDHOUSE_OUTBOX_MAX_PER_DESTINATION", "4",
		"ROUNDHOUSE_OUTBOX_CIRCUIT_FAILURES", "6", "ROUNDHOUSE_OUTBOX_CIRCUIT_COOLDOWN", "10s", "ROUNDHOUSE_OUTBOX_METRICS_WINDOW", "1m",
		"ROUNDHOUSE_OUTBOX_KEY_FORM", "document", "ROUNDHOUSE_OUTBOX_RETENTION", "48h",
	).Lookup))
	testenv.OK(t, err)
	want := Outbox{
		Options: outbox.Options{PollIntervalSeconds: 5, BatchSize: 200, MaxRetries: 7, BaseRetryDelaySeconds: 3, MaxErrorTextLength: 100,
			MaxRetryDelay: 5 * time.Minute, MisconfiguredAfter: 7 * time.Minute, DeliveryTimeout: 2 * time.Second, ClaimDuration: 8 * time.Second, MaxConcurrency: 9,
			MaxPerDestination: 4, CircuitFailures: 6, CircuitCooldown: 10 * time.Second, MetricsWindow: time.Minute, KeyForm: outbox.Document},
		Retention:    48 * time.Hour,
		Destinations: map[string]Destination{"log": {Log: &struct{}{}}},
		Routes:       []outbox.Route{{EventType: "*", Destination: "log"}},
	}
	testenv.Equal(t, "settings", want, s.Outbox)
}

func TestOutboxSettingsRefused(t *testing.T) {
	t.Parallel()
	destination := func(d string) string {
		return `{"destinations":{"d":` + d + `},"routes":[{"eventType":"*","destination":"d"}]}`
	}
	for name, tt := range map[string]struct {
		env  []string
		want []string // one line of the error each
	}{
		"no number":            {[]string{"ROUNDHOUSE_OUTBOX_BATCH_SIZE", "many"}, []string{`ROUNDHOUSE_OUTBOX_BATCH_SIZE is "many": set a whole number`}},
		"zero":                 {[]string{"ROUNDHOUSE_OUTBOX_MAX_RETRIES", "0"}, []string{`ROUNDHOUSE_OUTBOX_MAX_RETRIES is "0": set a whole number of 1 or more`}},
		"no duration":          {[]string{"ROUNDHOUSE_OUTBOX_CLAIM_DURATION", "60"}, []string{`ROUNDHOUSE_OUTBOX_CLAIM_DURATION is "60": set a Go duration`}},
		"no boolean":           {[]string{"ROUNDHOUSE_OUTBOX_USE_EXPONENTIAL_BACKOFF", "maybe"}, []string{"set true or false"}},
		"no form":              {[]string{"ROUNDHOUSE_OUTBOX_KEY_FORM", "x"}, []string{"set length-prefixed or document"}},
		"retention":            {[]string{"ROUNDHOUSE_OUTBOX_RETENTION", "59m"}, []string{"ROUNDHOUSE_OUTBOX_RETENTION is 59m0s: set an hour or more"}},
		"out of range":         {[]string{"ROUNDHOUSE_OUTBOX_BATCH_SIZE", "501", "ROUNDHOUSE_OUTBOX_CLAIM_DURATION", "20s"}, []string{"ROUNDHOUSE_OUTBOX_*: invalid: BatchSize is 501", "ClaimDuration is 20s"}},
		"no JSON":              {[]string{"ROUNDHOUSE_OUTBOX", "{"}, []string{"ROUNDHOUSE_OUTBOX is no document as docs/settings.md describes it: it ends too early"}},
		"two":                  {[]string{"ROUNDHOUSE_OUTBOX", toLog + "{}"}, []string{"there is more behind the document"}},
		"unknown":              {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"smtp":{}}`)}, []string{`unknown field "smtp"`}},
		"wrong type":           {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"http":{"url":5}}`)}, []string{"url"}},
		"empty":                {[]string{"ROUNDHOUSE_OUTBOX", destination(`{}`)}, []string{"ROUNDHOUSE_OUTBOX: destinations.d: http, instance, queue, log: it must have exactly one of them"}},
		"instance":             {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"instance":{"url":"https://h/hidden"}}`)}, []string{"destinations.d: instance: url: leave it out"}},
		"instance token":       {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"instance":{"audience":"api://managed"}}`)}, []string{"instance: audience, clientCertificate: leave them out"}},
		"instance certificate": {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"instance":{"clientCertificate":"out"}}`)}, []string{"instance: audience, clientCertificate: leave them out"}},
		"instance key":         {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"instance":{"signingKeys":[{"id":"k","secret":"my-own-{instance}"}]}}`)}, []string{"instance: signingKeys[0].secret: before -{instance} there are"}},
		"two kinds":            {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"log":{},"queue":{"queue":"abc"}}`)}, []string{"exactly one"}},
		"no routes":            {[]string{"ROUNDHOUSE_OUTBOX", `{"destinations":{"d":{"log":{}}}}`}, []string{"ROUNDHOUSE_OUTBOX: routes: there is none"}},
		"routes": {[]string{"ROUNDHOUSE_OUTBOX", `{"destinations":{"d":{"log":{}}},"routes":[{"eventType":"a*b","destination":"d"},{"eventType":"*","destination":"e"}]}`},
			[]string{`ROUNDHOUSE_OUTBOX: routes: invalid: route 0: event type "a*b"`, `route 1: destination "e" is unknown`}},
		"queue": {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"queue":{"queue":"A"}}`)}, []string{`ROUNDHOUSE_OUTBOX: destinations.d: queue: queue transport: invalid: queue name "A"`}},
		"plain text": {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"http":{"url":"http://h/hidden"}}`)},
			[]string{`ROUNDHOUSE_OUTBOX: destinations.d: http: `}},
		"private": {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"http":{"url":"https://169.254.169.254/hidden"}}`)}, []string{"destination not allowed"}},
		"timeout": {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"http":{"url":"https://h","timeout":"16s"}}`)}, []string{"destinations.d: http: timeout: 16s is longer than a delivery may take, 15s"}},
		"keys": {[]string{"ROUNDHOUSE_OUTBOX", destination(`{"http":{"url":"https://h","signingKeys":[{"id":"a b","secret":"k"},{"id":"k","secret":"no/name"}]}}`)},
			[]string{"destinations.d: http: signingKeys[0].id: ", "destinations.d: http: signingKeys[1].secret: give the name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(NewReader(emulator.With(tt.env...).Lookup))
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(tt.want) || strings.Contains(err.Error(), "hidden") {
				t.Fatalf("%d lines, want %d:\n%v", len(got), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("line %d is %q, want %q in it", i, got[i], want)
				}
			}
		})
	}
}
