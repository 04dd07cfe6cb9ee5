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

// markerTypes returns columns of a dialect with values that leave a row live and values that mark it as deleted, as
// SQL.
func markerTypes(dialect string) map[string][2][]string {
	all := map[string][2][]string{
		"numeric(5,2)": {{"0", "0.00", "-0.0"}, {"1", "0.01", "-1", "2"}},
		"integer":      {{"0"}, {"1", "2", "-1"}},
		"date": {{"'9999-12-31'", "'2999-12-31'", "'1970-01-01'", "'1000-01-01'"},
			{"'2026-04-07'", "'1999-12-31'"}},
		"varchar(20)": {{"''", "'   '", "'0'", "'0.00'", "'00'", "'n'", "'N'", "'no'", "'NO '", "'f'", "'False'", "'off'", "'none'", "'null'", "'never'", "'-'", "'9999-12-31'", "'0000-00-00'", "'N/A'", "'00:00:00'"},
			{"'1'", "'y'", "'Y'", "'yes'", "'T'", "'true'", "'x'", "'deleted'", "'2026-04-07 01:02:03'", "'somebody'"}},
		"char(5)": {{"''", "' '", "'N'", "'0'", "'false'"}, {"'Y'", "'true'", "'1'"}},
	}
	switch dialect {
	case sqlsource.Postgres:
		all["boolean"] = [2][]string{{"false"}, {"true"}}
		all["double precision"] = [2][]string{{"0", "'-0'"}, {"1", "0.5", "'Infinity'", "'NaN'"}}
		all["real"] = [2][]string{{"0"}, {"0.1"}}
		all["timestamptz"] = [2][]string{{"'infinity'", "'-infinity'", "'9999-12-31 23:59:59.999999+00'", "'10000-01-01 00:00+00'", "'1970-01-01 00:00+00'", "'0001-01-01 00:00+00'", "'0044-03-15 00:00+00 BC'", "now() + interval '10 years'"},
			{"now()", "'2026-04-07 01:02:03+00'"}}
		all["timestamp"] = [2][]string{{"'infinity'", "'9999-12-31'"}, {"now()"}}
		all["date"] = [2][]string{append(all["date"][0], "'infinity'", "'0044-03-15 BC'"), all["date"][1]}
		all["time"] = [2][]string{{"'00:00'"}, {"'01:02'"}}
		all["interval"] = [2][]string{{"'0'"}, {"'1 day'"}}
		all["money"] = [2][]string{{"0"}, {"1"}}
		all["bit(1)"] = [2][]string{{"B'0'"}, {"B'1'"}}
		all["bit(3)"] = [2][]string{{"B'000'"}, {"B'010'"}}
		all["bytea"] = [2][]string{{`''`, `'\x00'`, `'\x0000'`, `'N'`}, {`'\x01'`, `'\xff'`, `'Y'`}}
		all["uuid"] = [2][]string{{"'00000000-0000-0000-0000-000000000000'"}, {"'04752c86-1b1f-4f0e-9c59-6a8f5c2d7e10'"}}
		all["jsonb"] = [2][]string{{"'null'", "'false'", "'0'", "'0.00'", `'""'`, `'"no"'`, "'[]'", "'{}'", `'"9999-12-31"'`}, {"'true'", "'1'", `'"yes"'`, `'{"by": "x"}'`}}
		all["text[]"] = [2][]string{{"'{}'"}, {"'{a}'"}}
		all["text"] = all["varchar(20)"]
	case sqlsource.MySQL:
		all["boolean"] = [2][]string{{"false"}, {"true"}}
		all["float"] = [2][]string{{"0"}, {"0.1"}}
		all["double"] = [2][]string{{"0"}, {"1"}}
		all["datetime(6)"] = [2][]string{{"'9999-12-31 23:59:59.999999'", "'1000-01-01'"}, {"NOW(6)"}}
		all["timestamp"] = [2][]string{{"'1970-01-01 00:00:01'"}, {"NOW()"}}
		all["bit(1)"] = [2][]string{{"b'0'"}, {"b'1'"}}
		all["bit(8)"] = [2][]string{{"0"}, {"48", "78"}} // the bits of the letters 0 and N
		all["year"] = [2][]string{{"0"}, {"2026"}}
		all["binary(1)"] = [2][]string{{"''", "'N'"}, {"'Y'", "x'01'"}}
		all["enum('N','Y')"] = [2][]string{{"'N'"}, {"'Y'"}}
		all["set('x')"] = [2][]string{{"''"}, {"'x'"}}
		all["json"] = [2][]string{{"'false'", "'0'", `'""'`, "'[]'"}, {"'true'", "'1'"}}
		all["time"] = [2][]string{{"'00:00'"}, {"'01:02'"}}
	case sqlsource.SQLite:
		all["boolean"] = [2][]string{{"0", "'false'"}, {"1", "'true'"}}
		all["real"] = [2][]string{{"0", "0.0"}, {"0.1"}}
		all["timestamp"] = [2][]string{{"''", "'9999-12-31T23:59:59Z'", "0"}, {"'2026-04-07T01:23:45.123Z'"}}
		all["blob"] = [2][]string{{"''", "x'00'"}, {"x'01'"}}
		all[""] = [2][]string{{"0", "'no'", "0.0"}, {"1", "'yes'"}}
	}
	for typ, values := range all {
		all[typ] = [2][]string{append([]string{"NULL"}, values[0]...), values[1]}
	}
	return all
}

