package sqlsource

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/poller"
)

// nullEvery is the interval of searches for rows without a position.
const nullEvery = time.Minute

// Source reads one table or query. It implements poller.Source and, like that, is used by one goroutine at a time.
type Source struct {
	config  Config
	dialect *dialect
	db      *sql.DB
	owned   bool
	secrets []string
	zone    *time.Location
	settled settled
	// nulls are the rows without a cursor or key that the last search found, at nullsAt.
	nullsAt time.Time
	nulls   nulls
	// given is the last position that the database is known to have.
	given poller.Cursor
}

var _ poller.Source = (*Source)(nil)

// Open returns a source. It does not connect: an unreachable database is reported by Check and Fetch, as ErrConnection.
func Open(c Config) (*Source, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return open(c)
}

// open is Open for a validated configuration, or for one without the parts that Propose determines.
func open(c Config) (*Source, error) {
	c = c.withDefaults()
	s := &Source{config: c, dialect: dialects()[c.Dialect], db: c.DB}
	var err error
	if s.zone, err = time.LoadLocation(c.CursorZone); err != nil {
		return nil, fmt.Errorf("source %s: cursorZone: %w", c.object(), err)
	}
	if c.DB != nil {
		return s, nil
	}
	conn, secrets, err := s.dialect.connect(c.DSN, c.Timeout)
	if err != nil {
		return nil, malformed("source "+c.object()+": ", c.Dialect, err)
	}
	s.secrets, s.owned = append(secrets, c.DSN), true
	s.db = sql.OpenDB(connector{conn, s.dialect.setup})
	s.db.SetMaxOpenConns(2)
	s.db.SetMaxIdleConns(1)
	s.db.SetConnMaxIdleTime(5 * time.Minute)
	s.db.SetConnMaxLifetime(30 * time.Minute)
	return s, nil
}

// Definition returns the definition of the source.
func (s *Source) Definition() poller.Definition { return s.config.Definition() }

var _ poller.Identifier = (*Source)(nil)

// Close closes the source's own connections.
func (s *Source) Close() error {
	if !s.owned {
		return nil
	}
	return s.fail("close", s.db.Close())
}

// shape is the current form of the object.
type shape struct {
	columns []column
	names   [][]byte // "name": as JSON
	cursor  int
	keys    []int
	deleted int // -1 without one
	// ties are the keys that order rows of one cursor value.
	ties []int
	kind string
}

// describe queries the object's columns and finds the configured ones. Each fetch calls it, so that a change of the
// table is noticed immediately.
func (s *Source) describe(ctx context.Context) (*shape, error) {
	sh, err := s.columns(ctx)
	if err != nil {
		return nil, err
	}
	return sh, s.locate(sh)
}

// columns queries the object's columns.
func (s *Source) columns(ctx context.Context) (*shape, error) {
	text, args, err := s.build(query{where: []func(*statement){func(st *statement) { st.add("1 = 0") }}})
	if err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	sh := &shape{deleted: -1}
	for _, t := range types {
		c := column{name: t.Name(), typ: t.DatabaseTypeName(), class: s.dialect.other, nullable: true}
		// SQLite has the length in the type's name.
		base, _, _ := strings.Cut(c.typ, "(")
		if known, ok := s.dialect.classes[strings.TrimSpace(base)]; ok {
			c.class = known
		}
		if nullable, ok := t.Nullable(); ok {
			c.nullable = nullable
		}
		name, err := json.Marshal(c.name)
		if err != nil {
			return nil, err
		}
		sh.columns, sh.names = append(sh.columns, c), append(sh.names, append(name, ':'))
	}
	if err := rows.Close(); err != nil {
		return nil, err
	}
	if s.dialect.refine != nil {
		if err := s.dialect.refine(ctx, s, sh); err != nil {
			return nil, err
		}
	}
	return sh, nil
}

// locate finds the configured columns and determines the form of positions.
func (s *Source) locate(sh *shape) error {
	var err error
	if sh.cursor, err = sh.find(s.config.Cursor); err != nil {
		return err
	}
	for _, name := range s.config.Keys {
		i, err := sh.find(name)
		if err != nil {
			return err
		}
		if c := sh.columns[i]; c.class == classOther || c.class == classFloat || c.class == classJSON || c.class == classBytes {
			return fmt.Errorf("%w: the key %s is %s; keys are whole or decimal numbers, texts, ids, times and truth values", ErrColumnType, c.name, c.typ)
		}
		sh.keys = append(sh.keys, i)
		if i != sh.cursor {
			sh.ties = append(sh.ties, i)
		}
	}
	if s.config.Deleted != "" {
		if sh.deleted, err = sh.find(s.config.Deleted); err != nil {
			return err
		}
	}
	sh.kind, err = s.kind(sh)
	return err
}

func (sh *shape) find(name string) (int, error) {
	fold := -1
	var names []string
	for i, c := range sh.columns {
		if c.name == name {
			return i, nil
		}
		if strings.EqualFold(c.name, name) {
			fold = i
		}
		names = append(names, c.name)
	}
	if fold >= 0 {
		return fold, nil
	}
	return 0, fmt.Errorf("%w: %s; there are %s: correct the definition or the table", ErrNoColumn, name, strings.Join(names, ", "))
}

