package sqlsource

import (
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The functions below are for other readers of PostgreSQL, so that their sessions, errors and rows are like those of
// this package.

// PostgresDB returns a pool with the sessions of this package: read-only, in UTC, two at the most, each statement with
// a timeout. It does not connect. secrets are the parts of the connection string that PostgresError removes from texts.
func PostgresDB(dsn string, timeout time.Duration) (db *sql.DB, secrets []string, err error) {
	conn, secrets, err := connectPostgres(dsn, timeout)
	if err != nil {
		return nil, nil, malformed("", Postgres, err)
	}
	db = sql.OpenDB(connector{conn, nil})
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(1)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(30 * time.Minute)
	return db, append(secrets, dsn), nil
}

// PostgresError adds the operation and the object to an error, translates the database's error and removes secrets. It
// keeps the sentinels of this package and those in more, and the end of a context.
func PostgresError(operation, object string, err error, secrets []string, more ...error) error {
	return failure(operation, object, err, explainPostgres, secrets, slices.Concat(more, kinds()))
}

// AppendPostgresText adds a value to JSON in the form of this package's rows. text is the database's text in a session
// of PostgresDB, and typ the name of its type in capitals. For types that only the database can encode as JSON, by
// to_jsonb, it returns false and adds nothing.
func AppendPostgresText(to []byte, typ, text string) (out []byte, ok bool) {
	class, known := postgresDialect().classes[typ]
	if !known {
		return to, false
	}
	switch class {
	case classBoolean:
		return strconv.AppendBool(to, text == "t" || text == "true"), true
	case classBytes:
		if raw, err := hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			return fmt.Appendf(to, "%q", base64.StdEncoding.EncodeToString(raw)), true
		}
	}
	return appendJSON(to, text, class), true
}

// AppendText adds a text to JSON.
func AppendText(to []byte, text string) []byte { return appendString(to, text) }
