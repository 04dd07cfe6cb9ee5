package handler

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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

// someOrders has a poller of a SQLite file whose rows are messages of an engine, and one whose database is missing.
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
	testenv.OK(t, err)
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

// Rows become messages, once; a poller whose database is missing reports that, and blocks no other.
func TestPollersRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dsn := "file:" + filepath.Join(t.TempDir(), "orders.db")
	execSQLite(t, dsn, `CREATE TABLE orders (id INTEGER PRIMARY KEY, instance TEXT); INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (9007199254740993, 'c')`)
	st := memoryPlatform(t, &faults.Plan{})
	s := load(t, emulator.With(settings.Pollers, someOrders).With("ORDERS_DSN", dsn), &st)
	letters := engine.NewDeadLetters(st.Tables, "")
	definitions := []engine.Definition{{Name: "work", Queue: "work-queue"}}
	p, err := wirePollers(s, st, nil, definitions, engine.NewClaims(st.Blobs, ""), letters, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(p.prepare(ctx), st.Queues.CreateQueue(ctx, "work-queue"), letters.CreateTable(ctx))
	}
	testenv.OK(t, err)
	defer p.close()
	tick := func(name string) error {
		at := slices.IndexFunc(p.jobs, func(j *pollerJob) bool { return j.setting.Name == name })
		return p.jobs[at].handle(ctx, trigger.TimerDelivery{})
	}
	begun := poller.Counters{BatchSize: 100, Lag: -1}
	testenv.Equal(t, "before the first tick", map[string]poller.Counters{"orders": begun, "lost": begun}, p.counters())
	if err := tick("lost"); err == nil || !strings.Contains(err.Error(), "poller lost") || !strings.Contains(err.Error(), "lost-dsn") || !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("without a secret: %v", err)
	}
	if got := p.counters()["lost"]; got.Ticks != 1 || got.Failures != 1 || !got.LastSuccess.IsZero() {
		t.Errorf("a source that was never opened: %+v", got)
	}
	testenv.Must(st.Secrets.Add(ctx, "lost-dsn", []byte("file:"+filepath.Join(t.TempDir(), "none.db")), nil))(t)
	if err := tick("lost"); err == nil || !strings.Contains(err.Error(), "poller lost") || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("without a table: %v", err)
	}
	for range 2 {
		testenv.OK(t, tick("orders"))
	}
	if got := p.counters(); got["orders"].Rows != 3 || got["orders"].Ticks != 2 || got["orders"].BatchSize != 100 || got["lost"].Failures != 2 || len(got) != 2 {
		t.Errorf("counted %+v", got)
	}
	p.close()
	if got := p.counters(); got["orders"].Rows != 3 || got["lost"].Failures != 2 {
		t.Errorf("counted when the sources are closed: %+v", got)
	}
	testenv.OK(t, tick("orders"))
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
		testenv.OK(t, json.Unmarshal(queues.Decode(m.Text), &message))
		got = append(got, fmt.Sprint(message.InstanceID, string(message.Input.Key)))
	}
	slices.Sort(got)
	if want := []string{`a{"id":1}`, `b{"id":2}`, `c{"id":9007199254740993}`}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// An error in a definition is reported at the start, with the poller's name.
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

const (
	someRows = `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, state TEXT); INSERT INTO orders (state) VALUES ('a'), ('b'), ('c')`
	fromID   = `"cursor": "id", "keys": ["id"]`
	// tenMegabytes has a row of 10 MB in the middle.
	tenMegabytes = someRows + `; UPDATE orders SET state = printf('%.*c', 10485760, 'x') WHERE id = 2`
)

// badInput is a poller with a problem in its table.
type badInput struct {
	// dsn is the connection string in the setting; "file" is that of the table.
	dsn, table, source, more string
	// later changes the table between the first tick, which succeeds, and the second; "" means that the first tick
	// already fails.
	later string
	// away means that the store of the state is missing.
	away bool
	// want is in the error, next to the name.
	want []string
}

