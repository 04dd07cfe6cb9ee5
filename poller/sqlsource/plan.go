package sqlsource

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/poller"
)

// maxCount bounds the count of waiting rows.
const maxCount = 100_000

// Plan is the next fetch.
type Plan struct {
	// Statement is the text of the fetch, and Parameters are the values of its placeholders.
	Statement  string      `json:"statement"`
	Parameters []Parameter `json:"parameters"`
	// Explain is the server's plan, empty where it is unavailable.
	Explain []string `json:"explain"`
	// Order are the columns that an index has to begin with, Index is the one that does, and Missing the remedy without
	// one. Of a query only the order is known.
	Order   []string `json:"order"`
	Index   string   `json:"index,omitempty"`
	Missing string   `json:"missing,omitempty"`
	// Due are the rows that fetches could return now, Waiting also includes the held back ones; HeldBack is the reason.
	Due      Count  `json:"due"`
	Waiting  Count  `json:"waiting"`
	HeldBack string `json:"heldBack,omitempty"`
	// Estimated is the number of the table's rows by the statistics of the server, regardless of Where; -1 without any.
	Estimated int64 `json:"estimatedRows"`
}

// Parameter is the value of a placeholder: its type, and on request the value itself.
type Parameter struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
}

// Count is a number of rows.
type Count struct {
	Rows int `json:"rows"`
	// AtLeast means that the count reached its limit.
	AtLeast bool `json:"atLeast,omitempty"`
}

// PlanOptions are the options of Plan.
type PlanOptions struct {
	// Limit is the number of rows of the fetch, Count the limit of the count of waiting rows; 0 means 100, and 10,000.
	Limit, Count int
	// Values includes values. Without it, plans and parameters only have types.
	Values bool
}

// Plan returns the next fetch after a position. It delivers no rows and changes nothing. Where the bound has to be
// observed first, it waits for about the settle window.
func (s *Source) Plan(ctx context.Context, after poller.Cursor, o PlanOptions) (Plan, error) {
	p, err := s.plan(ctx, after, o)
	return p, s.fail("plan a fetch of", err)
}

func (s *Source) plan(ctx context.Context, after poller.Cursor, o PlanOptions) (p Plan, err error) {
	if o.Limit < 1 {
		o.Limit = 100
	}
	if o.Count < 1 {
		o.Count = 10_000
	}
	r, err := s.prepare(ctx, after)
	if err != nil {
		return p, err
	}
	if r.up, err = s.watched(ctx, r.sh); err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	next, err := s.statement(s.next(r, o.Limit), r.up.where...)
	if err != nil {
		return p, err
	}
	p = Plan{Statement: next.text.String(), Parameters: []Parameter{}, Explain: []string{}, Estimated: -1}
	for i, arg := range next.args {
		known := Parameter{Type: next.types[i]}
		if o.Values {
			known.Value = fmt.Sprint(arg)
		}
		p.Parameters = append(p.Parameters, known)
	}
	if s.dialect.plan != nil {
		if p.Explain, err = s.dialect.plan(ctx, s, p.Statement, next.args); err != nil {
			return p, err
		}
	}
	if !o.Values {
		masked(p.Explain)
	}
	if err := s.planIndex(ctx, r.sh, &p); err != nil {
		return p, err
	}
	return p, s.countRows(ctx, r, min(o.Count, maxCount), &p)
}

// planIndex finds the index for the order.
func (s *Source) planIndex(ctx context.Context, sh *shape, p *Plan) (err error) {
	p.Order = []string{sh.columns[sh.cursor].name}
	for _, i := range sh.ties {
		p.Order = append(p.Order, sh.columns[i].name)
	}
	if s.config.Table == "" {
		p.Missing, err = s.adviseIndex(ctx, sh)
		return err
	}
	known, err := s.dialect.catalog(ctx, s)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(known.indexes, func(i index) bool { return i.serves(p.Order, s.appended(known)) }); at >= 0 {
		p.Index = known.indexes[at].name
		return nil
	}
	table := tableParts(s.config.Table)
	p.Missing = s.fill(s.dialect.remedies.index, parts{table: s.regclass(), name: table[len(table)-1] + "_" + p.Order[0], columns: p.Order})
	return nil
}

// countRows counts the waiting rows up to a limit.
func (s *Source) countRows(ctx context.Context, r reading, limit int, p *Plan) (err error) {
	where := slices.Concat(r.filters, []func(*statement){r.place})
	if p.Waiting, err = s.count(ctx, where, limit); err != nil {
		return err
	}
	if !r.up.nothing {
		if p.Due, err = s.count(ctx, slices.Concat(where, r.up.where), limit); err != nil {
			return err
		}
	}
	if p.Waiting.Rows > p.Due.Rows {
		p.HeldBack = r.up.reason
	}
	if s.config.Table != "" {
		p.Estimated, err = s.dialect.estimate(ctx, s)
	}
	return err
}

