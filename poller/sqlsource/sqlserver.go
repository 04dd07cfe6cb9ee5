package sqlsource

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
)

// sqlserverSession sets each session up. The driver runs it: its connections have no other way.
const sqlserverSession = "SET LOCK_TIMEOUT 30000; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

// readWrite is the condition for a database with its own writers.
const readWrite = "CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS varchar(20)) = 'READ_WRITE'"

// sqlserverDialect follows SQL Server's documentation and its driver, and is UNPROVEN: no test has run it against a
// server.
func sqlserverDialect() *dialect {
	return &dialect{
		bounds:      []string{BoundRowVersion, BoundSettle},
		connect:     connectSQLServer,
		address:     addressSQLServer,
		quotes:      [2]string{"[", "]"},
		placeholder: func(n int) string { return "@p" + strconv.Itoa(n) },
		top:         true,
		classes: map[string]class{"BIGINT": classInteger, "INT": classInteger, "SMALLINT": classInteger, "TINYINT": classInteger,
			"DECIMAL": classDecimal, "NUMERIC": classDecimal, "MONEY": classDecimal, "SMALLMONEY": classDecimal, "FLOAT": classFloat,
			"REAL": classFloat, "BIT": classBoolean, "CHAR": classText, "VARCHAR": classText, "NCHAR": classText, "NVARCHAR": classText,
			"TEXT": classOther, "NTEXT": classOther, "UNIQUEIDENTIFIER": classText, "DATETIME2": classLocal, "DATETIME": classLocal,
			"SMALLDATETIME": classLocal, "DATE": classLocal, "DATETIMEOFFSET": classTime, "TIME": classOther, "BINARY": classBytes,
			"VARBINARY": classBytes, "IMAGE": classBytes, "TIMESTAMP": classRowVersion, "ROWVERSION": classRowVersion},
		other: classOther,
		expression: func(quoted string, c column) string {
			switch {
			case c.typ == "DATETIMEOFFSET":
				// Style 127 has all seven digits, and Z for UTC.
				return "CONVERT(varchar(40), " + quoted + " AT TIME ZONE 'UTC', 127)"
			case c.class == classLocal:
				return "CONVERT(varchar(40), CAST(" + quoted + " AS datetime2(7)), 126)"
			case c.typ == "UNIQUEIDENTIFIER":
				return "CAST(" + quoted + " AS char(36))"
			case c.typ == "TIME":
				return "CONVERT(varchar(20), " + quoted + ")"
			case c.typ == "MONEY", c.typ == "SMALLMONEY":
				return "CAST(" + quoted + " AS decimal(19, 4))"
			}
			return quoted
		},
		bind: func(placeholder, _ string, c column) string {
			switch {
			case c.class == classRowVersion:
				return "CAST(" + placeholder + " AS binary(8))"
			case c.class == classLocal:
				return "CAST(" + placeholder + " AS datetime2(7))"
			case c.class == classTime:
				return "CAST(" + placeholder + " AS datetimeoffset(7))"
			case c.class == classDecimal:
				return "CAST(" + placeholder + " AS decimal(38, 10))"
			case c.typ == "UNIQUEIDENTIFIER":
				return "CAST(" + placeholder + " AS uniqueidentifier)"
			}
			return placeholder
		},
		argument: func(text string, c column) any {
			switch c.class {
			case classInteger:
				if n, err := strconv.ParseInt(text, 10, 64); err == nil {
					return n
				}
			case classText:
				// As nvarchar, it would turn the use of an index over a varchar column into a scan.
				if c.typ == "CHAR" || c.typ == "VARCHAR" {
					return mssql.VarChar(text)
				}
			case classRowVersion:
				if raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x")); err == nil {
					return raw
				}
			}
			return text
		},
		ceiling: "CASE WHEN " + readWrite + " THEN CONVERT(varchar(18), min_active_rowversion(), 1) END",
		refine:  rowVersionsSQLServer,
		look:    lookSQLServer,
		unique: func(ctx context.Context, s *Source) (bool, error) {
			return uniqueAmong(ctx, s, `SELECT CAST(i.index_id AS varchar(10)), c.name FROM sys.indexes i
				JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.is_included_column = 0
				JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
				WHERE i.object_id = OBJECT_ID(@p1) AND i.is_unique = 1 AND i.has_filter = 0`, s.regclass())
		},
		scans: func(ctx context.Context, s *Source, _ string, _ []any) (bool, error) {
			if s.config.Table == "" {
				return false, nil
			}
			_, found, err := first(ctx, s.db, `SELECT 1 FROM sys.index_columns k JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
				WHERE k.object_id = OBJECT_ID(@p1) AND k.key_ordinal = 1 AND c.name = @p2`, s.regclass(), s.config.Cursor)
			return err == nil && !found, err
		},
		frontier: func(ctx context.Context, s *Source, c column) (string, error) {
			if c.class != classRowVersion {
				return "", nil
			}
			v, _, err := first(ctx, s.db, "SELECT LOWER(CONVERT(varchar(18), @@DBTS, 1))")
			if err != nil {
				return "", err
			}
			return v[0].String, nil
		},
		catalog:  catalogSQLServer,
		remedies: remediesSQLServer(),
		estimate: estimateSQLServer,
		explain:  explainSQLServer,
	}
}

