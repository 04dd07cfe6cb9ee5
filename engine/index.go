package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/tables"
)

// Index rows are in the partition of their main row and are written in its transaction. Their keys are
//
//	~S-{place}  ~F-{place}  ~O-{place}  history, by status: Succeeded, Failed, Failed in a run that succeeded after all
//	~P-{place}  ~R-{place}  ~E-{place}  dead letters, by status: Pending, Resolved, Expired
//	~t-{digest of the tenant}-{S, F, O, P, R, E}-{place}   the same of one tenant: rows of both tables that have a tenant
//	~c-{digest of the correlation id}-{place}   dead letters, by correlation id
//	~i-{digest of the instance id}-{S, F, O, P, R, E}-{place}   the same of one instance: rows of both tables that have one
//	~x-{place}                          dead letters that are resolved or expired, by the time of that
//	~n-{a hexadecimal digit}            how many dead letters have which status, counted in 16 rows
//
// where the place is "{inverted microseconds, 18 digits}-{digest of the row key}", so that a range ascends from the
// newest row to the oldest. Digests instead of ids keep keys short, and make their order the same in Go and in
// storage for any characters. No escaped id begins with ~, so no main row is ever among them.
const (
	indexMark = "~"

	endedPrefix = indexMark + "x-"
	countPrefix = indexMark + "n-"

	// tenantColumn holds the tenant as it was given; it is missing in rows that belong to the platform.
	tenantColumn = "TenantId"
	// targetColumn of an index row names the main row.
	targetColumn = "TargetRowKey"

	// lastMicro is the last microsecond of the year 9999 since 1970.
	lastMicro    = 253402300799999999
	invertedSize = 18
	digestSize   = 32
)

// statusPrefix returns the prefix of the index rows of a status; its initial distinguishes the statuses of a table.
func statusPrefix(status string) string { return indexMark + status[:1] + "-" }

// tenantPrefix returns the prefix of the index rows of one tenant in a status. All spellings of the tenant's id have
// the same.
func tenantPrefix(id, status string) string {
	return indexMark + "t-" + digest(tenant.Fold(cleanText(id))) + "-" + status[:1] + "-"
}

// listPrefix returns the prefix of the index rows that a caller of a tenant lists, "" being the platform.
func listPrefix(status, tenantID string) string {
	if tenantID == "" {
		return statusPrefix(status)
	}
	return tenantPrefix(tenantID, status)
}

// listPrefixes returns the prefixes under which a row is listed: for the platform, and for its tenant if it has one.
func listPrefixes(status, tenantID string) []string {
	if tenantID == "" {
		return []string{statusPrefix(status)}
	}
	return []string{statusPrefix(status), tenantPrefix(tenantID, status)}
}

// correlationPrefix returns the prefix of the index rows of one correlation id.
func correlationPrefix(correlationID string) string {
	return indexMark + "c-" + digest(cleanText(correlationID)) + "-"
}

// digest returns a key part for any text: 128 bits in hexadecimal.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digestSize/2])
}

// inverted makes keys ascend as times descend.
func inverted(micros int64) string {
	return fmt.Sprintf("%0*d", invertedSize, lastMicro-micros)
}

// place returns the part of an index key that orders the rows of either table.
func place(at time.Time, rowKey string) string {
	return inverted(at.UnixMicro()) + "-" + digest(rowKey)
}

// indexRow returns the index row of a main row, with copies of the named columns: those that a list shows or filters
// by.
func indexRow(main tables.Entity, prefix string, at time.Time, columns []string) tables.Entity {
	props := map[string]any{targetColumn: main.Row}
	for _, name := range columns {
		if v, ok := main.Properties[name]; ok {
			props[name] = v
		}
	}
	return tables.Entity{
		Key:        tables.Key{Partition: main.Partition, Row: prefix + place(at, main.Row)},
		Properties: props,
	}
}

// rowKeyOf returns the key of the main row, given a main row or an index row.
func rowKeyOf(e tables.Entity) string {
	if strings.HasPrefix(e.Row, indexMark) {
		return e.String(targetColumn)
	}
	return e.Row
}

// runQuery selects the main rows of one correlation id, oldest first. It also compares the column, because the escaped
// id can be the beginning of another one. Timestamps begin with a digit, so the range ends behind 9.
func runQuery(engine, correlationID string) tables.Query {
	prefix := tables.EscapeKey(correlationID) + "-"
	return tables.Query{
		Partition: tables.EscapeKey(engine),
		From:      prefix,
		To:        prefix + ":",
		Where:     map[string]any{"CorrelationId": cleanText(correlationID)},
	}
}

// indexRange returns the key range of the times in [from, to); a zero time is no bound.
func indexRange(prefix string, from, to time.Time) (lower, upper string) {
	lower, upper = prefix, prefix[:len(prefix)-1]+"."
	if !to.IsZero() {
		lower = prefix + inverted(ceil(to).UnixMicro()-1)
	}
	if !from.IsZero() {
		upper = prefix + inverted(ceil(from).UnixMicro()-1)
	}
	return lower, upper
}

// ceil returns the first whole microsecond that is not before t: rows have whole microseconds, bounds need not.
func ceil(t time.Time) time.Time {
	if floor := truncateMicros(t); !floor.Equal(t) {
		return floor.Add(time.Microsecond)
	}
	return t.UTC()
}
