package sqlsource_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// A column that rounds its times makes a row look older than it is: the rows of one second are returned when no other
// one can appear before them, however short the settle window is.
func TestRoundedTimes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sqlsource.Config){
		"timestamptz(0)": func(c *sqlsource.Config) { c.Settle = time.Millisecond },
		"timestamp(0)":   func(c *sqlsource.Config) { c.Settle = time.Millisecond },
		"timestamp(1)":   func(c *sqlsource.Config) { c.Settle, c.Table, c.Query = time.Millisecond, "", "SELECT * FROM orders" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newPostgres(t)
			db := d.open(t)
			run(t, db, "CREATE TABLE orders (id bigint PRIMARY KEY, changed "+name+")")
			s := source(t, d.config(byTime, change))
			var got []int
			var after poller.Cursor
			for id := 100; id > 0; id-- { // descending, so that of one time the later row comes first
				run(t, db, fmt.Sprintf("INSERT INTO orders VALUES (%d, now())", id), "SELECT pg_sleep(0.02)")
				b := testenv.Must(s.Fetch(t.Context(), after, 100, 1<<20))(t)
				if got = append(got, keys(t, b.Rows)...); len(b.Rows) > 0 {
					after = b.Rows[len(b.Rows)-1].Cursor
				}
			}
			got = append(got, keys(t, drain(t, s, after, 100))...)
			testenv.Equal(t, "", keys(t, drain(t, source(t, d.config(byTime, change)), poller.Cursor{}, 100)), got)
		})
	}
}