func (s *Source) count(ctx context.Context, where []func(*statement), limit int) (c Count, err error) {
	text, args, err := s.build(query{columns: []string{"1 AS one"}, where: where, limit: limit + 1})
	if err != nil {
		return c, err
	}
	err = eachRow(ctx, s.db, "SELECT COUNT(*) FROM ("+text+") w", args, func(row []string) error {
		_, err := fmt.Sscan(row[0], &c.Rows)
		return err
	})
	c.AtLeast, c.Rows = c.Rows > limit, min(c.Rows, limit)
	return c, err
}

var (
	// conditions matches the lines of PostgreSQL's plans with values; literals matches a value there.
	conditions = regexp.MustCompile(`(Cond|Filter|Key|Output|Run Condition): `)
	literals   = regexp.MustCompile(`'(?:[^']|'')*'|\b[0-9][0-9.]*\b`)
)

// masked removes the values from a plan.
func masked(plan []string) {
	for i, line := range plan {
		if at := conditions.FindStringIndex(line); at != nil {
			plan[i] = line[:at[1]] + literals.ReplaceAllString(line[at[1]:], "?")
		}
	}
}

func planPostgres(ctx context.Context, s *Source, text string, args []any) (lines []string, err error) {
	_, err = anyRow(ctx, s, "EXPLAIN "+text, args, func(row []string) bool { lines = append(lines, row[0]); return false })
	return lines, err
}

func planSQLite(ctx context.Context, s *Source, text string, args []any) (lines []string, err error) {
	_, err = anyRow(ctx, s, "EXPLAIN QUERY PLAN "+text, args, func(row []string) bool { lines = append(lines, row[len(row)-1]); return false })
	return lines, err
}

// planMySQL names the columns of the plan, which differ between MySQL and MariaDB.
func planMySQL(ctx context.Context, s *Source, text string, args []any) (lines []string, err error) {
	rows, err := s.db.QueryContext(ctx, "EXPLAIN "+text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		var line []string
		for i, v := range values {
			if v.Valid {
				line = append(line, names[i]+"="+v.String)
			}
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines, rows.Err()
}

func estimatePostgres(ctx context.Context, s *Source) (int64, error) {
	return number(ctx, s, "SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass($1)", s.regclass())
}

func estimateMySQL(ctx context.Context, s *Source) (int64, error) {
	return number(ctx, s, "SELECT COALESCE(table_rows, -1) FROM information_schema.tables WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?", s.mysqlTable()...)
}

// estimateSQLite has statistics only after ANALYZE.
func estimateSQLite(ctx context.Context, s *Source) (int64, error) {
	table := s.sqliteTable()
	schema := s.dialect.quote(table[1].(string))
	analyzed, err := anyRow(ctx, s, "SELECT 1 FROM "+schema+".sqlite_master WHERE name = 'sqlite_stat1'", nil, func([]string) bool { return true })
	if err != nil || !analyzed {
		return -1, err
	}
	return number(ctx, s, "SELECT CAST(stat AS INTEGER) FROM "+schema+".sqlite_stat1 WHERE tbl = ?1 COLLATE NOCASE LIMIT 1", table[0])
}

func estimateSQLServer(ctx context.Context, s *Source) (int64, error) {
	return number(ctx, s, "SELECT COALESCE(SUM(rows), -1) FROM sys.partitions WHERE object_id = OBJECT_ID(@p1) AND index_id IN (0, 1)", s.regclass())
}

// number returns the first number of a statement, -1 without one.
func number(ctx context.Context, s *Source, statement string, args ...any) (n int64, err error) {
	n = -1
	_, err = anyRow(ctx, s, statement, args, func(row []string) bool {
		_, err := fmt.Sscan(row[0], &n)
		return err == nil
	})
	return n, err
}

// holderPostgres returns the oldest transaction that has written.
func holderPostgres(ctx context.Context, s *Source) (string, error) {
	v, found, err := first(ctx, s.db, `SELECT who FROM (
	SELECT 'process ' || pid || ' of ' || coalesce(usename, 'the server') || ' (' || application_name || '), open since ' || xact_start AS who, age(backend_xid) AS age
		FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
	UNION ALL SELECT 'the prepared transaction ' || gid, age(transaction) FROM pg_prepared_xacts) t WHERE who IS NOT NULL ORDER BY age DESC LIMIT 1`)
	if err != nil {
		return "", err
	}
	if !found {
		return "which the user does not see: GRANT pg_read_all_stats to it", nil
	}
	return v[0].String, nil
}