// kind returns that of the positions, and refuses cursors that the bound cannot keep safe.
func (s *Source) kind(sh *shape) (string, error) {
	c := sh.columns[sh.cursor]
	needs := map[class]string{classXID: BoundXID, classRowVersion: BoundRowVersion}[c.class]
	if needs == "" && (s.config.Bound == BoundXID || s.config.Bound == BoundRowVersion) || needs != "" && needs != s.config.Bound {
		return "", fmt.Errorf("%w: the cursor %s is %s, which does not go with the bound %q", ErrColumnType, c.name, c.typ, s.config.Bound)
	}
	if s.config.Bound == BoundSingleWriter && c.class != classInteger {
		return "", fmt.Errorf("%w: the cursor %s is %s, but the bound single-writer is for integers: set bound to settle", ErrColumnType, c.name, c.typ)
	}
	kind := ""
	switch c.class {
	case classRowVersion:
		sh.ties = nil // unique in the whole database
		return "rowversion", nil
	case classXID:
		return "xid8+seq", nil
	case classInteger, classDecimal:
		kind = "integer"
	case classTime, classLocal:
		kind = "timestamp"
	case classText:
		if s.config.Dialect == SQLite {
			kind = "timestamp"
		}
	}
	if kind == "" {
		return "", fmt.Errorf("%w: the cursor %s is %s; cursors are whole or decimal numbers and times", ErrColumnType, c.name, c.typ)
	}
	if len(sh.ties) > 0 {
		kind += "+pk"
	}
	return kind, nil
}

// quoted returns a column in a statement.
func (s *Source) quoted(c column) string { return "q." + s.dialect.quote(c.name) }

// filters returns the configured conditions.
func (s *Source) filters(sh *shape) ([]func(*statement), error) {
	var all []func(*statement)
	for _, w := range s.config.Where {
		i, err := sh.find(w.Column)
		if err != nil {
			return nil, err
		}
		c, op := sh.columns[i], strings.ToLower(w.Op)
		values, isList := w.Value.([]any)
		if !isList && w.Value != nil {
			values = []any{w.Value}
		}
		texts := make([]string, len(values))
		for i, v := range values {
			if texts[i], err = textOf(v); err == nil {
				texts[i], err = s.inCondition(texts[i], c)
			}
			if err != nil {
				return nil, fmt.Errorf("where %s: %w", c.name, err)
			}
		}
		all = append(all, func(st *statement) {
			st.add(s.quoted(c), " ", op)
			if len(texts) == 0 {
				return
			}
			st.add(" (")
			for i, text := range texts {
				if i > 0 {
					st.add(", ")
				}
				st.compared(text, c)
			}
			st.add(")")
		})
	}
	return all, nil
}

// behind returns the condition for rows after a position. Rows without a cursor never meet it, although some databases
// sort them first.
func (s *Source) behind(sh *shape, after poller.Cursor) (func(*statement), error) {
	if after.Value == "" {
		return func(st *statement) { st.add(s.quoted(sh.columns[sh.cursor]), " IS NOT NULL") }, nil
	}
	return s.compare(sh, after, ">")
}

// compare returns the condition for rows after a position that is not the beginning, with operator ">", or at or after
// it, with ">=".
func (s *Source) compare(sh *shape, after poller.Cursor, operator string) (func(*statement), error) {
	if after.Kind != "" && after.Kind != sh.kind {
		c := sh.columns[sh.cursor]
		return nil, fmt.Errorf("%w: the place is of kind %s, but %s is now %s and places are of kind %s: reset the poller, or undo the change of the table",
			ErrColumnType, after.Kind, c.name, c.typ, sh.kind)
	}
	columns, texts, err := placeOf(sh, after)
	if err != nil {
		return nil, err
	}
	if s.dialect.rowValues {
		return func(st *statement) { s.rowValue(st, columns, texts, operator) }, nil
	}
	return func(st *statement) {
		// The first condition follows from the second; it makes the database use the index.
		st.add(s.quoted(columns[0]), " >= ")
		st.compared(texts[0], columns[0])
		st.add(" AND ")
		s.expanded(st, columns, texts, operator)
	}, nil
}

func (s *Source) rowValue(st *statement, columns []column, texts []string, operator string) {
	var names []string
	for _, c := range columns {
		names = append(names, s.quoted(c))
	}
	st.add("(", strings.Join(names, ", "), ") ", operator, " (")
	for i, c := range columns {
		if i > 0 {
			st.add(", ")
		}
		st.compared(texts[i], c)
	}
	st.add(")")
}

func (s *Source) expanded(st *statement, columns []column, texts []string, operator string) {
	first := ">"
	if len(columns) == 1 {
		first = operator
	}
	st.add("(", s.quoted(columns[0]), " ", first, " ")
	st.compared(texts[0], columns[0])
	if len(columns) > 1 {
		st.add(" OR ", s.quoted(columns[0]), " = ")
		st.compared(texts[0], columns[0])
		st.add(" AND ")
		s.expanded(st, columns[1:], texts[1:], operator)
	}
	st.add(")")
}

// fits refuses a value that databases would read as a different one.
func fits(text string, c column) error {
	ok := true
	switch c.class {
	case classInteger, classXID:
		ok = strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == "" && strings.TrimPrefix(text, "-") != ""
	case classDecimal:
		ok = isNumber(text)
	case classRowVersion:
		ok = strings.HasPrefix(text, "0x") && len(text) == 18
	case classTime, classLocal:
		ok = len(text) >= len(time.DateOnly)
	}
	if !ok {
		return fmt.Errorf("%w: the place's value %q is not one of %s, which is %s", ErrColumnType, text, c.name, c.typ)
	}
	return nil
}

// order returns the source's order, or the reverse.
func (s *Source) order(sh *shape, direction string) []string {
	order := []string{s.quoted(sh.columns[sh.cursor]) + direction}
	for _, i := range sh.ties {
		order = append(order, s.quoted(sh.columns[i])+direction)
	}
	return order
}

func (s *Source) expressions(sh *shape) []string {
	var all []string
	for _, c := range sh.columns {
		all = append(all, s.dialect.expression(s.quoted(c), c)+" AS "+s.dialect.quote(c.name))
	}
	return all
}
