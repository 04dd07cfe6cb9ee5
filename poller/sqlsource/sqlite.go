package sqlsource

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
)

func sqliteDialect() *dialect {
	return &dialect{
		bounds:      []string{BoundSingleWriter, BoundSettle},
		connect:     connectSQLite,
		address:     addressSQLite,
		setup:       []string{"PRAGMA busy_timeout = 5000", "PRAGMA query_only = ON"},
		quotes:      [2]string{`"`, `"`},
		placeholder: func(n int) string { return "?" + strconv.Itoa(n) },
		rowValues:   true,
		classes: map[string]class{"INTEGER": classInteger, "INT": classInteger, "BIGINT": classInteger, "SMALLINT": classInteger,
			"REAL": classFloat, "DOUBLE": classFloat, "FLOAT": classFloat, "BOOLEAN": classBoolean, "TEXT": classText,
			"VARCHAR": classText, "CHAR": classText, "UUID": classText, "DATETIME": classText, "TIMESTAMP": classText,
			"DATE": classText, "BLOB": classBytes, "JSON": classJSON},
		other: classOther,
		// The sign removes the declared type, by which the driver would make times of texts.
		expression: func(quoted string, _ column) string { return "+" + quoted },
		bind:       func(placeholder, _ string, _ column) string { return placeholder },
		argument:   sqliteArgument,
		look:       func(context.Context, *Source) (sighting, error) { return sighting{now: time.Now()}, nil },
		unique: func(ctx context.Context, s *Source) (bool, error) {
			return uniqueAmong(ctx, s, `SELECT 'primary key', name FROM pragma_table_info(?1, ?2) WHERE pk > 0
				UNION ALL SELECT i.name, c.name FROM pragma_index_list(?1, ?2) i, pragma_index_info(i.name, ?2) c WHERE i."unique" AND NOT i.partial`,
				s.sqliteTable()...)
		},
		notNull: func(ctx context.Context, s *Source) (map[string]bool, error) {
			return nameSet(ctx, s, `SELECT name FROM pragma_table_info(?1, ?2) WHERE "notnull" OR (pk = 1 AND upper(type) = 'INTEGER')`, s.sqliteTable()...)
		},
		scans: func(ctx context.Context, s *Source, text string, args []any) (bool, error) {
			return anyRow(ctx, s, "EXPLAIN QUERY PLAN "+text, args, func(row []string) bool {
				detail := row[len(row)-1]
				return strings.HasPrefix(detail, "SCAN ") && !strings.Contains(detail, "USING") || detail == "USE TEMP B-TREE FOR ORDER BY"
			})
		},
		advise: func(ctx context.Context, s *Source, c column) (string, error) {
			if c.class != classInteger || s.config.Table == "" {
				return "", nil
			}
			table := s.sqliteTable()
			v, found, err := first(ctx, s.db, "SELECT sql FROM "+s.dialect.quote(table[1].(string))+".sqlite_master WHERE type = 'table' AND name = ?1", table[0])
			if err != nil || !found || strings.Contains(strings.ToUpper(v[0].String), "AUTOINCREMENT") {
				return "", err
			}
			return c.name + " is not AUTOINCREMENT: after the last row is deleted its number is given again, and the new row is not seen", nil
		},
		frontier: frontierSQLite,
		catalog:  catalogSQLite,
		remedies: remediesSQLite(),
		plan:     planSQLite,
		estimate: estimateSQLite,
		explain:  explainSQLite,
	}
}

// sqliteArgument returns a value in the form of columns of its type: truth values are numbers there, and no text equals
// one.
func sqliteArgument(text string, c column) any {
	switch c.class {
	case classInteger:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case classBoolean:
		if is, err := strconv.ParseBool(text); err == nil {
			return is
		}
	}
	return text
}

// sqliteTable returns the table and its schema.
func (s *Source) sqliteTable() []any {
	parts := tableParts(s.config.Table)
	switch len(parts) {
	case 1:
		return []any{parts[0], "main"}
	case 2:
		return []any{parts[1], parts[0]}
	}
	return []any{"", "main"}
}

// frontierSQLite returns the last number that an AUTOINCREMENT column has generated.
func frontierSQLite(ctx context.Context, s *Source, c column) (string, error) {
	if advice, err := s.dialect.advise(ctx, s, c); err != nil || advice != "" || c.class != classInteger || s.config.Table == "" {
		return "", err
	}
	table := s.sqliteTable()
	v, found, err := first(ctx, s.db, `SELECT q.seq FROM `+s.dialect.quote(table[1].(string))+`.sqlite_sequence q WHERE q.name = ?1
		AND EXISTS (SELECT 1 FROM pragma_table_info(?1, ?2) WHERE pk = 1 AND name = ?3)`, append(table, c.name)...)
	if err != nil || !found {
		return "", err
	}
	return v[0].String, nil
}

// connectSQLite opens an existing file: SQLite would create a missing one.
func connectSQLite(dsn string, _ time.Duration) (driver.Connector, []string, error) {
	if !strings.HasPrefix(dsn, "file:") {
		path, options, found := strings.Cut(dsn, "?")
		dsn = "file:" + strings.NewReplacer("%", "%25", "#", "%23").Replace(path)
		if found {
			dsn += "?" + options
		}
	}
	if !strings.Contains(dsn, "mode=") {
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		// Not ro: a reader of a write-ahead log has to be able to create its index.
		dsn += separator + "mode=rw"
	}
	c, err := sqlite.NewConnector(dsn)
	return c, nil, err
}

func explainSQLite(err error) (hint string, kind error) {
	var e *sqlite.Error
	text := err.Error()
	switch {
	case strings.Contains(text, "no such table"):
		return "create it, or correct the definition", ErrNoObject
	case strings.Contains(text, "no such column"):
		return "correct the definition or the table", ErrNoColumn
	case errors.As(err, &e) && e.Code()&0xff == 14:
		return "the file is not there or cannot be opened: check the path", ErrConnection
	case errors.As(err, &e) && e.Code()&0xff == 26:
		return "the file is no SQLite database: check the path", ErrConnection
	}
	return "", nil
}
