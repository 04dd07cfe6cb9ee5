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

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

func fourNodes() []nodes.Info {
	began := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	return []nodes.Info{
		{Name: "b", State: nodes.StateAlive, Since: began, Seen: began},
		{Name: "lost", Host: "web/17", PID: 411, Version: "1.2", State: nodes.StateTaken, Since: began.Add(time.Minute), Seen: began.Add(time.Hour),
			Hand: nodes.Hand{Count: 3, Orchestrations: []string{"hmac-payments"}, More: true}, TakenBy: "a", TakenAt: began.Add(2 * time.Hour), TakenOver: 3, Finished: true},
		{Name: "gone", State: nodes.StateGone, Since: began.Add(-time.Hour), Seen: began},
		{Name: "a", State: nodes.StateAlive, Since: began, Seen: began.Add(3 * time.Hour)},
	}
}

// Nodes are listed by start time, page by page, also while they write their rows.
func TestListNodes(t *testing.T) {
	t.Parallel()
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) { c.Nodes = func(context.Context) ([]nodes.Info, error) { return fourNodes(), nil } })
	tests := map[string]struct {
		query string
		want  []string
		more  bool
	}{
		"all":             {"", []string{"lost", "b", "a", "gone"}, false},
		"a page":          {"?limit=2", []string{"lost", "b"}, true},
		"as many":         {"?limit=4", []string{"lost", "b", "a", "gone"}, false},
		"alive":           {"?state=alive", []string{"b", "a"}, false},
		"alive, a page":   {"?state=alive&limit=1", []string{"b"}, true},
		"gone":            {"?state=gone&limit=1", []string{"gone"}, false},
		"taken over from": {"?state=taken", []string{"lost"}, false},
	}
	name := func(n nodeItem) string { return n.Node }
	for what, tt := range tests {
		page := data[list[nodeItem]](t, b.get(t, "/api/nodes"+tt.query))
		testenv.Equal(t, what, tt.want, each(page.Items, name))
		if (page.ContinuationToken != "") != tt.more {
			t.Errorf("%s: token %q", what, page.ContinuationToken)
		}
	}
	lost := fourNodes()[1]
	want := nodeItem{Node: "lost", Host: "web/17", PID: 411, Version: "1.2", State: "taken", SinceUtc: lost.Since, SeenUtc: lost.Seen, InHand: 3,
		Orchestrations: []string{"hmac-payments"}, More: true, TakenBy: "a", TakenAtUtc: lost.TakenAt, TakenOver: 3, Finished: true}
	testenv.Equal(t, "", []nodeItem{want}, data[list[nodeItem]](t, b.get(t, "/api/nodes?state=taken")).Items)
	testenv.Equal(t, "page by page", []string{"lost", "b", "a", "gone"}, each(walk[nodeItem](t, b, "/api/nodes?limit=1"), name))
}

func TestListNodesRefused(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	if page := data[list[nodeItem]](t, b.get(t, "/api/nodes")); len(page.Items) != 0 {
		t.Errorf("%+v", page)
	}
	for query, status := range map[string]int{"?state=dead": 400, "?limit=0": 400, "?continuationToken=x": 400, "?node=a": 400} {
		expect(t, b.get(t, "/api/nodes"+query), status, "", "%s", query)
	}
	expect(t, b.get(t, "/api/nodes", "X-MS-CLIENT-PRINCIPAL", caller("ann", "red", "operator")), http.StatusForbidden, "", "somebody of another tenant")
	b.refuse = func(c faults.Call) bool { return c.Operation == "Query" }
	expect(t, b.get(t, "/api/nodes"), http.StatusServiceUnavailable, "", "storage is away")
}

