package certificates

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// DevelopmentTable is the table of Development. The caller of NewDevelopment creates it.
const DevelopmentTable = "devCertificates"

// requestRow is the row of the pending request; versions are hex digits.
const requestRow = "request"

// Properties of a row of DevelopmentTable.
const (
	propKey      = "Key"
	propRequest  = "Request"
	propChain    = "Chain"
	propTags     = "Tags"
	propCreated  = "CreatedAtUtc"
	propNotAfter = "NotAfterUtc"
	propEnabled  = "Enabled"
)

// Development is the Store for a developer's machine: it behaves like Key Vault and keeps the private keys,
// unprotected, in a table. Use it only with a table store of the storage emulator or in memory. The caller ensures
// that, because a table store does not expose its account.
type Development struct {
	// Now is the clock, time.Now when nil. Set it before first use.
	Now func() time.Time

	tables tables.Store
}

var _ Store = (*Development)(nil)

// NewDevelopment returns a store in DevelopmentTable of store, which has to be emulator storage.
func NewDevelopment(store tables.Store) *Development { return &Development{tables: store} }

// Versions implements Store.
func (d *Development) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("list certificate versions: %w", err)
	}
	var versions []Version
	query := tables.Query{Partition: partition(name), Select: []string{propTags, propCreated, propNotAfter, propEnabled}}
	for {
		page, err := d.tables.Query(ctx, DevelopmentTable, query)
		if err != nil {
			return nil, fmt.Errorf("list versions of certificate %s: %w", name, fromTables(err))
		}
		for _, row := range page.Entities {
			if row.Row == requestRow {
				continue
			}
			v, err := readVersion(name, row)
			if err != nil {
				return nil, fmt.Errorf("list versions of certificate %s: %w", name, err)
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

// Leaf implements Store.
func (d *Development) Leaf(ctx context.Context, name, version string) ([]byte, error) {
	if err := checkVersion(name, version); err != nil {
		return nil, fmt.Errorf("read certificate version: %w", err)
	}
	row, err := d.tables.Get(ctx, DevelopmentTable, rowKey(name, version))
	if err != nil {
		return nil, fmt.Errorf("read certificate %s version %s: %w", name, version, fromTables(err))
	}
	chain, _ := row.Properties[propChain].([]byte)
	certificates, err := x509.ParseCertificates(chain)
	if err != nil || len(certificates) == 0 {
		return nil, fmt.Errorf("read certificate %s version %s: %w: the row holds no chain", name, version, secrets.ErrInvalid)
	}
	return certificates[0].Raw, nil
}

// Request implements Store.
func (d *Development) Request(ctx context.Context, name string, domains []string, key KeyType) ([]byte, error) {
	if err := checkRequest(name, domains, key); err != nil {
		return nil, fmt.Errorf("request certificate: %w", err)
	}
	row, err := d.request(ctx, name)
	if errors.Is(err, ErrNoRequest) {
		if row, err = newRequest(name, domains, key); err == nil {
			err = d.tables.Apply(ctx, DevelopmentTable, tables.Insert(row))
		}
		if errors.Is(err, tables.ErrExists) {
			row, err = d.request(ctx, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("request certificate %s: %w", name, fromTables(err))
	}
	csr, _ := row.Properties[propRequest].([]byte)
	return csr, nil
}

// request reads the row of the pending request, or returns ErrNoRequest.
func (d *Development) request(ctx context.Context, name string) (tables.Entity, error) {
	row, err := d.tables.Get(ctx, DevelopmentTable, rowKey(name, requestRow))
	if errors.Is(err, tables.ErrNotFound) {
		return row, ErrNoRequest
	}
	return row, err
}

// newRequest makes a key and a signing request.
func newRequest(name string, domains []string, of KeyType) (tables.Entity, error) {
	key, err := of.Generate()
	if err != nil {
		return tables.Entity{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tables.Entity{}, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName(domains)}, DNSNames: domains}
	csr, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return tables.Entity{}, err
	}
	return tables.Entity{Key: rowKey(name, requestRow), Properties: map[string]any{propKey: secret, propRequest: csr}}, nil
}

// Cancel implements Store.
func (d *Development) Cancel(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("cancel certificate request: %w", err)
	}
	err := d.tables.Apply(ctx, DevelopmentTable, tables.Delete(rowKey(name, requestRow), ""))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("cancel the request of certificate %s: %w", name, fromTables(err))
	}
	return nil
}

// Merge implements Store.
func (d *Development) Merge(ctx context.Context, name string, chain [][]byte, tags map[string]string) (Version, error) {
	v, err := d.merge(ctx, name, chain, tags)
	if err != nil {
		return Version{}, fmt.Errorf("merge certificate %s: %w", name, fromTables(err))
	}
	return v, nil
}

func (d *Development) merge(ctx context.Context, name string, chain [][]byte, tags map[string]string) (Version, error) {
	if err := checkName(name); err != nil {
		return Version{}, err
	}
	leaf, err := checkChain(chain)
	if err != nil {
		return Version{}, err
	}
	row, err := d.request(ctx, name)
	if err != nil {
		return Version{}, err
	}
	if request, _ := row.Properties[propRequest].([]byte); !belongs(request, leaf) {
		return Version{}, fmt.Errorf("%w: the one under way is for another key than the chain", ErrNoRequest)
	}
	encoded, err := json.Marshal(tags)
	if err != nil {
		return Version{}, err
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	now := time.Now
	if d.Now != nil {
		now = d.Now
	}
	v := Version{Name: name, Version: hex.EncodeToString(id[:]), Tags: tags, Created: now().UTC().Truncate(time.Second), NotAfter: leaf.NotAfter.UTC(), Enabled: true}
	insert := tables.Insert(tables.Entity{Key: rowKey(name, v.Version), Properties: map[string]any{
		propKey: row.Properties[propKey], propChain: slices.Concat(chain...), propTags: string(encoded),
		propCreated: v.Created, propNotAfter: v.NotAfter, propEnabled: true,
	}})
	err = d.tables.Apply(ctx, DevelopmentTable, tables.Delete(row.Key, row.ETag), insert)
	if errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition) {
		err = fmt.Errorf("%w: %w", ErrNoRequest, err)
	}
	return v, err
}

// Disable implements Store.
func (d *Development) Disable(ctx context.Context, name, version string) error {
	if err := checkVersion(name, version); err != nil {
		return fmt.Errorf("disable certificate version: %w", err)
	}
	row, err := d.tables.Get(ctx, DevelopmentTable, rowKey(name, version))
	if err == nil {
		// Enabled only ever becomes false and nothing else of a row changes, so no comparison is needed.
		row.ETag = ""
		row.Properties[propEnabled] = false
		err = d.tables.Apply(ctx, DevelopmentTable, tables.Replace(row))
	}
	if err != nil {
		return fmt.Errorf("disable certificate %s version %s: %w", name, version, fromTables(err))
	}
	return nil
}

// rowKey addresses a row; names ignore case as in Key Vault.
func rowKey(name, row string) tables.Key { return tables.Key{Partition: partition(name), Row: row} }

func partition(name string) string { return tables.EscapeKey(strings.ToLower(name)) }

// readVersion reads a row, without its key.
func readVersion(name string, row tables.Entity) (Version, error) {
	v := Version{Name: name, Version: row.Row}
	created, okCreated := row.Properties[propCreated].(time.Time)
	notAfter, okNotAfter := row.Properties[propNotAfter].(time.Time)
	enabled, okEnabled := row.Properties[propEnabled].(bool)
	tags, okTags := row.Properties[propTags].(string)
	if !okCreated || !okNotAfter || !okEnabled || !okTags {
		return Version{}, fmt.Errorf("%w: row %s lacks a property", secrets.ErrInvalid, row.Row)
	}
	v.Created, v.NotAfter, v.Enabled = created.UTC(), notAfter.UTC(), enabled
	if err := json.Unmarshal([]byte(tags), &v.Tags); err != nil {
		return Version{}, fmt.Errorf("%w: row %s: tags: %w", secrets.ErrInvalid, row.Row, err)
	}
	return v, nil
}

// tableErrors pairs the errors of a table store with those of package secrets.
var tableErrors = []struct{ from, to error }{
	{tables.ErrNotFound, secrets.ErrNotFound},
	{tables.ErrTooLarge, secrets.ErrInvalid},
	{tables.ErrInvalid, secrets.ErrInvalid},
	{tables.ErrThrottled, secrets.ErrThrottled},
	{tables.ErrOutcomeUnknown, secrets.ErrOutcomeUnknown},
}

// fromTables adds the error of package secrets to a table store's; an error that has one already keeps it.
func fromTables(err error) error {
	if errors.Is(err, ErrNoRequest) {
		return err
	}
	for _, pair := range tableErrors {
		if errors.Is(err, pair.from) {
			return fmt.Errorf("%w: %w", pair.to, err)
		}
	}
	return err
}