// The type of a column determines the meaning of its values, in each dialect.
func TestMarkersByType(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			db := d.open(t)
			n := 0
			for typ, values := range markerTypes(d.dialect) {
				n++
				table := fmt.Sprint("marked", n)
				run(t, db, fmt.Sprintf("CREATE TABLE %s (id %s, live %s, deleted %s NULL, literal varchar(100))", table, d.serial, d.boolean, typ))
				for i, texts := range values {
					for _, text := range texts {
						run(t, db, fmt.Sprintf("INSERT INTO %s (live, deleted, literal) VALUES (%v, %s, '%s')", table, i == 0, text, strings.ReplaceAll(text, "'", "''")))
					}
				}
				rows := drain(t, source(t, d.config(func(c *sqlsource.Config) { c.Table, c.Deleted = table, "deleted" })), poller.Cursor{}, 100)
				if len(rows) != len(values[0])+len(values[1]) {
					t.Fatalf("%s: %d rows", typ, len(rows))
				}
				for _, r := range rows {
					var data struct {
						Live    any
						Literal string
					}
					testenv.OK(t, json.Unmarshal(r.Data, &data))
					if isLive := data.Live == true || data.Live == 1.0; r.Deleted == isLive {
						t.Errorf("%s %s: deleted %v: %s", typ, data.Literal, r.Deleted, r.Data)
					}
				}
			}
		})
	}
}

// A marker is proposed when its type and its values show its meaning, and the reason names the evidence.
func TestProposesMarkers(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			db := d.open(t)
			for i, c := range []struct {
				column  string
				values  []string
				propose bool
				reason  string
			}{
				{"deleted boolean", nil, true, "of 0 rows that were looked at, 0 are deleted"},
				{"deleted boolean", []string{"true", "false"}, true, "of 2 rows that were looked at, 1 are deleted"},
				{"deleted boolean", []string{"true"}, false, "all of the 1 rows"},
				{"deleted_at " + d.timestamp + " NULL", []string{"NULL"}, true, "0 are deleted"},
				{"deleted numeric(5,2)", nil, false, "does not say what it means"},
				{"deleted numeric(5,2)", []string{"0"}, true, "0 are deleted"},
				{"deleted numeric(5,2)", []string{"0", "0.5"}, false, "neither 0 nor 1"},
				{"deleted integer", []string{"0", "-1"}, false, "neither yes nor no"},
				{"is_deleted char(1)", []string{"'N'", "''"}, true, "0 are deleted"},
				{"is_deleted char(1)", []string{"'N'", "'Y'"}, true, "1 are deleted"},
				{"is_deleted char(1)", []string{"'N'", "'A'"}, false, "neither yes nor no"},
				{"deleted_on date", []string{"'9999-12-31'"}, true, "0 are deleted"},
				{"deleted varchar(20)", []string{"'active'", "'gone'"}, false, "neither yes nor no"},
			} {
				if name == "mariadb" && c.values == nil && c.propose {
					continue // a number there, which is unclear by itself
				}
				table := fmt.Sprint("proposed", i)
				run(t, db, fmt.Sprintf("CREATE TABLE %s (id %s, %s)", table, d.serial, c.column))
				column, _, _ := strings.Cut(c.column, " ")
				for _, v := range c.values {
					run(t, db, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, column, v))
				}
				p := d.propose(t, table)
				if reasons := strings.Join(p.Reasons, "\n"); (p.Config.Deleted == column) != c.propose || !strings.Contains(reasons, column) || !strings.Contains(reasons, c.reason) {
					t.Errorf("%s %v: proposed %q: %s", c.column, c.values, p.Config.Deleted, reasons)
				}
			}
		})
	}
}

// Check reports a marker that is unclear, or marks all rows.
func TestAdviceOnMarkers(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.orders(t, 2)
			check := func(marker, want string) {
				t.Helper()
				advice := strings.Join(testenv.Must(source(t, d.config(func(c *sqlsource.Config) { c.Deleted = marker })).Check(t.Context()))(t), "\n")
				if strings.Contains(advice, "deleted:") != (want != "") || !strings.Contains(advice, want) {
					t.Errorf("%s: %q, want %q", marker, advice, want)
				}
			}
			check("state", `neither yes nor no, such as "state0", "state1"`)
			check("open", "all of the 2 rows")
			run(t, d.open(t), "UPDATE orders SET open = false WHERE id = 1")
			check("open", "")
		})
	}
}