// The list has the credentials that expire within the requested days, the earliest first, and expired ones; a page
// has the requested length.
func TestListCredentials(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	lost := false
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) {
		c.Credentials = func(context.Context) (map[string][]engine.Credential, error) {
			if lost {
				return nil, errors.New("no line")
			}
			return map[string][]engine.Credential{
				"tls": {{Name: "soon", ExpiresAt: now.AddDate(0, 0, 13)}, {Name: "later", ExpiresAt: now.AddDate(0, 0, 15)}, {Name: "never"}},
				"spn": {{Name: "over", ExpiresAt: now}},
			}, nil
		}
	})
	over, soon, later := credentialItem{"spn", "over", now, true}, credentialItem{"tls", "soon", now.AddDate(0, 0, 13), false}, credentialItem{"tls", "later", now.AddDate(0, 0, 15), false}
	for query, want := range map[string][]credentialItem{"": {over, soon}, "?withinDays=13": {over}, "?withinDays=16": {over, soon, later}, "?limit=1": {over}} {
		got := data[list[credentialItem]](t, b.get(t, "/api/credentials"+query))
		testenv.Equal(t, query, want, got.Items)
		if query == "?limit=1" {
			rest := data[list[credentialItem]](t, b.get(t, "/api/credentials?limit=1&continuationToken="+got.ContinuationToken))
			if diff := cmp.Diff([]credentialItem{soon}, rest.Items); diff != "" || rest.ContinuationToken != "" {
				t.Errorf("the next page (-want +got):\n%s", diff)
			}
		}
	}
	for _, query := range []string{"?withinDays=0", "?withinDays=4000", "?engine=tls", "?continuationToken=x"} {
		expect(t, b.get(t, "/api/credentials"+query), http.StatusBadRequest, "", "%s", query)
	}
	expect(t, b.get(t, "/api/credentials", "X-MS-CLIENT-PRINCIPAL", caller("Red", "red", "keeper")), http.StatusForbidden, "", "a caller of a tenant")
	lost = true
	expect(t, b.get(t, "/api/credentials"), http.StatusInternalServerError, "", "without an answer")
}

// benchSchedules returns the schedules of a bench: the keys of two instances, and one of another engine, at half
// past.
func benchSchedules(t *testing.T) *schedule.Plan {
	t.Helper()
	var items []engine.Item
	for _, name := range []string{"payments", "ledger"} {
		items = append(items, engine.Item{Name: name, Message: func(time.Time) (engine.Message, error) { return engine.Message{InstanceID: name}, nil }})
	}
	p, err := schedule.NewPlan([]engine.Definition{
		{Name: "hmac", Queue: "hmac-queue", Schedules: []engine.Schedule{{Name: "schedule", Cron: "0 30 12 * * *", Items: engine.FixedItems(items...)}}},
		{Name: "tls", Queue: "hmac-queue", Schedules: []engine.Schedule{{Cron: "0 30 * * * *"}}},
	}, schedule.Setting{"hmac": {Spread: "1s", Items: map[string]schedule.ItemRule{"ledger": {Cron: schedule.Off}}}})
	testenv.OK(t, err)
	return p
}

// result reports every message as waiting.
func (b *outboxBench) result(context.Context, string, engine.Message) (engine.Result, error) {
	return engine.ResultWaiting, nil
}

// Schedules are listed before and after they were due, with their results.
func TestListSchedules(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	show := func(query string) list[scheduleItem] {
		return data[list[scheduleItem]](t, b.get(t, "/api/schedules"+query))
	}
	testenv.Must(b.schedules.Tick(t.Context()))(t)
	b.pass(31 * time.Minute)
	testenv.Must(b.schedules.Tick(t.Context()))(t)
	slot := time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)
	all := show("").Items
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	id := all[1].CorrelationID
	want := []scheduleItem{
		{Engine: "hmac", Schedule: "schedule", Item: "ledger", Cron: "off", Source: "item", Spread: "1s"},
		{Engine: "hmac", Schedule: "schedule", Item: "payments", Cron: "0 30 12 * * *", Source: "engine", Spread: "1s", NextAtUtc: slot.AddDate(0, 0, 1), SlotUtc: slot, DueAtUtc: slot,
			SentAtUtc: b.now(), Messages: 1, CorrelationID: id, InstanceID: "payments", Result: engine.ResultWaiting},
	}
	if diff := cmp.Diff(want, all[:2]); diff != "" || id == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if page := show("?engine=hmac&limit=1"); len(page.Items) != 1 || page.ContinuationToken == "" {
		t.Errorf("%+v", page)
	} else if rest := show("?engine=hmac&limit=1&continuationToken=" + page.ContinuationToken).Items; len(rest) != 1 || rest[0].Item != "payments" {
		t.Errorf("%+v", rest)
	}
	for query, status := range map[string]int{"?engine=update": 400, "?limit=0": 400, "?continuationToken=x": 400, "?name=x": 400, "?item=nobody": 200} {
		expect(t, b.get(t, "/api/schedules"+query), status, "", "%s", query)
	}
}