func connectSQLServer(dsn string, timeout time.Duration) (driver.Connector, []string, error) {
	dsn = clean(dsn)
	secrets, err := sqlserverForm().check(dsn)
	if err != nil {
		return nil, nil, err
	}
	c, err := msdsn.Parse(dsn)
	if err != nil {
		return nil, nil, err
	}
	if c.ConnTimeout == 0 {
		c.ConnTimeout = timeout
	}
	connector := mssql.NewConnectorConfig(c)
	connector.SessionInitSQL = sqlserverSession
	return connector, append(secrets, credentials(c.User, c.Password)...), nil
}

// rowVersionsSQLServer finds rowversion columns, which the driver calls BINARY or VARBINARY. Those of a query have lost
// their type, so the definition is trusted for its cursor.
func rowVersionsSQLServer(ctx context.Context, s *Source, sh *shape) error {
	is := map[string]bool{s.config.Cursor: s.config.Bound == BoundRowVersion}
	if s.config.Table != "" {
		var err error
		if is, err = nameSet(ctx, s, "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID(@p1) AND system_type_id = 189", s.regclass()); err != nil {
			return err
		}
	}
	for i, c := range sh.columns {
		if c.class == classBytes && is[c.name] {
			sh.columns[i].class = classRowVersion
		}
	}
	return nil
}

// lookSQLServer needs VIEW SERVER STATE, or VIEW SERVER PERFORMANCE STATE from 2022 on. Times of transactions are the
// server's local ones and ambiguous in a repeated hour, so the server has to be in UTC, as Azure's are.
func lookSQLServer(ctx context.Context, s *Source) (sighting, error) {
	v, _, err := first(ctx, s.db, `SELECT DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()),
	(SELECT MAX(DATEDIFF_BIG(microsecond, t.transaction_begin_time, SYSDATETIME())) FROM sys.dm_tran_active_transactions t
		JOIN sys.dm_tran_session_transactions x ON x.transaction_id = t.transaction_id
		WHERE x.session_id <> @@SPID AND t.transaction_type <> 2),
	(SELECT TOP (1) x.session_id FROM sys.dm_tran_active_transactions t
		JOIN sys.dm_tran_session_transactions x ON x.transaction_id = t.transaction_id
		WHERE x.session_id <> @@SPID AND t.transaction_type <> 2 ORDER BY t.transaction_begin_time),
	CASE WHEN `+readWrite+` THEN 1 ELSE 0 END, DATEPART(tz, SYSDATETIMEOFFSET())`)
	if err == nil {
		err = refusedSQLServer(v[3].String, v[4].String)
	}
	if err != nil {
		return sighting{}, err
	}
	seen := sighting{now: microseconds(v[0].String)}
	if v[1].Valid {
		age, err := strconv.ParseInt(v[1].String, 10, 64)
		if err != nil {
			return sighting{}, err
		}
		seen.oldest, seen.holder = seen.now.Add(-time.Duration(age)*time.Microsecond), "session "+v[2].String
	}
	return seen, nil
}

// refusedSQLServer returns the reason why the transactions are unknown here.
func refusedSQLServer(writable, zone string) error {
	switch {
	case writable != "1":
		return errReadOnly
	case zone != "0":
		return fmt.Errorf("%w: the server is %s minutes from UTC, and its times of transactions do not say which hour is meant when clocks are set back: use a rowversion column", ErrBound, zone)
	}
	return nil
}

func explainSQLServer(err error) (hint string, kind error) {
	var e mssql.Error
	if !errors.As(err, &e) {
		return "", nil
	}
	switch e.Number {
	case 208, 4060:
		return "create it, or correct the definition", ErrNoObject
	case 207:
		return "correct the definition or the table", ErrNoColumn
	case 18456:
		return "check user and password in the connection string", ErrLogin
	case 229:
		return "GRANT it SELECT", ErrLogin
	case 297, 300, 371:
		return "the user does not see others' transactions: GRANT VIEW SERVER STATE to it", ErrBound
	}
	return "", nil
}
