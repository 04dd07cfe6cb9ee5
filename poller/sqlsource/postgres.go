package sqlsource

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

func postgresDialect() *dialect {
	return &dialect{
		bounds:      []string{BoundSettle, BoundXID},
		connect:     connectPostgres,
		address:     PostgresAddress,
		databaseID:  PostgresDatabaseID,
		quotes:      [2]string{`"`, `"`},
		placeholder: func(n int) string { return "$" + strconv.Itoa(n) },
		rowValues:   true,
		classes: map[string]class{"INT2": classInteger, "INT4": classInteger, "INT8": classInteger, "OID": classInteger,
			"NUMERIC": classDecimal, "FLOAT4": classFloat, "FLOAT8": classFloat, "BOOL": classBoolean, "TEXT": classText,
			"VARCHAR": classText, "BPCHAR": classText, "NAME": classText, "UUID": classText, "TIMESTAMPTZ": classTime,
			"TIMESTAMP": classLocal, "DATE": classLocal, "TIME": classOther, "BYTEA": classBytes, "JSON": classJSON,
			"JSONB": classJSON, "XID8": classXID},
		// Types without a class (arrays, composites, intervals) are written as in the database's JSON.
		other: classJSON,
		expression: func(quoted string, c column) string {
			_, listed := map[string]bool{"JSON": true, "JSONB": true}[c.typ]
			switch {
			case c.class == classJSON && !listed:
				return "to_jsonb(" + quoted + ")::text"
			case c.class == classTime || c.class == classLocal || c.class == classXID || c.class == classOther || c.class == classFloat:
				return quoted + "::text" // the driver would widen a real, and does not support years BC
			}
			return quoted
		},
		bind: func(placeholder, _ string, c column) string {
			if c.class == classJSON {
				return placeholder
			}
			return "CAST(" + placeholder + " AS " + strings.ToLower(c.typ) + ")"
		},
		argument: func(text string, _ column) any { return text },
		ceiling:  "pg_snapshot_xmin(pg_current_snapshot())::text",
		refine:   stepsPostgres,
		look:     lookPostgres,
		unique:   uniquePostgres,
		notNull:  notNullPostgres,
		scans:    scansPostgres,
		sequence: sequencePostgres,
		advise:   adviseNumbers(handedOutPostgres),
		frontier: frontierPostgres,
		catalog:  catalogPostgres,
		remedies: remediesPostgres(),
		plan:     planPostgres,
		estimate: estimatePostgres,
		holder:   holderPostgres,
		explain:  explainPostgres,
	}
}

func connectPostgres(dsn string, timeout time.Duration) (driver.Connector, []string, error) {
	dsn = clean(dsn)
	secrets, err := postgresForm().check(dsn)
	if err != nil {
		return nil, nil, err
	}
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	// A cached plan would fail after a change of the table.
	c.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = timeout
	}
	milliseconds := strconv.FormatInt(timeout.Milliseconds(), 10)
	for name, value := range map[string]string{"default_transaction_read_only": "on", "TimeZone": "UTC", "DateStyle": "ISO", "extra_float_digits": "3",
		"statement_timeout": milliseconds, "lock_timeout": milliseconds, "idle_in_transaction_session_timeout": milliseconds} {
		c.RuntimeParams[name] = value
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "roundhouse-poller"
	}
	return stdlib.GetConnector(*c), append(secrets, credentials(c.User, c.Password)...), nil
}

