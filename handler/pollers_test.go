package handler

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/secrets"
)

// someOrders is a poller of a SQLite file whose rows are work for an engine, and one whose database is not there.
const someOrders = `{
	"orders": {"connection": {"setting": "ORDERS_DSN"}, "source": {"dialect": "sqlite", "sourceId": "shop", "table": "orders", "cursor": "id", "keys": ["id"]},
		"deliver": {"engine": {"engine": "work", "instanceColumn": "instance"}}, "schedule": "0 * * * * *"},
	"lost": {"connection": {"secret": "lost-dsn"}, "source": {"dialect": "sqlite", "sourceId": "lost", "table": "nothing", "cursor": "id", "keys": ["id"]}, "state": "table",
		"deliver": {"outbox": {"eventType": "order", "tenantId": "t"}}}}`

// The functions of pollers are as they are defined, and the program serves them.
func TestPollerFunctions(t *testing.T) {
	t.Parallel()
	env := emulator.With(settings.Pollers, someOrders)
	h, err := New(workApp(), Config{Lookup: env.Lookup})
	testenv.Check(t, err)
	t.Cleanup(h.Close)
	for name, schedule := range map[string]string{"poller-orders-timer": "0 * * * * *", "poller-lost-timer": poller.DefaultSchedule} {
		f := h.Manifest().Functions[name]
		if _, served := h.program.Timers[name]; !served || len(f.Bindings) != 1 || f.Bindings[0].Schedule != schedule {
			t.Errorf("%s: %+v, served: %v", name, f, served)
		}
	}
	if _, err := Describe(workApp(), env.With(settings.Pollers, `{"a": {}}`).Lookup); err == nil || !strings.Contains(err.Error(), `poller "a"`) {
		t.Errorf("error %v", err)
	}
}

// Rows become messages, once; a poller whose database is not there says so, and holds up no other.
func TestPollersRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dsn := "file:" + filepath.Join(t.TempDir(), "orders.db")
	db, err := sql.Open("sqlite", dsn)
	testenv.Check(t, err)
	defer db.Close()
	testenv.Done(t)(db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, instance TEXT); INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (9007199254740993, 'c')`))
	st := memoryPlatform(t, &faults.Plan{})
	s := load(t, emulator.With(settings.Pollers, someOrders).With("ORDERS_DSN", dsn), &st)
	letters := engine.NewDeadLetters(st.Tables, "")
	definitions := []engine.Definition{{Name: "work", Queue: "work-queue"}}
	p, err := wirePollers(s, st, nil, definitions, engine.NewClaims(st.Blobs, ""), letters, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(p.prepare(ctx), st.Queues.CreateQueue(ctx, "work-queue"), letters.CreateTable(ctx))
	}
	testenv.Check(t, err)
	defer p.close()
	tick := func(name string) error {
		at := slices.IndexFunc(p.jobs, func(j *pollerJob) bool { return j.setting.Name == name })
		return p.jobs[at].handle(ctx, trigger.TimerDelivery{})
	}
	begun := poller.Counters{BatchSize: 100, Lag: -1}
	testenv.Diff(t, map[string]poller.Counters{"orders": begun, "lost": begun}, p.counters(), "before the first tick")
	if err := tick("lost"); err == nil || !strings.Contains(err.Error(), "poller lost") || !strings.Contains(err.Error(), "lost-dsn") || !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("without a secret: %v", err)
	}
	if got := p.counters()["lost"]; got.Ticks != 1 || got.Failures != 1 || !got.LastSuccess.IsZero() {
		t.Errorf("a source that was never opened: %+v", got)
	}
	testenv.Done(t)(st.Secrets.Add(ctx, "lost-dsn", []byte("file:"+filepath.Join(t.TempDir(), "none.db")), nil))
	if err := tick("lost"); err == nil || !strings.Contains(err.Error(), "poller lost") || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("without a table: %v", err)
	}
	for range 2 {
		testenv.Check(t, tick("orders"))
	}
	if got := p.counters(); got["orders"].Rows != 3 || got["orders"].Ticks != 2 || got["orders"].BatchSize != 100 || got["lost"].Failures != 2 || len(got) != 2 {
		t.Errorf("counted %+v", got)
	}
	p.close()
	if got := p.counters(); got["orders"].Rows != 3 || got["lost"].Failures != 2 {
		t.Errorf("counted when the sources are closed: %+v", got)
	}
	testenv.Check(t, tick("orders"))
	if got := p.counters(); got["orders"].Rows != 3 || got["orders"].Ticks != 3 || got["orders"].LastSuccess.IsZero() {
		t.Errorf("counted over two runners: %+v", got)
	}
	received, err := st.Queues.Receive(ctx, "work-queue", 10, time.Minute)
	if err != nil || len(received) != 3 {
		t.Fatalf("%d messages, %v", len(received), err)
	}
	var got []string
	for _, m := range received {
		var message struct {
			InstanceID string `json:"instanceId"`
			Input      struct{ Key json.RawMessage }
		}
		testenv.Check(t, json.Unmarshal(queues.Decode(m.Text), &message))
		got = append(got, fmt.Sprint(message.InstanceID, string(message.Input.Key)))
	}
	slices.Sort(got)
	if want := []string{`a{"id":1}`, `b{"id":2}`, `c{"id":9007199254740993}`}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// What is wrong with a definition is told at the start, with the poller's name.
func TestPollerSettings(t *testing.T) {
	t.Parallel()
	for document, complaint := range map[string]string{
		`{`:          settings.Pollers,
		`{"a":{}}`:   `poller "a"`,
		`{"A b":{}}`: `A b`,
		strings.Replace(someOrders, "0 * * * * *", "* * *", 1): "schedule",
	} {
		if _, err := settings.Load(settings.NewReader(emulator.With(settings.Pollers, document).Lookup)); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%.40s: %v", document, err)
		}
	}
	for document, complaint := range map[string]string{
		strings.Replace(someOrders, `"engine": "work"`, `"engine": "none"`, 1):       `poller orders: there is no engine "none"`,
		strings.Replace(someOrders, `"cursor": "id",`, `"cursor": "id", "x": 1,`, 1): `poller orders: source`,
	} {
		st := memoryPlatform(t, &faults.Plan{})
		s := load(t, emulator.With(settings.Pollers, document), &st)
		_, err := wirePollers(s, st, nil, []engine.Definition{{Name: "work", Queue: "q"}}, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: %v", complaint, err)
		}
	}
}
