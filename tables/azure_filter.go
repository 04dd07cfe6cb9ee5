package tables

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// filter writes a checked lookup as an OData expression. Names have been checked to be identifiers, and values are
// literals with their quotes doubled, so nothing in them can end them.
func filter(l *lookup) string {
	clauses := append(within("PartitionKey", l.partition), within("RowKey", l.row)...)
	for _, name := range slices.Sorted(maps.Keys(l.where)) {
		clauses = append(clauses, name+" eq "+literal(l.where[name]))
	}
	return strings.Join(clauses, " and ")
}

// within holds a key part to its span.
func within(part string, s span) (clauses []string) {
	if s.one {
		return []string{part + " eq " + quoted(s.is)}
	}
	if s.from != "" {
		clauses = append(clauses, part+" ge "+quoted(s.from))
	}
	if s.to != "" {
		clauses = append(clauses, part+" lt "+quoted(s.to))
	}
	return clauses
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return quoted(v)
	case bool:
		return strconv.FormatBool(v)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10) + "L"
	case float64:
		return doubleLiteral(v)
	case time.Time:
		return "datetime'" + storedTime(v).Format(timeLayout) + "'"
	case []byte:
		return "X'" + hex.EncodeToString(v) + "'"
	}
	return "null" // unreachable unless the query was not checked; equal to nothing
}

// doubleLiteral has a point, or it would be an integer, and no exponent, which the emulator misreads.
func doubleLiteral(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
