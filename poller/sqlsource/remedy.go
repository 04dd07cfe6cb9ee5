package sqlsource

import (
	"fmt"
	"regexp"
	"strings"
)

// Remedy is a missing part of a table, as statements for its administrator.
type Remedy struct {
	// Why is its benefit.
	Why string `json:"why"`
	SQL string `json:"sql"`
}

// remedies are the statements of a dialect. Names are quoted.
type remedies struct {
	// index makes an index over columns.
	index string
	// notNull makes a column NOT NULL; "" where the dialect has no such statement.
	notNull func(table, column string, f fact) string
	// change is the column that follows each write, with its name and bound; stamp the statements that add it.
	change, changeBound string
	add                 string
	// follow are the statements that make an existing column follow each update; "" without any.
	follow func(f fact, c column) string
}

// parts are the values for the texts of remedies.
type parts struct {
	table, name, column string
	columns             []string
	keys                []string
}

// with returns the parts for another column.
func (p parts) with(column string) parts {
	p.column = column
	return p
}

// fill replaces the names in the text of a remedy. {x} is a quoted name, and {=keys} the comparison of all keys with
// NEW.
func (s *Source) fill(text string, p parts) string {
	quoted := func(names []string) string {
		var all []string
		for _, n := range names {
			all = append(all, s.dialect.quote(n))
		}
		return strings.Join(all, ", ")
	}
	var same []string
	for _, k := range p.keys {
		same = append(same, s.dialect.quote(k)+" = NEW."+s.dialect.quote(k))
	}
	pairs := []string{"{table}", p.table, "{column}", s.dialect.quote(p.column), "{columns}", quoted(p.columns), "{=keys}", strings.Join(same, " AND ")}
	for _, more := range []string{"", "_changes", "_numbered", "_changed"} {
		pairs = append(pairs, "{name"+more+"}", s.dialect.quote(p.name+more))
	}
	if len(p.keys) > 0 {
		pairs = append(pairs, "{key}", s.dialect.quote(p.keys[0]))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func remediesPostgres() remedies {
	const follow = `CREATE FUNCTION {name_changed}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.{column} := %s; RETURN NEW; END$$;
CREATE TRIGGER {name_changed} BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {name_changed}();`
	return remedies{
		index: "CREATE INDEX CONCURRENTLY {name} ON {table} ({columns});",
		notNull: func(table, column string, _ fact) string {
			return "ALTER TABLE " + table + " ALTER COLUMN " + column + " SET NOT NULL;"
		},
		change: "changed_in", changeBound: BoundXID,
		add: "ALTER TABLE {table} ADD COLUMN {column} xid8 NOT NULL DEFAULT pg_current_xact_id();\n" + fmt.Sprintf(follow, "pg_current_xact_id()"),
		follow: func(_ fact, c column) string {
			if c.class == classXID {
				return "ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT pg_current_xact_id();\n" + fmt.Sprintf(follow, "pg_current_xact_id()")
			}
			return fmt.Sprintf(follow, "now()")
		},
	}
}

// precision matches that of a type such as timestamp(6).
var precision = regexp.MustCompile(`\([0-9]\)`)

func remediesMySQL() remedies {
	// MODIFY redefines a whole column. A default that is not the clock is left to the administrator, who knows its
	// original text.
	modify := func(table, column string, f fact, update string) string {
		now := "CURRENT_TIMESTAMP" + precision.FindString(f.typ)
		initial := ""
		switch {
		case clock.MatchString(f.initial):
			initial = " DEFAULT " + now
		case strings.Contains(f.extra, "auto_increment"):
			initial = " AUTO_INCREMENT"
		case f.initial != "":
			initial = " DEFAULT " + f.initial + " /* as it is now: check how it is written */"
		}
		if update != "" {
			update = " ON UPDATE " + now
		}
		return "ALTER TABLE " + table + " MODIFY " + column + " " + f.typ + " NOT NULL" + initial + update + ";"
	}
	return remedies{
		index: "CREATE INDEX {name} ON {table} ({columns});",
		notNull: func(table, column string, f fact) string {
			update := ""
			if f.updated == "ON UPDATE" {
				update = f.updated
			}
			return modify(table, column, f, update)
		},
		change: "changed_at", changeBound: BoundSettle,
		add: "ALTER TABLE {table} ADD COLUMN {column} timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6);",
		follow: func(f fact, c column) string {
			if c.class != classTime && c.class != classLocal {
				return ""
			}
			return modify("{table}", "{column}", f, "ON UPDATE")
		},
	}
}

func remediesSQLite() remedies {
	return remedies{
		index:  "CREATE INDEX {name} ON {table} ({columns});",
		change: "changed_as", changeBound: BoundSingleWriter,
		// Numbers come from a separate table: the highest number of the rows would be reused after a deletion.
		add: `CREATE TABLE {name_changes} (last INTEGER NOT NULL);
INSERT INTO {name_changes} VALUES (0);
ALTER TABLE {table} ADD COLUMN {column} INTEGER;
CREATE TRIGGER {name_numbered} AFTER INSERT ON {table} BEGIN UPDATE {name_changes} SET last = last + 1; UPDATE {table} SET {column} = (SELECT last FROM {name_changes}) WHERE {=keys}; END;
CREATE TRIGGER {name_changed} AFTER UPDATE ON {table} WHEN NEW.{column} IS OLD.{column} BEGIN UPDATE {name_changes} SET last = last + 1; UPDATE {table} SET {column} = (SELECT last FROM {name_changes}) WHERE {=keys}; END;
UPDATE {table} SET {key} = {key};`,
	}
}

// remediesSQLServer follows the documentation; it was never run against a server.
func remediesSQLServer() remedies {
	return remedies{
		index: "CREATE INDEX {name} ON {table} ({columns});",
		notNull: func(table, column string, f fact) string {
			return "ALTER TABLE " + table + " ALTER COLUMN " + column + " " + f.typ + " NOT NULL; -- with the length of its type"
		},
		change: "changed_as", changeBound: BoundRowVersion,
		add: "ALTER TABLE {table} ADD {column} rowversion;",
	}
}