// A manual run sends once for repeated requests, and is in the audit log.
func TestRunASchedule(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	run := func(body string, headers ...string) scheduleSent {
		rec := b.send(t, http.MethodPost, "/api/schedules/hmac/run", body, headers...)
		if rec.Code != http.StatusAccepted {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		return data[scheduleSent](t, rec)
	}
	first, again := run(`{"item":"payments"}`, "Idempotency-Key", "k1"), run(`{"item":"payments"}`, "Idempotency-Key", "k1")
	if diff := cmp.Diff(first, again); diff != "" || len(first.Messages) != 1 || first.Messages[0].InstanceID != "payments" {
		t.Errorf("%+v: %s", first, diff)
	}
	repeated := []string{invocationHeader, "1f1a7f6e-7c3c-4b8e-9a2b-5a3c1f0e2d11"}
	if one, two := run(`{"all":true}`, repeated...), run(`{"all":true}`, repeated...); !cmp.Equal(one, two) || len(one.Messages) != 2 {
		t.Errorf("a repeat by the host: %+v, %+v", one, two)
	}
	if other := run(`{"item":"payments"}`); other.Messages[0] == first.Messages[0] || other.Messages[0] == run(`{"item":"payments"}`).Messages[0] {
		t.Errorf("%+v", other)
	}
	if n, err := b.queues.Length(t.Context(), "hmac-queue"); err != nil || n != 8 {
		t.Errorf("%d messages, %v", n, err)
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{}, 100, "")
	if err != nil || len(page.Entries) != 6 || page.Entries[5].Action != "run" || page.Entries[5].Target != "schedules/hmac/payments" || page.Entries[5].Outcome != audit.Done {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

func TestRunsOfSchedulesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for _, c := range []struct {
		path, body, as string
		status         int
	}{
		{"hmac", `{}`, "", 400},
		{"hmac", `{"item":"payments","all":true}`, "", 400},
		{"hmac", `{"item":"payments","slot":"now"}`, "", 400},
		{"hmac", `{"item":"` + strings.Repeat("x", 513) + `"}`, "", 400},
		{"hmac", `{"item":"nobody"}`, "", 404},
		{"hmac", `{"schedule":"none"}`, "", 404},
		{"update", `{}`, "", 404},
		{"tls", `{"item":"payments"}`, "", 404},
		{"hmac", `{"item":"payments"}`, caller("ann", "red", "operator"), 403},
	} {
		expect(t, b.person(t, c.as, http.MethodPost, "/api/schedules/"+c.path+"/run", c.body), c.status, "", "%s %.80s", c.path, c.body)
	}
	b.refuse = func(c faults.Call) bool { return c.Operation == "Send" }
	expect(t, b.send(t, http.MethodPost, "/api/schedules/hmac/run", `{"item":"payments"}`), http.StatusServiceUnavailable, "", "")
	b.refuse = nil
	if n, err := b.queues.Length(t.Context(), "hmac-queue"); err != nil || n != 0 {
		t.Errorf("%d messages, %v", n, err)
	}
}

// rotating returns the consumers of two keys of hmac, with the versions v1 and v2.
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
	testenv.Equal(t, "", state, shown)
	if rec := b.get(t, "/api/audit?target=acknowledgements%2Fhmac%2Fi%2F1%2Fgateway"); !strings.Contains(rec.Body.String(), `"action":"acknowledge"`) {
		t.Errorf("audit: %s", rec.Body)
	}
}

// An invalid acknowledgement is refused with the remedy, and leaves nothing.
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
		rec := b.person(t, test.as, http.MethodPost, "/api/acknowledgements", strings.Replace(acknowledges, test.from, test.to, 1))
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

// A waiting credential is shown with its missing consumers, while its run checks it.
func TestWaitingIsShown(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	at := b.now()
	row := tables.Entity{Key: tables.Key{Partition: "~waiting", Row: tables.EscapeKey("hmac/i/1")}, Properties: map[string]any{
		"Engine": "hmac", "Target": "i/1", "Version": "v2", "EventId": "e", "Missing": `["audit"]`, "SeenAtUtc": at}}
	testenv.OK(t, b.tables.Apply(t.Context(), consumers.Table, tables.Upsert(row)))
	ann := caller("ann", "red", "Roundhouse.Operator")
	shown := data[credentialConsumers](t, b.get(t, "/api/acknowledgements?engine=hmac&target=i%2F1", "X-MS-CLIENT-PRINCIPAL", ann))
	testenv.Equal(t, "", &waitingVersion{Version: "v2", EventID: "e", Missing: []string{"audit"}, SeenAtUtc: at}, shown.Waiting)
	row.Properties["SeenAtUtc"] = at.Add(-3 * time.Hour)
	testenv.OK(t, b.tables.Apply(t.Context(), consumers.Table, tables.Upsert(row)))
	if shown := data[credentialConsumers](t, b.get(t, "/api/acknowledgements?engine=hmac&target=i%2F1")); shown.Waiting != nil {
		t.Errorf("what nobody looks at any more waits: %+v", shown.Waiting)
	}
}
