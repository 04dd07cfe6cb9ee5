package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// poisonSuffix is what the Functions host adds to a queue's name to name its poison queue.
const poisonSuffix = "-poison"

// SweepPayloads deletes the payloads in blobs that were written before a time and that no message names, of one page of
// the container: a process that died in an Add has left them. next continues behind the page, "" after the last. Before
// is to lie days in the past at least: an Add writes the payload first. What a message names goes with it, by Retention.
func (a *Admin) SweepPayloads(ctx context.Context, before time.Time, from string) (removed int, next string, err error) {
	removed, next, err = blobs.Sweep(ctx, a.o.blobs, a.o.container, before, from, a.o.unreferenced)
	if err != nil {
		return removed, next, fmt.Errorf("retention of payloads: %w", err)
	}
	return removed, next, nil
}

// unreferenced gives those of the payloads that no message names. Those of tenants that are not known stay: an Add registers
// its tenant before it writes.
func (o *Outbox) unreferenced(ctx context.Context, names []string) ([]string, error) {
	byTenant := map[string][]string{}
	for _, name := range names {
		if parts := strings.Split(name, "/"); len(parts) == 3 {
			byTenant[parts[0]] = append(byTenant[parts[0]], name)
		}
	}
	var free []string
	for from, more := "", len(byTenant) > 0; more; more = from != "" {
		list, next, err := o.listTenants(ctx, from, sweepWidth)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			for _, name := range byTenant[digest(t.id)] {
				named, err := o.references(ctx, t.id, name)
				if err != nil {
					return nil, err
				}
				if !named {
					free = append(free, name)
				}
			}
		}
		from = next
	}
	return free, nil
}

// references says whether the message that a payload belongs to names it.
func (o *Outbox) references(ctx context.Context, tenant, blob string) (bool, error) {
	id := strings.Split(blob, "/")[1]
	e, err := o.tables.Get(ctx, o.table, tables.Key{Partition: partition(tenant), Row: messageRow(id)})
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("message of payload %s: %w", blob, err)
	}
	return e.String("PayloadBlob") == blob, nil
}

// SweepData deletes payloads of DataContainer that were written before a time, of one page of it; next continues behind
// the page, "" after the last. Every attempt at a delivery writes the payload again, so an event that is not delivered
// yet keeps its own. Nothing goes while one of the destinations' queues, or a poison queue of theirs, holds a message,
// hidden ones included: it could name a payload, however old. What a receiver has taken out of its queue it has to read
// before that time.
func (a *Admin) SweepData(ctx context.Context, destinations []*Queue, before time.Time, from string) (removed int, next string, err error) {
	removed, next, err = blobs.Sweep(ctx, a.o.blobs, DataContainer, before, from, func(ctx context.Context, names []string) ([]string, error) {
		for _, q := range destinations {
			for _, queue := range []string{q.queue, q.queue + poisonSuffix} {
				n, err := q.queues.Length(ctx, queue)
				if err != nil && !errors.Is(err, queues.ErrNotFound) {
					return nil, err
				}
				if n > 0 {
					a.o.logger.InfoContext(ctx, "payloads of events are kept: a queue holds messages", "queue", queue, "messages", n, "blobs", len(names))
					return nil, nil
				}
			}
		}
		return slices.DeleteFunc(names, func(name string) bool { return !isDataName(name) }), nil
	})
	if err != nil {
		return removed, next, fmt.Errorf("retention of payloads that went out by a queue: %w", err)
	}
	return removed, next, nil
}
