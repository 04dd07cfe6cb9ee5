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

// poisonSuffix is the Functions host's suffix for poison queues.
const poisonSuffix = "-poison"

// SweepPayloads examines one page of the container and deletes the unreferenced payloads that were written before a
// time; a process that died in an Add has left them. next continues after the page and is "" after the last one. before
// must be at least days in the past, because an Add writes the payload first. Retention deletes the payload of a
// message with the message.
func (a *Admin) SweepPayloads(ctx context.Context, before time.Time, from string) (removed int, next string, err error) {
	removed, next, err = blobs.Sweep(ctx, a.o.blobs, a.o.container, before, from, a.o.unreferenced)
	if err != nil {
		return removed, next, fmt.Errorf("retention of payloads: %w", err)
	}
	return removed, next, nil
}

// unreferenced returns the payloads that no message names. Payloads of unknown tenants are kept, because an Add
// registers its tenant before it writes.
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

// references reports whether the message of a payload names it.
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

// SweepData examines one page of DataContainer and deletes the payloads that were written before a time; next continues
// after the page and is "" after the last one. Every attempt at a delivery writes the payload again, so an undelivered
// event keeps its payload. Nothing is deleted while a queue of a destination, or its poison queue, holds a message,
// hidden ones included, because that could name a payload of any age. A receiver that has taken a message out of its
// queue has to read the payload before that time.
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
