package registry

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// partition holds all instances, so that a list is a query of one partition.
const partition = "instance"

// Columns of the table.
const (
	columnDocument  = "Document"
	columnVersion   = "RegistryVersion"
	columnLockJob   = "LockJobId"
	columnLockUntil = "LockUntilUtc"
	columnWrites    = "Writes"
)

// rememberedWrites is the number of recent writes that a row names, in 9 characters each. A writer whose answer was
// lost finds its own among them.
const rememberedWrites = 256

// newWrite returns an id of a write. Only writes of one version are compared.
func newWrite() string { return rand.Text()[:8] }

// row is a stored instance.
type row struct {
	instance Instance
	etag     string
	writes   []string // the last is the write of this version
}

// wrote returns the write of a version; false if the row no longer has it.
func (r row) wrote(version int64) (string, bool) {
	at := int64(len(r.writes)) - 1 - (r.instance.Version - version)
	if at < 0 || at >= int64(len(r.writes)) {
		return "", false
	}
	return r.writes[at], true
}

// next returns the next row, with the change of a write.
func (r row) next(changed Instance, write string) row {
	changed.Version = r.instance.Version + 1
	writes := append(append([]string(nil), r.writes...), write)
	return row{instance: changed, etag: r.etag, writes: writes[max(0, len(writes)-rememberedWrites):]}
}

// keyOf checks an instance id and returns its key.
func keyOf(instanceID string) (tables.Key, error) {
	key := tables.Key{Partition: partition, Row: tables.EscapeKey(instanceID)}
	if instanceID == "" || len(key.Row) > 512 || !utf8.ValidString(instanceID) {
		return key, fmt.Errorf("an instance id of %d bytes: %w: it needs 1 to 512 bytes of UTF-8, once escaped for a table key", len(instanceID), ErrInvalid)
	}
	return key, nil
}

func (r row) entity(key tables.Key) (tables.Entity, error) {
	document, err := json.Marshal(r.instance)
	if err != nil {
		return tables.Entity{}, fmt.Errorf("encode instance %s: %w: %w", r.instance.InstanceID, ErrInvalid, err)
	}
	props := map[string]any{columnVersion: r.instance.Version, columnLockJob: r.instance.Lock.JobID, columnWrites: strings.Join(r.writes, " ")}
	if !r.instance.Lock.Until.IsZero() {
		props[columnLockUntil] = r.instance.Lock.Until
	}
	tables.PutText(props, columnDocument, string(document))
	return tables.Entity{Key: key, ETag: r.etag, Properties: props}, nil
}

func readRow(e tables.Entity) (row, error) {
	r := row{etag: e.ETag, writes: strings.Fields(e.String(columnWrites))}
	if err := json.Unmarshal([]byte(tables.Text(e, columnDocument)), &r.instance); err != nil {
		return row{}, fmt.Errorf("row %s: %w: %w", e.Key, ErrDamaged, err)
	}
	if version := e.Int(columnVersion); version != r.instance.Version {
		return row{}, fmt.Errorf("row %s: the column says version %d, the document %d: %w", e.Key, version, r.instance.Version, ErrDamaged)
	}
	return r, nil
}