// stepsPostgres finds columns such as timestamp(0), whose times are rounded, in the server's description of a
// statement, which database/sql omits.
func stepsPostgres(ctx context.Context, s *Source, sh *shape) (err error) {
	text, _, err := s.build(query{})
	if err != nil {
		return err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Raw(func(of any) error {
		c, ok := of.(*stdlib.Conn)
		if !ok {
			return nil // a custom driver of the caller: the settle window has to cover the rounding
		}
		described, err := c.Conn().Prepare(ctx, "", text)
		if err != nil {
			return err
		}
		for i, field := range described.Fields {
			if known := sh.columns[i].class; field.TypeModifier >= 0 && field.TypeModifier < 6 && (known == classTime || known == classLocal) {
				sh.columns[i].step = time.Second / time.Duration(math.Pow10(int(field.TypeModifier)))
			}
		}
		return nil
	})
}

// lookPostgres is one statement, because the list of transactions is kept from the first read to the transaction's end.
// The clock is that of its start. Transactions that have not written yet count, because their now() is that of their
// start.
func lookPostgres(ctx context.Context, s *Source) (sighting, error) {
	readers := "{}"
	if len(s.config.Readers) > 0 {
		var quoted []string
		for _, r := range s.config.Readers {
			quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(r)+`"`)
		}
		readers = "{" + strings.Join(quoted, ",") + "}"
	}
	v, _, err := first(ctx, s.db, `WITH others AS MATERIALIZED (
	SELECT pid, usename, application_name, xact_start, state FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid()
	AND backend_type NOT IN ('autovacuum worker', 'parallel worker', 'walsender')
	AND (usename IS NULL OR usename <> ALL (CAST($1 AS text[])))
), oldest AS (SELECT * FROM others WHERE xact_start IS NOT NULL ORDER BY xact_start LIMIT 1)
SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
	(SELECT (extract(epoch FROM xact_start) * 1000000)::bigint FROM oldest),
	(SELECT 'process ' || pid || ' of ' || coalesce(usename, 'the server') || ' (' || application_name || ')' FROM oldest),
	(SELECT min(gid) FROM pg_prepared_xacts WHERE database = current_database()),
	pg_is_in_recovery(),
	pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
	current_setting('track_activities') = 'on' AND NOT EXISTS (SELECT 1 FROM others WHERE state = 'disabled')`, readers)
	if err != nil {
		return sighting{}, err
	}
	switch {
	case v[4].String == "true":
		return sighting{}, fmt.Errorf("%w: this is a standby, which does not see the primary's transactions: read from the primary, or use the bound xid", ErrBound)
	case v[5].String != "true":
		return sighting{}, fmt.Errorf("%w: the user does not see others' transactions: GRANT pg_read_all_stats to it", ErrBound)
	case v[6].String != "true":
		return sighting{}, fmt.Errorf("%w: track_activities is off, so that transactions are not seen: set it to on", ErrBound)
	}
	seen := sighting{now: microseconds(v[0].String), holder: v[2].String}
	if v[1].Valid {
		seen.oldest = microseconds(v[1].String)
	}
	if v[3].Valid {
		seen.unknown, seen.holder = true, "a transaction is prepared and neither committed nor rolled back: "+v[3].String
	}
	return seen, nil
}

func microseconds(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil { // unreachable: the statement casts it
		return time.Time{}
	}
	return time.UnixMicro(n)
}

// regclass returns the table in the form of to_regclass; "" for a query.
func (s *Source) regclass() string {
	var quoted []string
	for _, part := range tableParts(s.config.Table) {
		quoted = append(quoted, s.dialect.quote(part))
	}
	return strings.Join(quoted, ".")
}

func notNullPostgres(ctx context.Context, s *Source) (map[string]bool, error) {
	return nameSet(ctx, s, "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnotnull", s.regclass())
}

