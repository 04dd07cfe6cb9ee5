package sqlsource_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// The plan is that of the fetch: its statement, the server's plan, the index, and the number of waiting rows. Values
// appear only on request, and nothing is changed.
func TestPlan(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.orders(t, 20)
			db := d.open(t)
			run(t, db, map[string]string{"postgres": "ANALYZE orders", "sqlite": "ANALYZE", "mariadb": "ANALYZE TABLE orders"}[name])
			config := d.config(byTime, func(c *sqlsource.Config) {
				c.Where = []sqlsource.Condition{{Column: "state", Op: "<>", Value: "s3cret"}}
			})
			rows := drain(t, source(t, config), poller.Cursor{}, 100)
			s := source(t, config)
			p := testenv.Must(s.Plan(t.Context(), rows[4].Cursor, sqlsource.PlanOptions{Limit: 5, Count: 10}))(t)
			if want := (sqlsource.Count{Rows: 10, AtLeast: true}); p.Due != want || p.Waiting != want || p.HeldBack != "" || p.Estimated < 15 || p.Estimated > 25 {
				t.Errorf("%+v", p)
			}
			if diff := cmp.Diff([]string{"changed", "id"}, p.Order); diff != "" || p.Index != "orders_changed" || p.Missing != "" {
				t.Errorf("%+v %s", p, diff)
			}
			text := testenv.Must(json.Marshal(p))(t)
			if len(p.Explain) == 0 || !strings.Contains(p.Statement, "ORDER BY") || strings.Contains(string(text), "s3cret") || strings.Contains(string(text), rows[4].Cursor.Value[:10]) {
				t.Errorf("%s", text)
			}
			for _, parameter := range p.Parameters {
				if parameter.Type == "" || parameter.Value != "" {
					t.Errorf("%+v", parameter)
				}
			}
			all, err := s.Plan(t.Context(), rows[4].Cursor, sqlsource.PlanOptions{Values: true})
			if err != nil || !strings.Contains(fmt.Sprint(all.Parameters), "s3cret") || all.Due != (sqlsource.Count{Rows: 15}) {
				t.Errorf("with values: %+v, %v", all, err)
			}
			// The rows of the plan are those of the fetch.
			if got := drain(t, s, rows[4].Cursor, 100); len(got) != all.Due.Rows {
				t.Errorf("%d rows, planned %d", len(got), all.Due.Rows)
			}
		})
	}
}

// Without an index, the plan has the statement that makes a suitable one.
func TestPlanWithoutAnIndex(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			db := d.open(t)
			run(t, db, fmt.Sprintf("CREATE TABLE orders (id %s, changed %s)", d.serial, d.timestamp))
			s := source(t, d.config(byTime))
			p, err := s.Plan(t.Context(), poller.Cursor{}, sqlsource.PlanOptions{})
			if err != nil || p.Index != "" || p.Missing == "" || p.Waiting.Rows != 0 {
				t.Fatalf("%+v, %v", p, err)
			}
			run(t, db, strings.TrimSuffix(p.Missing, ";"))
			if p, err = s.Plan(t.Context(), poller.Cursor{}, sqlsource.PlanOptions{}); err != nil || p.Index != "orders_changed" || p.Missing != "" {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}
