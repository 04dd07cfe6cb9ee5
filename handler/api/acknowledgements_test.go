package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// rotating are the consumers of two keys of hmac, of which there are the versions v1 and v2.
func rotating(t *testing.T, store tables.Store, events *outbox.Admin, now func() time.Time) (map[string]*consumers.Consumers, error) {
	t.Helper()
	known, err := consumers.New(consumers.Config{Engine: "hmac", Tables: store, Outbox: events, Now: now,
		Targets: map[string]consumers.Target{"i/1": {TenantID: accesstest.ID("red"), Names: []string{"gateway", "audit"}}, "instance-1": {Names: []string{"gateway"}}, "nobody's": {}},
		Knows: func(_ context.Context, _, version string) (bool, error) {
			return version == "v1" || version == "v2", nil
		}})
	return map[string]*consumers.Consumers{"hmac": known}, errors.Join(err, store.CreateTable(t.Context(), consumers.Table))
}

const acknowledges = `{"engine":"hmac","target":"i/1","version":"v2","consumer":"gateway"}`

// An acknowledgement is recorded once, shown, and in the audit log.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	want := acknowledged{Engine: "hmac", Target: "i/1", Version: "v2", Consumer: "gateway"}
	var first acknowledged
	for i := range 2 {
		rec := b.send(t, http.MethodPost, "/api/acknowledgements", acknowledges)
		got := data[acknowledged](t, rec)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(acknowledged{}, "AtUtc", "By")); diff != "" || rec.Code != http.StatusOK || got.AtUtc.IsZero() || got.By == "" {
			t.Errorf("%d %s (-want +got):\n%s", rec.Code, rec.Body, diff)
		}
		if i == 0 {
			first = got
		}
		if got != first {
			t.Errorf("the second time %+v, the first %+v", got, first)
		}
	}
	shown := data[credentialConsumers](t, b.get(t, "/api/acknowledgements?engine=hmac&target=i%2F1"))
	state := credentialConsumers{Engine: "hmac", Target: "i/1", TenantID: accesstest.ID("red"), Consumers: []string{"gateway", "audit"}, Acknowledgements: []acknowledged{first}}
	testenv.Diff(t, state, shown, "")
	if rec := b.get(t, "/api/audit?target=acknowledgements%2Fhmac%2Fi%2F1%2Fgateway"); !strings.Contains(rec.Body.String(), `"action":"acknowledge"`) {
		t.Errorf("audit: %s", rec.Body)
	}
}

// What cannot be acknowledged says what to do, and leaves nothing.
func TestAcknowledgeRefuses(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	blue, nobody := caller("bob", "blue", "Roundhouse.Operator"), caller("eve", "red")
	for name, test := range map[string]struct {
		from, to, as string
		code         int
		says         string
	}{
		"an unregistered consumer": {"gateway", "mallory", "", http.StatusUnprocessableEntity, "ROUNDHOUSE_ROTATIONS"},
		"an unknown version":       {"v2", "v3", "", http.StatusUnprocessableEntity, "acknowledge the version that an event has named"},
		"an unknown target":        {"i/1", "i/2", "", http.StatusNotFound, "ROUNDHOUSE_ROTATIONS"},
		"a target without anybody": {"i/1", "nobody's", "", http.StatusNotFound, "ROUNDHOUSE_ROTATIONS"},
		"another engine":           {"hmac", "tls", "", http.StatusBadRequest, "hmac"},
		"no version":               {`"v2"`, `""`, "", http.StatusBadRequest, "version"},
		"no consumer":              {`"gateway"`, `""`, "", http.StatusBadRequest, "consumer"},
		"too long":                 {"v2", strings.Repeat("v", 129), "", http.StatusBadRequest, "version"},
		"somebody else's":          {"", "", blue, http.StatusNotFound, "No consumers are registered"},
		"somebody who may not":     {"", "", nobody, http.StatusForbidden, ""},
		"more than there is":       {`"v2"`, `"v2","by":"me"`, "", http.StatusBadRequest, "by"},
	} {
		var headers []string
		if test.as != "" {
			headers = []string{"X-MS-CLIENT-PRINCIPAL", test.as}
		}
		rec := b.send(t, http.MethodPost, "/api/acknowledgements", strings.Replace(acknowledges, test.from, test.to, 1), headers...)
		if rec.Code != test.code || !strings.Contains(rec.Body.String(), test.says) {
			t.Errorf("%s: %d %s, want %d with %q", name, rec.Code, rec.Body, test.code, test.says)
		}
	}
	for query, code := range map[string]int{"": http.StatusBadRequest, "?engine=hmac": http.StatusBadRequest, "?engine=hmac&target=x": http.StatusNotFound, "?engine=hmac&target=i%2F1": http.StatusOK} {
		if rec := b.get(t, "/api/acknowledgements"+query); rec.Code != code || code == http.StatusOK && len(data[credentialConsumers](t, rec).Acknowledgements) != 0 {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

// What waits is shown with who is missing, for as long as it is looked at.
func TestWaitingIsShown(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	at := b.now()
	row := tables.Entity{Key: tables.Key{Partition: "~waiting", Row: tables.EscapeKey("hmac/i/1")}, Properties: map[string]any{
		"Engine": "hmac", "Target": "i/1", "Version": "v2", "EventId": "e", "Missing": `["audit"]`, "SeenAtUtc": at}}
	testenv.Check(t, b.tables.Apply(t.Context(), consumers.Table, tables.Upsert(row)))
	ann := caller("ann", "red", "Roundhouse.Operator")
	shown := data[credentialConsumers](t, b.get(t, "/api/acknowledgements?engine=hmac&target=i%2F1", "X-MS-CLIENT-PRINCIPAL", ann))
	testenv.Diff(t, &waitingVersion{Version: "v2", EventID: "e", Missing: []string{"audit"}, SeenAtUtc: at}, shown.Waiting, "")
	row.Properties["SeenAtUtc"] = at.Add(-3 * time.Hour)
	testenv.Check(t, b.tables.Apply(t.Context(), consumers.Table, tables.Upsert(row)))
	if shown := data[credentialConsumers](t, b.get(t, "/api/acknowledgements?engine=hmac&target=i%2F1")); shown.Waiting != nil {
		t.Errorf("what nobody looks at any more waits: %+v", shown.Waiting)
	}
}