// uniquePostgres searches an index with only key columns.
func uniquePostgres(ctx context.Context, s *Source) (bool, error) {
	columns := make([]string, len(s.config.Keys))
	for i, k := range s.config.Keys {
		columns[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(k) + `"`
	}
	_, found, err := first(ctx, s.db, `SELECT 1 FROM pg_index i WHERE indrelid = to_regclass($1) AND indisunique AND indisvalid AND indpred IS NULL
		AND NOT EXISTS (SELECT 1 FROM unnest(i.indkey[0:i.indnkeyatts - 1]) k(attnum)
			LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
			WHERE a.attname IS NULL OR a.attname <> ALL (CAST($2 AS text[])))`, s.regclass(), "{"+strings.Join(columns, ",")+"}")
	return found, err
}

// scansPostgres reads the plan for a large table.
func scansPostgres(ctx context.Context, s *Source, text string, args []any) (bool, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	// The transaction changed nothing.
	defer func() { _ = tx.Rollback() }()
	for _, way := range []string{"seqscan", "bitmapscan", "sort"} {
		if _, err := tx.ExecContext(ctx, "SET LOCAL enable_"+way+" = off"); err != nil {
			return false, err
		}
	}
	v, _, err := first(ctx, tx, "EXPLAIN (FORMAT JSON) "+text, args...)
	if err != nil {
		return false, err
	}
	plan := v[0].String
	return strings.Contains(plan, `"Node Type": "Seq Scan"`) || strings.Contains(plan, `"Node Type": "Sort"`), nil
}

// sequencePostgres refuses sequences whose values are not in the order of their transactions: each session takes
// several ahead, or the steps show that an application takes blocks and assigns the numbers itself. Such a sequence
// often belongs to no column, so it is searched by the names that mappers use.
func sequencePostgres(ctx context.Context, s *Source, c column) error {
	parts := tableParts(s.config.Table)
	table := parts[len(parts)-1]
	v, found, err := first(ctx, s.db, `SELECT q.seqcache, q.seqincrement, q.seqrelid::regclass::text FROM pg_sequence q JOIN pg_class r ON r.oid = q.seqrelid
		WHERE (q.seqrelid = to_regclass(pg_get_serial_sequence($1, $2))
			OR r.relname IN ($3, $4) AND r.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass($1)))
		AND (q.seqcache > 1 OR q.seqincrement <> 1)`, s.regclass(), c.name, table+"_seq", table+"_"+c.name+"_seq")
	if err != nil || !found {
		return err
	}
	if v[0].String != "1" {
		return fmt.Errorf("%w: sessions take %s values of the sequence %s ahead, which then come out of order: ALTER SEQUENCE %s CACHE 1",
			ErrBound, v[0].String, v[2].String, v[2].String)
	}
	return fmt.Errorf("%w: the sequence %s goes in steps of %s: whoever hands out what lies between does so out of order. Use steps of 1, or a cursor that is a time or an xid8",
		ErrBound, v[2].String, v[1].String)
}

// handedOutPostgres reports whether the numbers do not come from the database.
func handedOutPostgres(ctx context.Context, s *Source, c column) (bool, error) {
	_, found, err := first(ctx, s.db, `SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 AND (atthasdef OR attidentity <> '')`, s.regclass(), c.name)
	return !found, err
}

func frontierPostgres(ctx context.Context, s *Source, c column) (string, error) {
	statement, args := "", []any(nil)
	switch {
	case c.class == classTime:
		statement = "SELECT clock_timestamp()::text"
	case c.class == classXID:
		statement = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
	case c.class == classInteger && s.config.Table != "":
		statement = `SELECT pg_sequence_last_value(to_regclass(pg_get_serial_sequence($1, $2)))::text
			WHERE has_sequence_privilege(to_regclass(pg_get_serial_sequence($1, $2)), 'USAGE, SELECT')` // NULL without a sequence
		args = []any{s.regclass(), c.name}
	default:
		return "", nil
	}
	v, found, err := first(ctx, s.db, statement, args...)
	if err != nil || !found {
		return "", err
	}
	return canonical(v[0].String, c.class), nil
}

func explainPostgres(err error) (hint string, kind error) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		var connect *pgconn.ConnectError
		if errors.As(err, &connect) {
			return "check host, port and network in the connection string", ErrConnection
		}
		return "", nil
	}
	switch e.Code {
	case "42P01", "3F000", "3D000":
		return "create it, or correct the definition", ErrNoObject
	case "42703":
		return "correct the definition or the table", ErrNoColumn
	case "28P01", "28000":
		return "check user and password in the connection string", ErrLogin
	case "42501":
		return "GRANT it SELECT", ErrLogin
	case "57P03", "57P01", "53300":
		return "it is starting, stopping or full", ErrConnection
	}
	return "", nil
}
