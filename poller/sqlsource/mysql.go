package sqlsource

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func mysqlDialect() *dialect {
	d := &dialect{
		bounds:     []string{BoundSettle},
		minSettle:  2 * time.Second,
		connect:    connectMySQL,
		address:    addressMySQL,
		databaseID: databaseIDMySQL,
		setup: []string{"SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
			"SET time_zone = '+00:00'"},
		quotes:      [2]string{"`", "`"},
		placeholder: func(int) string { return "?" },
		backslash:   true,
		classes:     map[string]class{},
		other:       classText,
		expression:  func(quoted string, _ column) string { return quoted },
		bind: func(placeholder, text string, c column) string {
			switch {
			case c.typ == "DATE":
				return "CAST(" + placeholder + " AS DATE)"
			case c.class == classTime || c.class == classLocal:
				return "CAST(" + placeholder + " AS DATETIME(6))"
			case c.class == classDecimal:
				return "CAST(" + placeholder + " AS DECIMAL(65, " + strconv.Itoa(fraction(text)) + "))"
			}
			// A cast would have the connection's collation, not the column's.
			return placeholder
		},
		argument: mysqlArgument,
		look:     lookMySQL,
		unique: func(ctx context.Context, s *Source) (bool, error) {
			return uniqueAmong(ctx, s, "SELECT index_name, column_name FROM information_schema.statistics WHERE non_unique = 0 AND table_schema = COALESCE(?, DATABASE()) AND table_name = ?", s.mysqlTable()...)
		},
		scans: func(ctx context.Context, s *Source, text string, args []any) (bool, error) {
			if s.config.Table == "" {
				return anyRow(ctx, s, "EXPLAIN "+text, args, func(row []string) bool { return slices.Contains(row, "ALL") })
			}
			// The plan of a small table is meaningless.
			_, found, err := first(ctx, s.db, `SELECT 1 FROM information_schema.statistics WHERE table_schema = COALESCE(?, DATABASE())
				AND table_name = ? AND column_name = ? AND seq_in_index = 1`, append(s.mysqlTable(), s.config.Cursor)...)
			return err == nil && !found, err
		},
		sequence: sequenceMySQL,
		advise:   adviseNumbers(handedOutMySQL),
		frontier: frontierMySQL,
		catalog:  catalogMySQL,
		remedies: remediesMySQL(),
		plan:     planMySQL,
		estimate: estimateMySQL,
		explain:  explainMySQL,
	}
	for _, t := range []string{"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"} {
		d.classes[t], d.classes["UNSIGNED "+t] = classInteger, classInteger
	}
	for name, c := range map[string]class{"YEAR": classInteger, "DECIMAL": classDecimal, "FLOAT": classFloat, "DOUBLE": classFloat,
		"TIMESTAMP": classTime, "DATETIME": classLocal, "DATE": classLocal, "BLOB": classBytes, "TINYBLOB": classBytes,
		"MEDIUMBLOB": classBytes, "LONGBLOB": classBytes, "BINARY": classBytes, "VARBINARY": classBytes, "BIT": classBytes,
		"GEOMETRY": classBytes, "JSON": classJSON,
		// They are ordered by their definition, but a text is compared with them as text.
		"ENUM": classOther, "SET": classOther} {
		d.classes[name] = c
	}
	return d
}

// mysqlTable returns the table's schema, nil for the connection's, and its name.
func (s *Source) mysqlTable() []any {
	parts := tableParts(s.config.Table)
	switch len(parts) {
	case 1:
		return []any{nil, parts[0]}
	case 2:
		return []any{parts[0], parts[1]}
	}
	return []any{nil, ""}
}

func connectMySQL(dsn string, timeout time.Duration) (driver.Connector, []string, error) {
	c, err := mysql.ParseDSN(clean(dsn))
	if err != nil {
		return nil, nil, err
	}
	// Times are read as written, with all digits.
	c.ParseTime, c.Loc, c.MultiStatements = false, time.UTC, false
	if c.Timeout == 0 {
		c.Timeout = timeout
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = timeout
	}
	// Otherwise the driver writes to the process's standard error.
	c.Logger = &mysql.NopLogger{}
	conn, err := mysql.NewConnector(c)
	return conn, credentials(c.User, c.Passwd), err
}

