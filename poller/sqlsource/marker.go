package sqlsource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The type of a column determines how its value marks its row:
//
//	NULL                live
//	truth value         itself
//	number              live at 0, with any number of digits
//	time                live in 1970-01-01 and before, more than a day ahead, and at infinity
//	bits                live when none is set
//	bytes               live when none is set, or as a text
//	text                live when it is empty, a word for no, a number that is 0, or a time as above
//	JSON and the rest   live when it is null, false, empty, or as a number, time or text above
//
// docs/pollers.md has the table with the types of each dialect.

// marking is the meaning of a value for its row.
type marking int

const (
	live marking = iota
	deleted
	// counted is a number above 1. It marks its row as deleted.
	counted
	// unclear is a negative number, and a text that is neither a word for yes or no nor a number or time. It marks its row
	// as deleted.
	unclear
)

var (
	wordsForNo  = []string{"n", "no", "not", "f", "false", "off", "none", "null", "nil", "never", "empty", "n/a"}
	wordsForYes = []string{"y", "yes", "t", "true", "on", "x", "d", "del", "delete", "deleted"}
)

// marked reports whether the value of a soft-delete column marks its row as deleted at a time.
func marked(v any, c column, now time.Time) bool { return markingOf(v, c, now) != live }

func markingOf(v any, c column, now time.Time) marking {
	switch v := v.(type) {
	case nil:
		return live
	case bool:
		return markIf(v)
	case int64, uint64, float64, float32:
		if c.class == classBoolean {
			return markIf(canonical(v, c.class) != "0")
		}
		return markNumber(canonical(v, c.class))
	case time.Time:
		return markTime(v, now)
	case []byte:
		bits := bytes.Trim(v, "\x00")
		if len(bits) > 0 && (c.class == classBytes || c.class == classRowVersion) &&
			(c.typ == "BIT" || !utf8.Valid(bits) || bytes.ContainsFunc(bits, func(r rune) bool { return r < ' ' })) {
			return deleted
		}
		return markText(string(bits), c.class, now)
	case string:
		return markText(v, c.class, now)
	}
	return unclear
}

func markIf(is bool) marking {
	if is {
		return deleted
	}
	return live
}

// markNumber reads the text of a number, ignoring its exponent.
func markNumber(text string) marking {
	digits, _, _ := strings.Cut(strings.ToLower(text), "e")
	switch whole, fraction, _ := strings.Cut(strings.TrimLeft(digits, "+0"), "."); {
	case !strings.ContainsAny(digits, "123456789") && strings.ContainsAny(digits, "0"):
		return live
	case strings.HasPrefix(digits, "-"):
		return unclear
	case whole == "1" && strings.Trim(fraction, "0") == "":
		return deleted
	}
	return counted
}

// markTime treats a time as that of the deletion. Times before 1970 and future times mean none.
func markTime(t, now time.Time) marking {
	return markIf(t.Year() > 1970 || t.Year() == 1970 && t.YearDay() > 1) & markIf(!t.After(now.Add(24*time.Hour)))
}

func markText(text string, c class, now time.Time) marking {
	if c == classJSON && json.Valid([]byte(text)) {
		var s string
		if json.Unmarshal([]byte(text), &s) == nil { // null leaves it empty
			text = s
		}
	}
	text = strings.ToLower(strings.TrimSpace(strings.Trim(text, "\x00")))
	if isNumber(text) || decimalText(text) || c == classInteger || c == classDecimal || c == classFloat || c == classXID {
		return markNumber(text)
	}
	if at, known, ok := timeText(text); ok {
		if !known {
			return live
		}
		return markTime(at, now)
	}
	switch {
	case slices.Contains(wordsForNo, text), strings.Trim(text, " \t\r\n-_.?{}[]()\"'") == "":
		return live
	case strings.ContainsAny(text, "0") && !strings.ContainsFunc(text, func(r rune) bool { return r >= '1' && r <= '9' || 'a' <= r && r <= 'z' }):
		return live // an interval, an amount of money, a time of day or an id with only zeros
	case slices.Contains(wordsForYes, text):
		return deleted
	}
	return unclear
}

// decimalText reports whether a text is a number that JSON rejects, such as +1, 007 or .5.
func decimalText(text string) bool {
	digits := strings.TrimLeft(text, "+-")
	return len(text)-len(digits) <= 1 && strings.Trim(digits, "0123456789.") == "" && strings.Count(digits, ".") <= 1 && strings.ContainsAny(digits, "0123456789")
}

