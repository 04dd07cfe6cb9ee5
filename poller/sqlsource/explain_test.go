package sqlsource_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

func wantVerdict(t *testing.T, s *sqlsource.Source, key string, after poller.Cursor, want sqlsource.Verdict, words ...string) sqlsource.Explanation {
	t.Helper()
	e, err := s.Explain(t.Context(), json.RawMessage(key), after)
	if err != nil || e.Verdict != want {
		t.Errorf("%s from %v: %q (%s), %v, want %q", key, after, e.Verdict, e.Why, err, want)
	}
	for _, w := range words {
		if !strings.Contains(e.Why, w) {
			t.Errorf("%s from %v: no %q in %q", key, after, w, e.Why)
		}
	}
	return e
}

// Each reason why a row was delivered or not, for each database.
func TestExplain(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.orders(t, 4)
			db := d.open(t)
			run(t, db, "INSERT INTO orders (id, state, changed) VALUES (9, 'state1', NULL)")
			if d.dialect != sqlsource.SQLite {
				// Its time is never reached, like a wrong one from an application's clock.
				run(t, db, "INSERT INTO orders (id, state, changed) VALUES (10, 'state1', '2037-01-01 00:00:00')")
			}
			s := source(t, d.config(byTime, func(c *sqlsource.Config) {
				c.Where = []sqlsource.Condition{{Column: "state", Op: "=", Value: "state1"}}
			}))
			rows := drain(t, source(t, d.config(byTime, func(c *sqlsource.Config) {
				c.Where = []sqlsource.Condition{{Column: "id", Op: "<", Value: 9}}
			})), poller.Cursor{}, 10)
			first := rows[0].Cursor
			fourth := wantVerdict(t, s, `{"id":4}`, first, sqlsource.RowDue).Row.Cursor
			wantVerdict(t, s, `{"id":"4"}`, poller.Cursor{}, sqlsource.RowDue)
			wantVerdict(t, s, `{"id":4}`, fourth, sqlsource.RowDelivered)
			wantVerdict(t, s, `{"id":2}`, fourth, sqlsource.RowPassed, "cannot tell these apart")
			wantVerdict(t, s, `{"id":1}`, first, sqlsource.RowFiltered, "state =")
			wantVerdict(t, s, `{"id":9}`, first, sqlsource.RowWithoutCursor, "changed")
			wantVerdict(t, s, `{"id":77}`, first, sqlsource.RowAbsent)
			if d.dialect != sqlsource.SQLite {
				wantVerdict(t, s, `{"id":10}`, fourth, sqlsource.RowHeldBack)
			}
			// A number has to be observed for a window before its bound is known.
			wantVerdict(t, source(t, d.config()), `{"id":4}`, poller.Cursor{}, sqlsource.RowDue)
			for _, bad := range []string{`{"id":"x"}`, `{"no":1}`, `7`, `{"id":[1]}`} {
				_, err := s.Explain(t.Context(), json.RawMessage(bad), first)
				wants(t, err, sqlsource.ErrColumnType, "orders")
			}
		})
	}
}

// The transaction that holds a row back is named: by settle the open one, by xid the one that has written.
func TestExplainNamesTheTransaction(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	db := d.open(t)
	run(t, db, "CREATE TABLE orders (id bigint PRIMARY KEY, changed_in xid8 NOT NULL DEFAULT pg_current_xact_id(), changed timestamptz NOT NULL DEFAULT now())")
	tx := testenv.Must(db.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	var pid int
	var xid string
	testenv.OK(t, tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid(), pg_current_xact_id()::text").Scan(&pid, &xid))
	run(t, db, "INSERT INTO orders (id) VALUES (1)")
	for bound, cursor := range map[string]string{sqlsource.BoundXID: "changed_in", sqlsource.BoundSettle: "changed"} {
		s := source(t, d.config(func(c *sqlsource.Config) { c.Cursor, c.Bound = cursor, bound }))
		wantVerdict(t, s, `{"id":1}`, poller.Cursor{}, sqlsource.RowHeldBack)
		if bound == sqlsource.BoundXID { // older transactions of other tests on the server also hold the row back, until they end
			testenv.Until(t, "that process to be named", func() bool {
				e := testenv.Must(s.Explain(t.Context(), json.RawMessage(`{"id":1}`), poller.Cursor{}))(t)
				return strings.Contains(e.Why, fmt.Sprintf("process %d of", pid))
			})
		}
	}
	testenv.OK(t, tx.Rollback())
	s := source(t, d.config(func(c *sqlsource.Config) { c.Cursor, c.Bound = "changed_in", sqlsource.BoundXID }))
	testenv.Until(t, "the row to be due", func() bool {
		return testenv.Must(s.Explain(t.Context(), json.RawMessage(`{"id":1}`), poller.Cursor{}))(t).Verdict == sqlsource.RowDue
	})
}