func mysqlArgument(text string, c column) any {
	switch c.class {
	case classInteger:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
		// A boolean is a number here, and the text "true" would be 0.
		if is, err := strconv.ParseBool(text); err == nil {
			return is
		}
	case classTime, classLocal:
		return strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "Z")
	}
	return text
}

// fraction returns the number of digits that a number needs after the point, of the 30 that MySQL has and the 38 of
// MariaDB. Digits that it does not need there, it may need before the point.
func fraction(text string) int {
	if strings.ContainsAny(text, "eE") {
		return 30
	}
	_, digits, _ := strings.Cut(text, ".")
	return min(len(digits), 38)
}

// defaultMySQL returns the source of a column's numbers: "auto_increment", or its default.
func defaultMySQL(ctx context.Context, s *Source, c column) (string, error) {
	v, found, err := first(ctx, s.db, `SELECT CASE WHEN extra LIKE '%auto_increment%' THEN 'auto_increment' ELSE COALESCE(column_default, '') END
		FROM information_schema.columns WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND column_name = ?`, append(s.mysqlTable(), c.name)...)
	if err != nil || !found {
		return "", err
	}
	return v[0].String, nil
}

// nextValue matches MariaDB's default that takes a sequence's next value.
var nextValue = regexp.MustCompile("(?i)^nextval\\((`[^`]+`\\.`[^`]+`)\\)$")

// sequenceMySQL refuses numbers with steps: several servers, or an application, assign the numbers in between, out of
// order.
func sequenceMySQL(ctx context.Context, s *Source, c column) error {
	from, err := defaultMySQL(ctx, s, c)
	if err != nil {
		return err
	}
	text, what := "SELECT @@global.auto_increment_increment", "auto_increment_increment of the server"
	if sequence := nextValue.FindStringSubmatch(from); sequence != nil {
		text, what = "SELECT increment FROM "+sequence[1], "the increment of the sequence "+sequence[1]
	} else if from != "auto_increment" {
		return nil
	}
	v, found, err := first(ctx, s.db, text)
	if err != nil || !found || v[0].String == "1" {
		return err
	}
	return fmt.Errorf("%w: %s is %s: what lies between comes out of order. Use 1, or a cursor that is a time", ErrBound, what, v[0].String)
}

func handedOutMySQL(ctx context.Context, s *Source, c column) (bool, error) {
	from, err := defaultMySQL(ctx, s, c)
	return from == "", err
}

// frontierMySQL returns the last number that the table has generated, which survives restarts.
func frontierMySQL(ctx context.Context, s *Source, c column) (string, error) {
	switch {
	case c.class == classTime:
		v, _, err := first(ctx, s.db, "SELECT NOW(6)")
		return canonicalText(v[0].String, classTime), err
	case c.class != classInteger || s.config.Table == "":
		return "", nil
	}
	v, found, err := first(ctx, s.db, `SELECT CAST(t.auto_increment AS DECIMAL(20)) - 1 FROM information_schema.tables t
		JOIN information_schema.columns c ON c.table_schema = t.table_schema AND c.table_name = t.table_name
		WHERE t.table_schema = COALESCE(?, DATABASE()) AND t.table_name = ? AND c.column_name = ? AND c.extra LIKE '%auto_increment%'
		AND t.auto_increment IS NOT NULL`, append(s.mysqlTable(), c.name)...)
	if err != nil || !found {
		return "", err
	}
	return v[0].String, nil
}

func explainMySQL(err error) (hint string, kind error) {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		if errors.Is(err, mysql.ErrInvalidConn) {
			return "it has closed the connection, or a statement took too long", ErrConnection
		}
		return "", nil
	}
	switch e.Number {
	case 1146, 1049:
		return "create it, or correct the definition", ErrNoObject
	case 1054:
		return "correct the definition or the table", ErrNoColumn
	case 1045, 1044, 1698:
		return "check user and password in the connection string", ErrLogin
	case 1227:
		return "the user does not see others' transactions: GRANT PROCESS ON *.* to it", ErrBound
	case 1142, 1143:
		return "GRANT it SELECT", ErrLogin
	case 1040, 1053, 1203:
		return "it is stopping or full", ErrConnection
	}
	return "", nil
}
