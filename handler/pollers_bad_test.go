package handler

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

const (
	someRows = `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, state TEXT); INSERT INTO orders (state) VALUES ('a'), ('b'), ('c')`
	fromID   = `"cursor": "id", "keys": ["id"]`
	// tenMegabytes has a row of 10 MB in the middle.
	tenMegabytes = someRows + `; UPDATE orders SET state = printf('%.*c', 10485760, 'x') WHERE id = 2`
)

// badInput is a poller and what is wrong with its table.
type badInput struct {
	// dsn is what the setting of the connection string has; "file" is that of the table.
	dsn, table, source, more string
	// later is what happens to the table between the first tick, which goes well, and the second; "" is that already the first fails.
	later string
	// away says that the store of the state is not there.
	away bool
	// want is in the error, beside the name.
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
			want: []string{"the place is at 3", "beyond 1", "Reset the poller"}},
		"large-row": {dsn: "file", table: tenMegabytes, more: `, "quarantine": {"off": true}`, want: []string{"1 rows behind 1", "payload", "1048576"}},
		"no-state":  {dsn: "file", away: true, want: []string{"storage is away"}},
	}
}

// What is wrong with the table of a poller, its database or its state is told with the poller's name and what to do. The poller
// beside it goes on.
func TestPollersWithBadInput(t *testing.T) {
	t.Parallel()
	for name, bad := range badInputs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPolledTable(t, name, bad)
			err := w.tick(t, name)
			if bad.later != "" {
				testenv.Check(t, err)
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

// failing holds that a poller whose tick has failed is among the others, with what is wrong, wherever its state is.
func (w *polledTable) failing(t *testing.T, name string, bad badInput) {
	t.Helper()
	if bad.away {
		return // its state cannot be read
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

// A row of 10 MB is a dead letter, which says why, and those behind it go on.
func TestPollerWithLargeRow(t *testing.T) {
	t.Parallel()
	w := newPolledTable(t, "large", badInput{dsn: "file", table: tenMegabytes})
	testenv.Check(t, w.tick(t, "large"))
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

// polledTable is a poller of a table that feeds the outbox, and a good one beside it that feeds an engine.
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
	testenv.Check(t, err)
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
	testenv.Check(t, err)
	defer db.Close()
	testenv.Done(t)(db.ExecContext(t.Context(), statements))
}

func (w *polledTable) tick(t *testing.T, name string) error {
	t.Helper()
	at := slices.IndexFunc(w.pollers.jobs, func(j *pollerJob) bool { return j.setting.Name == name })
	return w.pollers.jobs[at].handle(t.Context(), trigger.TimerDelivery{})
}
