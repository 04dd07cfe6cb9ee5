package sqlsource

import (
	"context"
	"strings"
)

// assigned is the text before a column in a trigger that sets it before the row is written.
const assigned = `\bnew\.`

func catalogPostgres(ctx context.Context, s *Source) (c catalog, err error) {
	v, _, err := first(ctx, s.db, "SELECT current_database()::text")
	if err != nil {
		return c, err
	}
	c.database = v[0].String
	triggers, err := eachTrigger(ctx, s, `SELECT t.tgname::text, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
		WHERE t.tgrelid = to_regclass($1) AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND t.tgtype & 1 = 1 AND t.tgtype & 2 = 2 AND t.tgtype & 16 = 16`, s.regclass())
	if err != nil {
		return c, err
	}
	err = eachFact(ctx, s, &c, triggers, assigned, `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, coalesce(pg_get_expr(d.adbin, d.adrelid), ''),
			a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid), '') LIKE 'nextval(%', '', ''
		FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, s.regclass())
	if err != nil {
		return c, err
	}
	return c, eachIndex(ctx, s, &c, `SELECT i.indexrelid::regclass::text, coalesce(a.attname::text, ''), i.indisunique, i.indisprimary
		FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(attnum, n)
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
		WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND i.indpred IS NULL AND i.indexrelid IN (
			SELECT r.oid FROM pg_class r JOIN pg_am m ON m.oid = r.relam WHERE m.amname = 'btree' OR r.relkind = 'I')
		ORDER BY 1, k.n`, s.regclass())
}

func catalogMySQL(ctx context.Context, s *Source) (c catalog, err error) {
	table := s.mysqlTable()
	v, _, err := first(ctx, s.db, "SELECT COALESCE(?, DATABASE(), '')", table[0])
	if err != nil {
		return c, err
	}
	c.database = v[0].String
	const here = "_schema = COALESCE(?, DATABASE()) AND "
	triggers, err := eachTrigger(ctx, s, `SELECT trigger_name, action_statement FROM information_schema.triggers WHERE event_object`+here+`event_object_table = ?
		AND action_timing = 'BEFORE' AND event_manipulation = 'UPDATE'`, table...)
	if err != nil {
		return c, err
	}
	err = eachFact(ctx, s, &c, triggers, assigned, `SELECT column_name, column_type, is_nullable = 'YES', COALESCE(NULLIF(column_default, 'NULL'), ''),
			extra LIKE '%auto_increment%' OR COALESCE(column_default, '') LIKE 'nextval(%', extra, CASE WHEN extra LIKE '%on update%' THEN 'ON UPDATE' ELSE '' END
		FROM information_schema.columns WHERE table`+here+`table_name = ? ORDER BY ordinal_position`, table...)
	if err != nil {
		return c, err
	}
	return c, eachIndex(ctx, s, &c, `SELECT index_name, COALESCE(column_name, ''), non_unique = 0, index_name = 'PRIMARY' FROM information_schema.statistics
		WHERE table`+here+`table_name = ? AND index_type = 'BTREE' ORDER BY index_name, seq_in_index`, table...)
}

func catalogSQLite(ctx context.Context, s *Source) (c catalog, err error) {
	table := s.sqliteTable()
	schema := s.dialect.quote(table[1].(string))
	v, found, err := first(ctx, s.db, "SELECT COALESCE(file, '') FROM pragma_database_list WHERE name = ?1", table[1])
	if err != nil {
		return c, err
	}
	if found {
		_, file, _ := cutLast(strings.ReplaceAll(v[0].String, `\`, "/"), "/")
		c.database, _, _ = cutLast(file, ".")
	}
	triggers, err := eachTrigger(ctx, s, "SELECT name, sql FROM "+schema+`.sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE AND upper(sql) LIKE '%UPDATE%ON%BEGIN%'`, table[0])
	if err != nil {
		return c, err
	}
	v, _, err = first(ctx, s.db, "SELECT EXISTS (SELECT 1 FROM "+schema+".sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE AND upper(sql) LIKE '%AUTOINCREMENT%')", table[0])
	if err != nil {
		return c, err
	}
	// SQLite numbers rows by an integer primary key, but only if its type is the word INTEGER.
	err = eachFact(ctx, s, &c, triggers, `(?:\bset\b|,)\s*`, `SELECT name, type, NOT "notnull" AND NOT (pk = 1 AND upper(type) = 'INTEGER'), COALESCE(dflt_value, ''),
		pk = 1 AND upper(type) = 'INTEGER' AND (SELECT count(*) FROM pragma_table_info(?1, ?2) WHERE pk > 0) = 1, CASE WHEN pk > 0 AND ?3 THEN 'AUTOINCREMENT' ELSE '' END, ''
		FROM pragma_table_info(?1, ?2) ORDER BY cid`, append(table, v[0].String == "1")...)
	if err != nil {
		return c, err
	}
	return c, eachIndex(ctx, s, &c, `SELECT * FROM (SELECT 'primary key' AS i, name, 1, 1, pk AS n FROM pragma_table_info(?1, ?2) WHERE pk > 0
		UNION ALL SELECT i.name, COALESCE(c.name, ''), i."unique", 0, c.seqno FROM pragma_index_list(?1, ?2) i, pragma_index_info(i.name, ?2) c WHERE NOT i.partial AND i.origin <> 'pk') ORDER BY i, n`, table...)
}

// catalogSQLServer follows the documentation of the catalog views; it was never run against a server.
func catalogSQLServer(ctx context.Context, s *Source) (c catalog, err error) {
	v, _, err := first(ctx, s.db, "SELECT DB_NAME()")
	if err != nil {
		return c, err
	}
	c.database = v[0].String
	// Triggers run after the write here, and set columns by an UPDATE of the table.
	triggers, err := eachTrigger(ctx, s, `SELECT t.name, m.definition FROM sys.triggers t JOIN sys.sql_modules m ON m.object_id = t.object_id
		JOIN sys.trigger_events e ON e.object_id = t.object_id WHERE t.parent_id = OBJECT_ID(@p1) AND t.is_disabled = 0 AND e.type_desc = 'UPDATE'`, s.regclass())
	if err != nil {
		return c, err
	}
	err = eachFact(ctx, s, &c, triggers, `(?:\bset\b|,)\s*(?:\w+\.)?`, `SELECT c.name, TYPE_NAME(c.user_type_id), CAST(c.is_nullable AS int), COALESCE(d.definition, ''),
			CAST(c.is_identity AS int), '', CASE WHEN c.system_type_id = 189 THEN 'the server' ELSE '' END
		FROM sys.columns c LEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id WHERE c.object_id = OBJECT_ID(@p1) ORDER BY c.column_id`, s.regclass())
	if err != nil {
		return c, err
	}
	return c, eachIndex(ctx, s, &c, `SELECT i.name, c.name, CAST(i.is_unique AS int), CAST(i.is_primary_key AS int) FROM sys.indexes i
		JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.is_included_column = 0
		JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
		WHERE i.object_id = OBJECT_ID(@p1) AND i.has_filter = 0 AND i.is_disabled = 0 ORDER BY i.index_id, k.key_ordinal`, s.regclass())
}

// cutLast cuts at the last separator; without one, before and after are both the whole text.
func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, text, false
	}
	return text[:at], text[at+len(separator):], true
}
