package handler

import (
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/postgres/postgrestest"
	"github.com/vibedata/roundhouse/poller/sink"
	"github.com/vibedata/roundhouse/queues"
)

var databases postgrestest.Shared

// A poller of a replication slot delivers deletes, too, and reports its progress.
func TestLogicalPoller(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, dsn := databases.Database(t)
	db, err := sql.Open("pgx", dsn+"&synchronous_commit=on")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	run("CREATE TABLE orders (id int PRIMARY KEY)", "CREATE PUBLICATION roundhouse FOR TABLE orders", "SELECT pg_create_logical_replication_slot('roundhouse_orders', 'pgoutput')",
		"INSERT INTO orders VALUES (1)", "DELETE FROM orders")
	st := memoryPlatform(t, &faults.Plan{})
	s := load(t, emulator.With(settings.Pollers, `{"orders": {"connection": {"setting": "ORDERS_DSN"},
		"source": {"dialect": "postgres-logical", "sourceId": "shop", "slot": "roundhouse_orders", "publications": ["roundhouse"]},
		"deliver": {"engine": {"engine": "work", "instanceColumn": "id"}}}}`).With("ORDERS_DSN", dsn), &st)
	letters := engine.NewDeadLetters(st.Tables, "")
	p, err := wirePollers(s, st, nil, []engine.Definition{{Name: "work", Queue: "work-queue"}}, engine.NewClaims(st.Blobs, ""), letters, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(p.prepare(ctx), st.Queues.CreateQueue(ctx, "work-queue"), letters.CreateTable(ctx))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for range 2 {
		if err := p.jobs[0].handle(ctx, trigger.TimerDelivery{}); err != nil {
			t.Fatal(err)
		}
	}
	received, err := st.Queues.Receive(ctx, "work-queue", 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got := map[bool]string{}
	for _, r := range received {
		var m engine.Message
		var event sink.Event
		if err := errors.Join(json.Unmarshal(queues.Decode(r.Text), &m), json.Unmarshal(m.Input, &event)); err != nil {
			t.Fatal(err)
		}
		got[event.Deleted] += m.InstanceID + string(event.Key)
	}
	if diff := cmp.Diff(map[bool]string{false: `1{"id":1}`, true: `1{"id":1}`}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	lag, err := p.admin.Lag(ctx, "orders")
	if err != nil || !lag.CaughtUp || lag.End.Kind != "lsn" {
		t.Errorf("%+v, %v", lag, err)
	}
	run("INSERT INTO orders VALUES (2)")
	if lag, err = p.admin.Lag(ctx, "orders"); err != nil || lag.CaughtUp || lag.Retained == 0 {
		t.Errorf("behind: %+v, %v", lag, err)
	}
}