func badInputs() map[string]badInput {
	return map[string]badInput{
		"no-dsn":         {want: []string{"BAD_DSN", "set it to the connection string"}},
		"wrong-dsn":      {dsn: "file:/nowhere/orders.db", source: fromID, want: []string{"cannot be reached", "check the path"}},
		"no-table":       {dsn: "file", table: `SELECT 1`, want: []string{"orders", "create it, or correct the definition"}},
		"missing-column": {dsn: "file", source: `"cursor": "changed", "keys": ["id"]`, want: []string{"changed", "there are id, state", "correct the definition"}},
		"missing-key":    {dsn: "file", source: `"cursor": "id", "keys": ["number"]`, want: []string{"number", "there are id, state"}},
		"type-of-cursor": {dsn: "file", source: `"cursor": "state", "keys": ["id"]`, want: []string{"state is TEXT", "set bound to settle"}},
		"changed-type": {dsn: "file", later: `DROP TABLE orders; CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT); INSERT INTO orders VALUES ('x', 'y')`,
			want: []string{"id is TEXT", "column's type"}},
		"dropped-column": {dsn: "file", later: `DROP TABLE orders; CREATE TABLE orders (number INTEGER PRIMARY KEY)`, want: []string{"id; there are number"}},
		"dropped-table":  {dsn: "file", later: `DROP TABLE orders`, want: []string{"orders", "create it, or correct the definition"}},
		"not-unique": {dsn: "file", table: `CREATE TABLE orders (id INTEGER, state TEXT); INSERT INTO orders VALUES (1, 'a'), (1, 'b')`,
			want: []string{"some have the same id", "keys must name a row"}},
		"not-unique-any-more": {dsn: "file", table: `CREATE TABLE orders (id INTEGER, state TEXT); INSERT INTO orders VALUES (1, 'a')`,
			later: `INSERT INTO orders VALUES (2, 'a'), (2, 'b')`, want: []string{`two rows {"id":2}`, "unique index"}},
		"null-key": {dsn: "file", table: `CREATE TABLE orders (id INTEGER, part INTEGER, state TEXT); INSERT INTO orders VALUES (1, NULL, 'a')`, source: `"cursor": "id", "keys": ["part"]`,
			want: []string{"without part", "NOT NULL"}},
		"cursor-went-back": {dsn: "file", later: `DELETE FROM orders WHERE id > 1; UPDATE sqlite_sequence SET seq = 1`,
			want: []string{"the place is at 3", "the table ends at 1", "reset-to-beginning"}},
		"large-row": {dsn: "file", table: tenMegabytes, more: `, "quarantine": {"off": true}`, want: []string{"1 rows behind 1", "payload", "1048576"}},
		"no-state":  {dsn: "file", away: true, want: []string{"storage is away"}},
	}
}

// A problem with the table of a poller, its database or its state is reported with the poller's name and the remedy.
// Other pollers continue.
func TestPollersWithBadInput(t *testing.T) {
	t.Parallel()
	for name, bad := range badInputs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPolledTable(t, name, bad)
			err := w.tick(t, name)
			if bad.later != "" {
				testenv.OK(t, err)
				w.exec(t, bad.later)
				err = w.tick(t, name)
			}
			for _, text := range append(bad.want, "poller "+name+": ") {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("no %q in %v", text, err)
				}
			}
			w.failing(t, name, bad)
			if err := w.tick(t, "good"); err != nil {
				t.Errorf("the other: %v", err)
			}
			if n, err := w.platform.Queues.Length(t.Context(), "work"); err != nil || n != 3 {
				t.Errorf("the other has sent %d rows, %v", n, err)
			}
		})
	}
}

// failing checks that a poller with a failed tick is listed with the problem, for any place of its state.
func (w *polledTable) failing(t *testing.T, name string, bad badInput) {
	t.Helper()
	if bad.away {
		return // its state is unreadable
	}
	page, more, err := w.pollers.admin.Page(t.Context(), "", 10)
	if err != nil || more || len(page) != 2 {
		t.Fatalf("%d pollers, %v", len(page), err)
	}
	for _, p := range page {
		switch {
		case p.Name == "good" && p.Condition() != poller.New:
			t.Errorf("%s is %s", p.Name, p.Condition())
		case p.Name == name && (p.Condition() != poller.Failing || !strings.Contains(p.View.Document.WhatIsWrong(), bad.want[len(bad.want)-1])):
			t.Errorf("%s is %s: %q", p.Name, p.Condition(), p.View.Document.WhatIsWrong())
		}
	}
}

