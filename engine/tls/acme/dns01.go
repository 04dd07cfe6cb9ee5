package acme

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/services/dns"
	"github.com/vibedata/roundhouse/tables"
)

// Properties of a row of tls.ChallengesTable, in addition to those of HTTP01.
const (
	propZone  = "Zone"
	propName  = "Name"
	propValue = "Value"
)

const (
	// recordLeft is the age after which a record counts as left by a dead process. A step that presents one takes
	// minutes.
	recordLeft = 24 * time.Hour
	// recordKeep is the retention of the row of a record in a zone that is no longer configured.
	recordKeep = 30 * 24 * time.Hour
)

// DNS01 answers dns-01 challenges by TXT records. Before it creates one, it records its place in a table, so that the
// record is removed even if the process dies. Records of several orders for one name coexist.
type DNS01 struct {
	// Tables holds tls.ChallengesTable. Required.
	Tables tables.Store
	// Zones are the zones of the records. Required.
	Zones *dns.Zones
	// Now is the clock, time.Now when nil.
	Now func() time.Time
}

var _ Solver = DNS01{}

// Type implements Solver.
func (DNS01) Type() string { return acme.ChallengeTypeDNS01 }

// Present implements Solver. It returns when the name servers of the zone have the record.
func (d DNS01) Present(ctx context.Context, c Challenge) error {
	err := d.present(ctx, c)
	if errors.Is(err, dns.ErrNoZone) || errors.Is(err, dns.ErrRefused) {
		return fmt.Errorf("%w: %w", tls.ErrRefused, err)
	}
	return err
}

func (d DNS01) present(ctx context.Context, c Challenge) error {
	at, err := d.Zones.Find(ctx, c.RecordName)
	if err != nil {
		return err
	}
	err = d.Tables.Apply(ctx, tls.ChallengesTable, tables.Upsert(tables.Entity{Key: recordKey(c), Properties: map[string]any{
		propZone: at.Zone, propName: at.Name, propValue: c.RecordValue, propDomain: c.Domain, propPresented: d.now().UTC()}}))
	if err != nil {
		return fmt.Errorf("note the record %s: %w", at.Name, err)
	}
	if err := d.Zones.Add(ctx, at, c.RecordValue); err != nil {
		return err
	}
	return d.Zones.Await(ctx, at, c.RecordValue)
}

func (d DNS01) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// CleanUp implements Solver.
func (d DNS01) CleanUp(ctx context.Context, c Challenge) error {
	row, err := d.Tables.Get(ctx, tls.ChallengesTable, recordKey(c))
	if errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up the record of %s: %w", c.Domain, err)
	}
	return d.remove(ctx, row)
}

// Tidy implements Solver.
func (d DNS01) Tidy(ctx context.Context) error {
	var errs []error
	for row, err := range tables.All(ctx, d.Tables, tls.ChallengesTable, tables.Query{Partition: acme.ChallengeTypeDNS01}) {
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list records of challenges: %w", err))...)
		}
		if row.Time(propPresented).Before(d.now().Add(-recordLeft)) {
			errs = append(errs, d.remove(ctx, row))
		}
	}
	return errors.Join(errs...)
}

// remove removes a record, and then its row.
func (d DNS01) remove(ctx context.Context, row tables.Entity) error {
	zone, _ := row.Properties[propZone].(string)
	name, _ := row.Properties[propName].(string)
	value, _ := row.Properties[propValue].(string)
	err := d.Zones.Remove(ctx, dns.Place{Zone: zone, Name: name}, value)
	if err != nil && (!errors.Is(err, dns.ErrNoZone) || row.Time(propPresented).After(d.now().Add(-recordKeep))) {
		return err
	}
	err = d.Tables.Apply(ctx, tls.ChallengesTable, tables.Delete(row.Key, row.ETag))
	if err == nil || errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition) {
		return nil // another process was faster, or has presented it again
	}
	return fmt.Errorf("forget the record %s: %w", name, err)
}

// recordKey returns the key of a record: of one domain and one order.
func recordKey(c Challenge) tables.Key {
	sum := sha256.Sum256([]byte(c.RecordName + " " + c.RecordValue))
	return tables.Key{Partition: acme.ChallengeTypeDNS01, Row: hex.EncodeToString(sum[:])}
}
