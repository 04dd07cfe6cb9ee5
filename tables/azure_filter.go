package tables

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// filter writes a checked Query as an OData expression. Names have been checked to be identifiers, and values are
// literals with their quotes doubled, so nothing in them can end them.
func filter(q *Query) string {
	var b strings.Builder
	b.WriteString("PartitionKey eq " + quoted(q.Partition))
	if q.From != "" {
		b.WriteString(" and RowKey ge " + quoted(q.From))
	}
	if q.To != "" {
		b.WriteString(" and RowKey lt " + quoted(q.To))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Where)) {
		b.WriteString(" and " + name + " eq " + literal(q.Where[name]))
	}
	return b.String()
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
