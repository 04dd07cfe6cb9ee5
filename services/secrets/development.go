package secrets

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// DevelopmentTable is the table of Development. The caller of NewDevelopment creates it.
const DevelopmentTable = "devSecrets"

// Properties of a row of DevelopmentTable.
const (
	propValue   = "Value"
	propTags    = "Tags"
	propCreated = "CreatedAtUtc"
	propUpdated = "UpdatedAtUtc"
	propEnabled = "Enabled"
)

// Development is the Store for a developer's machine: it behaves like Key Vault and keeps the values, unprotected, in a
// table. Use it only with a table store of the storage emulator or in memory. The caller ensures that, because a table
// store does not expose its account.
type Development struct {
	// Now is the clock, time.Now when nil. Set it before first use.
	Now func() time.Time

	tables tables.Store
}

var (
	_ Store  = (*Development)(nil)
	_ Reader = (*Development)(nil)
)

// NewDevelopment returns a store in DevelopmentTable of store, which has to be emulator storage.
func NewDevelopment(store tables.Store) *Development {
	return &Development{tables: store}
}

// Versions implements Store.
func (d *Development) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("list secret versions: %w", err)
	}
	var versions []Version
	query := tables.Query{Partition: partition(name), Select: []string{propTags, propCreated, propUpdated, propEnabled}}
	for {
		page, err := d.tables.Query(ctx, DevelopmentTable, query)
		if err != nil {
			return nil, fmt.Errorf("list versions of secret %s: %w", name, fromTables(err))
		}
		for _, row := range page.Entities {
			v, err := rowVersion(name, row)
			if err != nil {
				return nil, fmt.Errorf("list versions of secret %s: %w", name, err)
			}
			versions = append(versions, v)
		}
		if page.Next == "" {
			sortVersions(versions)
			return versions, nil
		}
		query.Continuation = page.Next
	}
}

// Add implements Store.
func (d *Development) Add(ctx context.Context, name string, value []byte, tags map[string]string) (Version, error) {
	if err := checkAdd(name, value, tags); err != nil {
		return Version{}, fmt.Errorf("add secret version: %w", err)
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	v := Version{Name: name, Version: hex.EncodeToString(id[:]), Created: d.now(), Enabled: true}
	v.Updated = v.Created
	for tag, text := range tags {
		if v.Tags == nil {
			v.Tags = make(map[string]string, len(tags))
		}
		v.Tags[tag] = text
	}
	encoded, err := json.Marshal(v.Tags)
	if err != nil {
		return Version{}, fmt.Errorf("add version of secret %s: encode tags: %w", name, err)
	}
	err = d.tables.Apply(ctx, DevelopmentTable, tables.Op{Kind: tables.OpInsert, Entity: tables.Entity{
		Key: rowKey(name, v.Version),
		Properties: map[string]any{
			propValue:   value,
			propTags:    string(encoded),
			propCreated: v.Created,
			propEnabled: true,
		},
	}})
	// No other call draws the same 128 bits: an existing row is this call's own, sent twice.
	if err != nil && !errors.Is(err, tables.ErrExists) {
		return Version{}, fmt.Errorf("add version of secret %s: %w", name, fromTables(err))
	}
	return v, nil
}

// Disable implements Store.
func (d *Development) Disable(ctx context.Context, name, version string) error {
	if err := checkVersion(name, version); err != nil {
		return fmt.Errorf("disable secret version: %w", err)
	}
	row, err := d.tables.Get(ctx, DevelopmentTable, rowKey(name, version))
	if err != nil {
		return fmt.Errorf("disable secret %s version %s: %w", name, version, fromTables(err))
	}
	if enabled, _ := row.Properties[propEnabled].(bool); !enabled {
		return nil
	}
	// Only operators change a row otherwise, so no comparison is needed.
	row.ETag = ""
	row.Properties[propEnabled], row.Properties[propUpdated] = false, d.now()
	if err := d.tables.Apply(ctx, DevelopmentTable, tables.Op{Kind: tables.OpReplace, Entity: row}); err != nil {
		return fmt.Errorf("disable secret %s version %s: %w", name, version, fromTables(err))
	}
	return nil
}

// Value implements Reader.
func (d *Development) Value(ctx context.Context, name, version string) ([]byte, error) {
	if err := checkVersion(name, version); err != nil {
		return nil, fmt.Errorf("read secret version: %w", err)
	}
	row, err := d.tables.Get(ctx, DevelopmentTable, rowKey(name, version))
	if err != nil {
		return nil, fmt.Errorf("read secret %s version %s: %w", name, version, fromTables(err))
	}
	if enabled, _ := row.Properties[propEnabled].(bool); !enabled {
		return nil, fmt.Errorf("read secret %s version %s: %w: the version is disabled", name, version, ErrForbidden)
	}
	value, ok := row.Properties[propValue].([]byte)
	if !ok {
		return nil, fmt.Errorf("read secret %s version %s: %w: the row holds no value", name, version, ErrInvalid)
	}
	return value, nil
}

// now returns the time in whole seconds, like Key Vault's.
func (d *Development) now() time.Time {
	now := time.Now
	if d.Now != nil {
		now = d.Now
	}
	return now().UTC().Truncate(time.Second)
}

// rowKey addresses a version.
func rowKey(name, version string) tables.Key {
	return tables.Key{Partition: partition(name), Row: version}
}

// partition addresses a secret, whose name ignores case as in Key Vault.
func partition(name string) string { return tables.EscapeKey(strings.ToLower(name)) }

// rowVersion reads a row, without its value.
func rowVersion(name string, row tables.Entity) (Version, error) {
	v := Version{Name: name, Version: row.Row}
	created, okCreated := row.Properties[propCreated].(time.Time)
	enabled, okEnabled := row.Properties[propEnabled].(bool)
	tags, okTags := row.Properties[propTags].(string)
	if !okCreated || !okEnabled || !okTags {
		return Version{}, fmt.Errorf("%w: row %s lacks a property", ErrInvalid, row.Row)
	}
	v.Created, v.Updated, v.Enabled = created.UTC(), created.UTC(), enabled
	if updated, ok := row.Properties[propUpdated].(time.Time); ok { // rows of unchanged versions have none
		v.Updated = updated.UTC()
	}
	if err := json.Unmarshal([]byte(tags), &v.Tags); err != nil {
		return Version{}, fmt.Errorf("%w: row %s: tags: %w", ErrInvalid, row.Row, err)
	}
	return v, nil
}

// tableErrors pairs the errors of a table store with those of this package.
var tableErrors = []struct{ from, to error }{
	{tables.ErrNotFound, ErrNotFound},
	{tables.ErrTooLarge, ErrInvalid},
	{tables.ErrInvalid, ErrInvalid},
	{tables.ErrThrottled, ErrThrottled},
	{tables.ErrOutcomeUnknown, ErrOutcomeUnknown},
}

// fromTables adds this package's error to a table store's.
func fromTables(err error) error {
	for _, pair := range tableErrors {
		if errors.Is(err, pair.from) {
			return fmt.Errorf("%w: %w", pair.to, err)
		}
	}
	return err
}