// timeText reads a text as a time. known is false for a time outside the years 1 to 9999: infinity, and the year 0 of
// MySQL.
func timeText(text string) (at time.Time, known, ok bool) {
	if strings.Trim(text, "+-") == "infinity" {
		return at, false, true
	}
	date, _, _ := strings.Cut(strings.Replace(text, "t", " ", 1), " ")
	parts := strings.Split(date, "-")
	if len(parts) != 3 || len(parts[0]) < 4 || len(parts[1]) != 2 || len(parts[2]) != 2 || strings.Trim(date, "0123456789-") != "" {
		return at, false, false
	}
	if len(parts[0]) > 4 || parts[0] == "0000" || strings.HasSuffix(text, " bc") {
		return at, false, true
	}
	at, err := time.Parse(time.DateOnly, date) // a day is enough
	return at, true, err == nil
}

// markerSample is the number of rows that a look at a marker reads, and markerExamples the number of unclear values
// that it shows.
const (
	markerSample   = 10_000
	markerExamples = 3
)

// markers are the results of a look at a column.
type markers struct {
	rows, deleted int
	// unclear and counted are examples.
	unclear, counted []string
}

// lookAtMarker reads a column of some rows of the table.
func (s *Source) lookAtMarker(ctx context.Context, c column) (m markers, err error) {
	text, args, err := s.build(query{columns: []string{s.dialect.expression(s.quoted(c), c)}, limit: markerSample})
	if err != nil {
		return m, err
	}
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return m, err
	}
	defer rows.Close()
	now := time.Now()
	for rows.Next() {
		var v any
		if err := rows.Scan(&v); err != nil {
			return m, err
		}
		m.rows++
		found := markingOf(v, c, now)
		if found != live {
			m.deleted++
		}
		switch example := fmt.Sprintf("%.32q", canonical(v, c.class)); found {
		case unclear:
			m.unclear = withExample(m.unclear, example)
		case counted:
			m.counted = withExample(m.counted, example)
		}
	}
	return m, rows.Err()
}

func withExample(examples []string, example string) []string {
	if len(examples) == markerExamples || slices.Contains(examples, example) {
		return examples
	}
	return append(examples, example)
}

// adviseMarker describes the effect of the marker on existing rows, if that looks wrong.
func (s *Source) adviseMarker(ctx context.Context, sh *shape) (string, error) {
	if sh.deleted < 0 {
		return "", nil
	}
	c := sh.columns[sh.deleted]
	m, err := s.lookAtMarker(ctx, c)
	switch {
	case err != nil:
		return "", err
	case len(m.unclear) > 0:
		return fmt.Sprintf("deleted: %s has values that are neither yes nor no, such as %s: their rows are delivered as deleted. Use a truth value, a number or a time", c.name,
			strings.Join(m.unclear, ", ")), nil
	case m.rows > 0 && m.deleted == m.rows:
		return fmt.Sprintf("deleted: %s marks all of the %d rows that were looked at as deleted: does it mean that?", c.name, m.rows), nil
	}
	return "", nil
}

// softDelete finds the column that marks deleted rows: one with a typical name, of a suitable type, and with suitable
// values.
func (s *Source) softDelete(ctx context.Context, p *Proposal, sh *shape) error {
	for _, c := range sh.columns {
		if !deletedName.MatchString(c.name) {
			continue
		}
		m, err := s.lookAtMarker(ctx, c)
		if err != nil {
			return err
		}
		if why := m.refuse(c); why != "" {
			p.reason("deleted: not %s, although it is called so: %s. If it marks deleted rows, set deleted to it", c.name, why)
			continue
		}
		p.Config.Deleted = c.name
		p.reason("deleted: %s, by its name, its type %s and its values: of %d rows that were looked at, %d are deleted", c.name, c.typ, m.rows, m.deleted)
		return nil
	}
	if !slices.ContainsFunc(sh.columns, func(c column) bool { return deletedName.MatchString(c.name) }) {
		p.reason("deleted: no column is called deleted or deleted_at, so deletes are not seen")
	}
	return nil
}

// refuse returns the reason why a column is not proposed as a marker, "" for none. The type of a truth value or of a
// nullable time is clear enough; for all others the values have to show their meaning.
func (m markers) refuse(c column) string {
	evident := c.class == classBoolean || (c.class == classTime || c.class == classLocal) && c.nullable
	switch {
	case len(m.unclear) > 0:
		return fmt.Sprintf("its values are neither yes nor no, such as %s", strings.Join(m.unclear, ", "))
	case len(m.counted) > 0:
		return fmt.Sprintf("its values are neither 0 nor 1, such as %s", strings.Join(m.counted, ", "))
	case m.rows == 0 && !evident:
		return fmt.Sprintf("its type %s does not say what it means, and the table has no rows to look at", c.typ)
	case m.rows > 0 && m.deleted == m.rows:
		return fmt.Sprintf("all of the %d rows that were looked at would be deleted", m.rows)
	}
	return ""
}
