package poller_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/poller"
)

const settings = `{
  "orders": {
    "connection": {"setting": "ORDERS_DSN"},
    "source": {"dialect": "postgres", "sourceId": "shop", "table": "public.orders", "cursor": "updated_at", "keys": ["id"]},
    "deliver": {"engine": {"engine": "provisioning", "operation": "sync", "instanceColumn": "instance"}},
    "leaseTtl": "1m", "budget": "90s",
    "batch": {"first": 50, "most": 500},
    "retry": {"attempts": 3, "delay": "10s"},
    "quarantine": {"share": 0.1}
  },
  "invoices-2025": {
    "connection": {"secret": "invoices-dsn"},
    "source": {"dialect": "sqlite"},
    "state": "table",
    "deliver": {"outbox": {"eventType": "invoice.changed", "tenantColumn": "tenant", "ordered": true}},
    "backfill": true, "rowsPerSecond": 200, "quarantine": {"off": true}
  }
}`

func TestParseSettings(t *testing.T) {
	t.Parallel()
	got, err := poller.ParseSettings(settings)
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if s := got[0]; s.Name != "invoices-2025" || s.State != poller.StateTable || !s.Options.Backfill || !s.NoQuarantine || s.Outbox.TenantColumn != "tenant" {
		t.Errorf("%+v", s)
	}
	s := got[1]
	want := poller.Options{LeaseTTL: time.Minute, Budget: 90 * time.Second, BatchSize: 50, MaxBatch: 500, MaxAttempts: 3, RetryDelay: 10 * time.Second, QuarantineShare: 0.1}
	if diff := cmp.Diff(want, s.Options); diff != "" || s.State != poller.StateBlob || s.Connection.Setting != "ORDERS_DSN" || s.Engine.Operation != "sync" {
		t.Errorf("%+v, options: -want +got\n%s", s, diff)
	}
	if none, err := poller.ParseSettings(" "); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

func TestParseSettingsNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	const secret = "postgres://user:hunter2@db/shop"
	for want, text := range map[string]string{
		`it is no document`: `[]`,
		`it ends too early`: `{"a": `,
		`poller "a": invalid: json: unknown field "tabl"`:  `{"a": {"tabl": 1}}`,
		`poller "A b": invalid: "A b" is no name`:          `{"A b": {}}`,
		`poller "a": invalid: connection: set exactly`:     `{"a": {}}`,
		`poller "a": invalid: source is not set`:           `{"a": {}}`,
		`poller "a": invalid: deliver: set exactly`:        `{"a": {}}`,
		`connection.setting is no name`:                    `{"a": {"connection": {"setting": "` + secret + `"}}}`,
		`connection.secret is no name`:                     `{"a": {"connection": {"secret": "` + secret + `"}}}`,
		`source.dsn: a connection string`:                  `{"a": {"source": {"dsn": "` + secret + `"}}}`,
		`source.Password: a connection string`:             `{"a": {"source": {"Password": "hunter2"}}}`,
		`schedule is "0 0 25 * * *": set six fields`:       `{"a": {"schedule": "0 0 25 * * *"}}`,
		`schedule is "0 -5 * * * *"`:                       `{"a": {"schedule": "0 -5 * * * *"}}`,
		`schedule is "0 0 9 31 2 *"`:                       `{"a": {"schedule": "0 0 9 31 2 *"}}`,
		`7 is not one of 0 to 6`:                           `{"a": {"schedule": "0 0 9 * * 7"}}`,
		`the Functions host swaps its ends: write MON-FRI`: `{"a": {"schedule": "0 0 9 * * FRI-MON"}}`,
		`it has 5 fields`:                                  `{"a": {"schedule": "*/5 * * * *"}}`,
		`it has 1 fields`:                                  `{"a": {"schedule": "00:05:00"}}`,
		`state is "disk"`:                                  `{"a": {"state": "disk"}}`,
		`the lease lasts 1s: set 10s to 1h`:                `{"a": {"leaseTtl": "1s"}}`,
		`"-1s" is no Go duration`:                          `{"a": {"budget": "-1s"}}`,
		`deliver.outbox: set exactly one of tenantId`:      `{"a": {"deliver": {"outbox": {"eventType": "x"}}}}`,
		`deliver.engine.engine is not set`:                 `{"a": {"deliver": {"engine": {}}}}`,
		`poller "b": invalid: state`:                       `{"a": {}, "b": {"state": "disk"}}`,
	} {
		_, err := poller.ParseSettings(text)
		if !errors.Is(err, poller.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Nesting in a setting would be repeated in the state document.
func TestDeepSettings(t *testing.T) {
	t.Parallel()
	for _, levels := range []int{501, 9_998} {
		_, err := poller.ParseSettings(`{"orders":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`)
		if !errors.Is(err, poller.ErrInvalid) || !strings.Contains(err.Error(), "500 levels") {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}

func FuzzParseSettings(f *testing.F) {
	f.Add(settings)
	f.Add(`{"a": {}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := poller.ParseSettings(text)
		if err != nil && !errors.Is(err, poller.ErrInvalid) {
			t.Fatalf("an error of another kind: %v", err)
		}
		for _, s := range got {
			if err := s.Validate(); err != nil {
				t.Fatalf("%s was taken: %v", s.Name, err)
			}
		}
	})
}
