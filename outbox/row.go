package outbox

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// These are the prefixes of row keys; the package comment has their forms.
const (
	messagePrefix   = "m-"
	openPrefix      = "n-" // sorts directly before owedPrefix, and that before pendingPrefix, so that one query finds them
	owedPrefix      = "o-"
	pendingPrefix   = "p-"
	waitingPrefix   = "w-"
	failedPrefix    = "f-"
	processedPrefix = "x-"
	deadPrefix      = "d-"
	orderPrefix     = "k-"

	tenantsPartition = "~tenants"
	openPartition    = "~open"

	// lastMicro is the last microsecond of the year 9999 since 1970.
	lastMicro = 253402300799999999

	// maxPlainSuffix is the longest escaped id in the key of an index row; a longer one is replaced by a digest.
	maxPlainSuffix = 3 * MaxIDLength
)

// partition returns the partition key of a tenant.
func partition(tenant string) string { return tables.EscapeKey(tenant) }

// digits encodes a time in ascending keys: microseconds since 1970.
func digits(t time.Time) string { return fmt.Sprintf("%018d", clampMicro(t)) }

// inverted encodes a time in descending keys.
func inverted(t time.Time) string { return fmt.Sprintf("%018d", lastMicro-clampMicro(t)) }

func clampMicro(t time.Time) int64 { return min(max(t.UnixMicro(), 0), lastMicro) }

// suffix returns an id's part in the keys of index rows. No escaped text begins with ~.
func suffix(id string) string {
	escaped := tables.EscapeKey(id)
	if len(escaped) <= maxPlainSuffix {
		return escaped
	}
	return "~" + digest(id)
}

// digest returns a digest of a text: 128 bits in hexadecimal.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// nonce returns a random name.
func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func messageRow(id string) string { return messagePrefix + tables.EscapeKey(id) }

func pendingRow(due time.Time, id string) string {
	return pendingPrefix + digits(due) + "-" + suffix(id) + "-" + nonce()
}

// dueOf returns the due time of a p- row; ok is false for other rows.
func dueOf(row string) (due time.Time, ok bool) {
	rest, ok := strings.CutPrefix(row, pendingPrefix)
	number, _, _ := strings.Cut(rest, "-")
	micro, err := strconv.ParseInt(number, 10, 64)
	return time.UnixMicro(micro), ok && err == nil
}

func failedRow(created time.Time, id string) string {
	return failedPrefix + digits(created) + "-" + suffix(id)
}

func owedRow(since time.Time, id string) string {
	return owedPrefix + digits(since) + "-" + suffix(id)
}

func orderRow(orderKey string) string { return orderPrefix + digest(orderKey) }

func waitingRange(orderKey string) string { return waitingPrefix + digest(orderKey) + "-" }

func waitingRow(orderKey string, sequence int64, id string) string {
	return waitingRange(orderKey) + fmt.Sprintf("%018d-", sequence) + suffix(id)
}

// endOf returns the end of the range of rows that begin with prefix, which ends with a hyphen: '.' is the next
// character.
func endOf(prefix string) string { return strings.TrimSuffix(prefix, "-") + "." }

// truncated returns a time in the precision of rows.
func truncated(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