// A row of 10 MB is a dead letter with the reason, and the rows behind it are delivered.
func TestPollerWithLargeRow(t *testing.T) {
	t.Parallel()
	w := newPolledTable(t, "large", badInput{dsn: "file", table: tenMegabytes})
	testenv.OK(t, w.tick(t, "large"))
	page, err := w.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"poller-large"}})
	if err != nil || len(page.DeadLetters) != 1 {
		t.Fatalf("%d dead letters, %v", len(page.DeadLetters), err)
	}
	letter, err := w.letters.Get(t.Context(), "poller-large", page.DeadLetters[0].RowKey)
	if err != nil || !strings.Contains(letter.ErrorMessage, "poller large") || !strings.Contains(letter.ErrorMessage, "1048576") ||
		!strings.Contains(string(letter.OriginalMessage), `"key":{"id":2}`) || len(letter.OriginalMessage) > 1<<10 {
		t.Errorf("%+v, %v", letter, err)
	}
	view, err := poller.Operator{Store: w.pollers.stores[poller.StateBlob]}.Show(t.Context(), "large")
	if err != nil || view.Document.Cursor().Value != "3" {
		t.Errorf("%s, %v", view.Text, err)
	}
}

// polledTable is a poller of a table that feeds the outbox, and a working one that feeds an engine.
type polledTable struct {
	platform Platform
	pollers  *pollers
	letters  *engine.DeadLetters
	dsn      string
}

func newPolledTable(t *testing.T, name string, bad badInput) *polledTable {
	t.Helper()
	var away atomic.Bool
	st := memoryPlatform(t, &faults.Plan{})
	st.Blobs = faults.Blobs(st.Blobs, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if away.Load() && c.Target == poller.DefaultContainer {
			return errors.New("storage is away")
		}
		return next(ctx)
	})
	w := &polledTable{platform: st, dsn: "file:" + filepath.Join(t.TempDir(), "orders.db")}
	if bad.table == "" {
		bad.table = someRows
	}
	if bad.source == "" {
		bad.source = fromID
	}
	w.exec(t, bad.table)
	goodDSN := "file:" + filepath.Join(t.TempDir(), "good.db")
	execSQLite(t, goodDSN, someRows)
	if bad.dsn == "file" {
		bad.dsn = w.dsn
	}
	document := fmt.Sprintf(`{
		%q: {"connection": {"setting": "BAD_DSN"}, "source": {"dialect": "sqlite", "sourceId": "bad", "table": "orders", %s},
			"deliver": {"outbox": {"eventType": "order", "tenantId": "t"}}%s},
		"good": {"connection": {"setting": "GOOD_DSN"}, "state": "table", "source": {"dialect": "sqlite", "sourceId": "good", "table": "orders", %s},
			"deliver": {"engine": {"engine": "work"}}}}`, name, bad.source, bad.more, fromID)
	s := load(t, emulator.With(settings.Pollers, document).With("BAD_DSN", bad.dsn).With("GOOD_DSN", goodDSN), &st)
	e, letters := newEvents(t, st, "")
	st.Outbox, w.letters = e.writer, letters
	var err error
	w.pollers, err = wirePollers(s, st, nil, []engine.Definition{{Name: "work", Queue: "work"}}, engine.NewClaims(st.Blobs, ""), letters, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(w.pollers.prepare(t.Context()), st.Queues.CreateQueue(t.Context(), "work"))
	}
	testenv.OK(t, err)
	t.Cleanup(w.pollers.close)
	away.Store(bad.away)
	return w
}

func (w *polledTable) exec(t *testing.T, statements string) {
	t.Helper()
	execSQLite(t, w.dsn, statements)
}

func execSQLite(t *testing.T, dsn, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn)
	testenv.OK(t, err)
	defer db.Close()
	testenv.Must(db.ExecContext(t.Context(), statements))(t)
}

func (w *polledTable) tick(t *testing.T, name string) error {
	t.Helper()
	at := slices.IndexFunc(w.pollers.jobs, func(j *pollerJob) bool { return j.setting.Name == name })
	return w.pollers.jobs[at].handle(t.Context(), trigger.TimerDelivery{})
}
