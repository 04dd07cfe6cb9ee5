package outbox

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// How row keys begin; the package comment has their forms.
const (
	messagePrefix   = "m-"
	pendingPrefix   = "p-"
	waitingPrefix   = "w-"
	failedPrefix    = "f-"
	processedPrefix = "x-"
	deadPrefix      = "d-"
	orderPrefix     = "k-"

	tenantsPartition = "~tenants"

	// lastMicro is the last microsecond of the year 9999 since 1970.
	lastMicro = 253402300799999999

	// maxPlainSuffix is the longest escaped id that an index row's key holds; longer ones are digests.
	maxPlainSuffix = 3 * MaxIDLength
)

// partition is the partition of a tenant.
func partition(tenant string) string { return tables.EscapeKey(tenant) }

// digits is a time as it ascends in row keys: microseconds since 1970.
func digits(t time.Time) string { return fmt.Sprintf("%018d", clampMicro(t)) }

// inverted is a time as it descends.
func inverted(t time.Time) string { return fmt.Sprintf("%018d", lastMicro-clampMicro(t)) }

func clampMicro(t time.Time) int64 { return min(max(t.UnixMicro(), 0), lastMicro) }

// suffix stands for an id in the keys of index rows. No escaped text begins with ~.
func suffix(id string) string {
	escaped := tables.EscapeKey(id)
	if len(escaped) <= maxPlainSuffix {
		return escaped
	}
	return "~" + digest(id)
}

// digest stands for a text of any length and characters: 128 bits in hexadecimal.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// nonce is a name that nobody else has.
func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func messageRow(id string) string { return messagePrefix + tables.EscapeKey(id) }

func pendingRow(due time.Time, id string) string {
	return pendingPrefix + digits(due) + "-" + suffix(id) + "-" + nonce()
}

func failedRow(created time.Time, id string) string {
	return failedPrefix + digits(created) + "-" + suffix(id)
}

func orderRow(orderKey string) string { return orderPrefix + digest(orderKey) }

func waitingRange(orderKey string) string { return waitingPrefix + digest(orderKey) + "-" }

func waitingRow(orderKey string, sequence int64, id string) string {
	return waitingRange(orderKey) + fmt.Sprintf("%018d-", sequence) + suffix(id)
}

// endOf bounds all rows that begin with prefix, which ends with a hyphen: '.' follows it.
func endOf(prefix string) string { return strings.TrimSuffix(prefix, "-") + "." }

// truncated is a time as rows keep it.
func truncated(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
