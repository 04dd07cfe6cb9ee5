package consumers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// versionsKept is the number of versions whose acknowledgements are kept for a consumer.
	versionsKept = 10
	// tries bounds the tries of a change after concurrent changes of the same rows.
	tries = 5
)

// MaxVersion bounds a version, in bytes.
const MaxVersion = 128

// Acknowledgement confirms that a version has arrived at a consumer.
type Acknowledgement struct {
	Target   string
	Version  string
	Consumer string
	// AtUtc is the time of the record, and By its author.
	AtUtc time.Time
	By    string
}

// Properties of a row.
const (
	propTarget   = "Target"
	propVersion  = "Version"
	propConsumer = "Consumer"
	propAt       = "AtUtc"
	propBy       = "By"
)

// Acknowledge records that a version has arrived at a registered consumer, at the time of this call, and returns the
// record: repeating it changes nothing. The errors are ErrInvalid, ErrNotRegistered and ErrUnknownVersion, with the
// remedy, and those of the store and of Config.Knows, after which it can be repeated.
func (c *Consumers) Acknowledge(ctx context.Context, a Acknowledgement) (Acknowledgement, error) {
	if err := c.check(ctx, a); err != nil {
		return Acknowledgement{}, fmt.Errorf("acknowledge %s of %s %.200q by %.80q: %w", clip(a.Version), c.config.Engine, a.Target, a.Consumer, err)
	}
	a.AtUtc = c.config.Now().UTC().Truncate(time.Microsecond) // the precision of the table
	var err error
	for range tries {
		var known []tables.Entity
		if known, err = c.rows(ctx, a.Target); err != nil {
			break
		}
		own := c.entity(a)
		if at := slices.IndexFunc(known, func(e tables.Entity) bool { return e.Row == own.Row }); at >= 0 {
			return acknowledgementOf(known[at]), nil
		}
		err = c.config.Tables.Apply(ctx, Table, append(c.outdated(a, known), tables.Insert(own))...)
		if err == nil {
			return a, nil
		}
		// A concurrent call changed the same rows, or the outcome of this call is unknown: the next read decides.
		if !errors.Is(err, tables.ErrExists) && !errors.Is(err, tables.ErrNotFound) && !errors.Is(err, tables.ErrOutcomeUnknown) {
			break
		}
	}
	return Acknowledgement{}, fmt.Errorf("acknowledge %s of %s %.200q by %s: %w", a.Version, c.config.Engine, a.Target, a.Consumer, err)
}

// check rejects invalid acknowledgements.
func (c *Consumers) check(ctx context.Context, a Acknowledgement) error {
	if a.Target == "" || a.Version == "" || a.Consumer == "" {
		return fmt.Errorf("%w: target, version and consumer are required", ErrInvalid)
	}
	if len(a.Version) > MaxVersion {
		return fmt.Errorf("%w: the version has %d bytes, allowed are %d", ErrInvalid, len(a.Version), MaxVersion)
	}
	t, _ := c.Target(a.Target)
	if !slices.Contains(t.Names, a.Consumer) {
		return fmt.Errorf("%w: register it in ROUNDHOUSE_ROTATIONS (consumers of the target)", ErrNotRegistered)
	}
	known, err := c.config.Knows(ctx, a.Target, a.Version)
	if err == nil && !known {
		err = fmt.Errorf("%w: acknowledge the version that an event has named", ErrUnknownVersion)
	}
	return err
}

// outdated removes superfluous rows after an acknowledgement: the oldest of its consumer, and those of consumers that
// are no longer registered.
func (c *Consumers) outdated(a Acknowledgement, known []tables.Entity) []tables.Op {
	const most = 50 // of 100 operations that a transaction has
	names := c.config.Targets[a.Target].Names
	var ops []tables.Op
	var own []tables.Entity
	for _, e := range known {
		consumer := e.String(propConsumer)
		if consumer == a.Consumer {
			own = append(own, e)
		} else if !slices.Contains(names, consumer) && len(ops) < most {
			ops = append(ops, tables.Delete(e.Key, ""))
		}
	}
	slices.SortFunc(own, func(x, y tables.Entity) int { return x.Time(propAt).Compare(y.Time(propAt)) })
	for len(own) >= versionsKept && len(ops) < most {
		ops = append(ops, tables.Delete(own[0].Key, ""))
		own = own[1:]
	}
	return ops
}

// Acknowledged lists the acknowledgements of the registered consumers of a target, by consumer and then newest first.
// The errors are those of the store.
func (c *Consumers) Acknowledged(ctx context.Context, target string) ([]Acknowledgement, error) {
	rows, err := c.rows(ctx, target)
	if err != nil {
		return nil, err
	}
	t, _ := c.Target(target)
	var all []Acknowledgement
	for _, e := range rows {
		if a := acknowledgementOf(e); slices.Contains(t.Names, a.Consumer) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(x, y Acknowledgement) int {
		if x.Consumer != y.Consumer {
			return strings.Compare(x.Consumer, y.Consumer)
		}
		return y.AtUtc.Compare(x.AtUtc)
	})
	return all, nil
}

// rows reads the partition of a credential.
func (c *Consumers) rows(ctx context.Context, target string) ([]tables.Entity, error) {
	var all []tables.Entity
	for e, err := range tables.All(ctx, c.config.Tables, Table, tables.Query{Partition: c.partition(target)}) {
		if err != nil {
			return nil, fmt.Errorf("read the acknowledgements of %s %.200q: %w", c.config.Engine, target, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (c *Consumers) entity(a Acknowledgement) tables.Entity {
	return tables.Entity{Key: tables.Key{Partition: c.partition(a.Target), Row: tables.EscapeKey(a.Consumer + "/" + a.Version)},
		Properties: map[string]any{propTarget: a.Target, propVersion: a.Version, propConsumer: a.Consumer, propAt: a.AtUtc, propBy: a.By}}
}

func acknowledgementOf(e tables.Entity) Acknowledgement {
	return Acknowledgement{Target: e.String(propTarget), Version: e.String(propVersion), Consumer: e.String(propConsumer),
		AtUtc: e.Time(propAt).UTC(), By: e.String(propBy)}
}

// clip bounds an external text in an error.
func clip(text string) string { return fmt.Sprintf("%.40q", text) }
