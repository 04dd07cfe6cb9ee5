package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// benchSchedules are the schedules of a bench: the keys of two instances, and one of another engine, at half past.
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
	testenv.Check(t, err)
	return p
}

// result tells of everything that it waits.
func (b *outboxBench) result(context.Context, string, engine.Message) (engine.Result, error) {
	return engine.ResultWaiting, nil
}

// Schedules are listed before and after they were due, with what became of them.
func TestListSchedules(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	show := func(query string) list[scheduleItem] {
		return data[list[scheduleItem]](t, b.get(t, "/api/schedules"+query))
	}
	testenv.Done(t)(b.schedules.Tick(t.Context()))
	b.pass(31 * time.Minute)
	testenv.Done(t)(b.schedules.Tick(t.Context()))
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
		if rec := b.get(t, "/api/schedules"+query); rec.Code != status {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

// A run by hand sends once however often it is asked for, and is in the audit log.
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
		var headers []string
		if c.as != "" {
			headers = []string{"X-MS-CLIENT-PRINCIPAL", c.as}
		}
		if rec := b.send(t, http.MethodPost, "/api/schedules/"+c.path+"/run", c.body, headers...); rec.Code != c.status {
			t.Errorf("%s %.80s: %d %s", c.path, c.body, rec.Code, rec.Body)
		}
	}
	b.refuse = func(c faults.Call) bool { return c.Operation == "Send" }
	if rec := b.send(t, http.MethodPost, "/api/schedules/hmac/run", `{"item":"payments"}`); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	b.refuse = nil
	if n, err := b.queues.Length(t.Context(), "hmac-queue"); err != nil || n != 0 {
		t.Errorf("%d messages, %v", n, err)
	}
}
