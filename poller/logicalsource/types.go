package logicalsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pglogrepl"

	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// firstOwn is the first object number that is not PostgreSQL's own.
const firstOwn = 16384

// columnType determines how values are encoded as JSON.
type columnType struct {
	// name is that of the type, or of the base type of a domain, in capitals.
	name string
	// cast is set when the server encodes the JSON: the name of the type in SQL.
	cast string
}

// write encodes a value as JSON.
func (t columnType) write(text string) []byte {
	if out, ok := sqlsource.AppendPostgresText(nil, t.name, text); ok {
		return out
	}
	return sqlsource.AppendText(nil, text)
}

// columnType looks a type up. A dropped one is text.
func (s *Source) columnType(ctx context.Context, oid uint32) (columnType, error) {
	if t, known := s.types[oid]; known {
		return t, nil
	}
	var t columnType
	var base uint32
	var kind, category, cast string
	err := s.db.QueryRowContext(ctx, `WITH RECURSIVE b AS (SELECT oid, typtype, typbasetype, typname, typcategory FROM pg_type WHERE oid = $1
	UNION ALL SELECT t.oid, t.typtype, t.typbasetype, t.typname, t.typcategory FROM b JOIN pg_type t ON b.typtype = 'd' AND t.oid = b.typbasetype)
	SELECT oid, typtype::text, typcategory::text, upper(typname::text), format_type(oid, NULL) FROM b WHERE typtype <> 'd'`, oid).
		Scan(&base, &kind, &category, &t.name, &cast)
	if errors.Is(err, sql.ErrNoRows) {
		t.name = "TEXT"
	} else if err != nil {
		return t, err
	}
	// Types that to_jsonb does not encode as text: arrays and composites, and types of extensions with casts.
	if category == "A" || kind == "c" || kind == "b" && base >= firstOwn {
		t.cast = cast
	}
	s.types[oid] = t
	return t, nil
}

// ask makes the server encode cells as JSON.
func (s *Source) ask(ctx context.Context, r *relation, t *pglogrepl.TupleData, asked []int, cells [][]byte) error {
	if len(asked) == 0 {
		return nil
	}
	var expressions []string
	var args []any
	texts := make([]sql.NullString, len(asked))
	var targets []any
	for n, i := range asked {
		expressions = append(expressions, fmt.Sprintf("to_jsonb(CAST(CAST($%d AS text) AS %s))::text", n+1, r.columns[i].typ.cast))
		args, targets = append(args, string(t.Columns[i].Data)), append(targets, &texts[n])
	}
	err := s.db.QueryRowContext(ctx, "SELECT "+strings.Join(expressions, ", "), args...).Scan(targets...)
	switch {
	case hasClass(err, "22", "23", "42") && len(asked) == 1: // the type has changed since, or is gone
		cells[asked[0]] = sqlsource.AppendText(nil, string(t.Columns[asked[0]].Data))
		return nil
	case hasClass(err, "22", "23", "42"): // one of them is bad
		for n := range asked {
			if err := s.ask(ctx, r, t, asked[n:n+1], cells); err != nil {
				return err
			}
		}
		return nil
	case err != nil:
		return err
	}
	for n, i := range asked {
		cells[i] = []byte(texts[n].String)
	}
	return nil
}

// primaryKey returns the columns of a table's current primary key; none without one.
func (s *Source) primaryKey(ctx context.Context, table uint32) (map[string]bool, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
		WHERE i.indrelid = $1 AND i.indisprimary`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		found[name] = true
	}
	return found, rows.Err()
}
