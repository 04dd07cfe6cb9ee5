package sqlsource_test

import (
	"testing"

	"github.com/vibedata/roundhouse/poller/sqlsource"
)

const benchRows = 100_000

// BenchmarkFetch reads a table of 100,000 rows of six columns, in batches of 1,000.
func BenchmarkFetch(b *testing.B) {
	for name, open := range databases() {
		b.Run(name, func(b *testing.B) {
			d := open(b)
			fill(b, d)
			c := d.config(byTime)
			if d.dialect == sqlsource.SQLite {
				c = d.config()
			}
			s := source(b, c)
			if _, err := s.End(b.Context()); err != nil {
				b.Fatal(err)
			}
			rows := 0
			for b.Loop() {
				n, err := sqlsource.ReadAll(b.Context(), s, 1000)
				if err != nil || n != benchRows {
					b.Fatalf("%d rows, %v", n, err)
				}
				rows += n
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func fill(b *testing.B, d database) {
	b.Helper()
	d.orders(b, 0)
	numbers := map[string]string{
		sqlsource.Postgres: "generate_series(1, 100000) n(n)",
		sqlsource.SQLite:   "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100000) SELECT n FROM s) n",
		sqlsource.MySQL:    "seq_1_to_100000 n",
	}[d.dialect]
	column := map[string]string{sqlsource.MySQL: "seq"}[d.dialect]
	if column == "" {
		column = "n"
	}
	run(b, d.open(b), "INSERT INTO orders (id, state, amount, open, changed) SELECT "+column+", 'open', '12.50', true, '2026-04-07 01:23:45.123456' FROM "+numbers)
}
