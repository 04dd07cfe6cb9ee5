package azure

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// filter writes a checked lookup as an OData expression. Names have been checked to be identifiers, and values are
// literals with doubled quotes, so no content can end them.
func filter(l *tables.Lookup) string {
	clauses := append(within("PartitionKey", l.Partition), within("RowKey", l.Row)...)
	for _, name := range slices.Sorted(maps.Keys(l.Where)) {
		clauses = append(clauses, name+" eq "+literal(l.Where[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(l.NotBefore)) {
		clauses = append(clauses, name+" ge "+literal(l.NotBefore[name]))
	}
	return strings.Join(clauses, " and ")
}

// within restricts a key part to its span.
func within(part string, s tables.Span) (clauses []string) {
	if s.One {
		return []string{part + " eq " + quoted(s.Is)}
	}
	if s.From != "" {
		clauses = append(clauses, part+" ge "+quoted(s.From))
	}
	if s.To != "" {
		clauses = append(clauses, part+" lt "+quoted(s.To))
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
		return "datetime'" + v.UTC().Format(timeLayout) + "'"
	case []byte:
		return "X'" + hex.EncodeToString(v) + "'"
	}
	return "null" // unreachable for a checked query; equal to nothing
}

// doubleLiteral writes a point, or the value would be an integer, and no exponent, which the emulator misreads.
func doubleLiteral(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
