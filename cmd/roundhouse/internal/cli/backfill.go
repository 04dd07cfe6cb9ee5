package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// backfilled is the result of a backfill as JSON.
type backfilled struct {
	Tenants  int `json:"tenants"`
	Scanned  int `json:"scanned"`
	Assigned int `json:"assigned"`
	Indexed  int `json:"indexed"`
}

// backfill selects the tenant and the first row of a backfill.
type backfill struct {
	tenant, from string
	slice        int
}

func (a *app) backfillCommand() *cobra.Command {
	var b backfill
	c := a.command(spec{
		use: "backfill [flags]", short: "Give rows from before idempotency keys a key and index rows",
		long: `Give the rows of the outbox from before idempotency keys what new rows have: a
key, a schema version and index rows. It works in slices, next to everything
else, on all tenants with rows or on one, and goes straight to storage. An
interrupted backfill is continued with --continue, or is run again: that changes
nothing that is done. The last line shows "assigned": 0 and "indexed": 0 when no
row was left.`,
		example: "  roundhouse outbox backfill\n  roundhouse outbox backfill --tenant contoso\n  roundhouse outbox backfill --continue contoso/m-4711",
		run:     func(ctx context.Context, _ []string) error { return a.backfill(ctx, b) },
	})
	f := c.Flags()
	f.StringVar(&b.tenant, "tenant", "", "only the rows of this `tenant`")
	f.StringVar(&b.from, "continue", "", "the `place` where an interrupted backfill stopped, as it said")
	f.IntVar(&b.slice, "slice", outbox.MaxLimit, "rows of a slice")
	return c
}

func (a *app) backfill(ctx context.Context, b backfill) error {
	first, row, after := b.tenant, "", ""
	if b.from != "" {
		escaped, rest, ok := strings.Cut(b.from, "/")
		tenant, err := tables.UnescapeKey(escaped)
		if !ok || err != nil || tenant == "" || b.tenant != "" && b.tenant != tenant {
			return Mark(ErrUsage, fmt.Errorf("--continue %s: use the place that the interrupted backfill showed", printable(b.from)))
		}
		first, row = tenant, rest
	}
	if b.slice < 1 || b.slice > outbox.MaxLimit {
		return Mark(ErrUsage, fmt.Errorf("--slice %d: use 1 to %d", b.slice, outbox.MaxLimit))
	}
	s, err := a.stores()
	if err != nil {
		return err
	}
	o, err := outbox.New(outbox.Config{Tables: s.Tables, Queues: s.Queues, Blobs: s.Blobs, Now: a.Now})
	if err != nil {
		return err
	}
	box := outbox.NewAdmin(o)
	var total backfilled
	err = a.recorded(ctx, s, audit.Entry{Action: "backfill", Target: "outbox", TenantID: b.tenant}, func() (string, error) {
		for tenant, ok := first, first != ""; ; ok = false {
			if !ok {
				if tenant, ok, err = a.nextTenant(ctx, box, after); err != nil || !ok {
					break
				}
			}
			if err = a.backfillTenant(ctx, box, tenant, row, b.slice, &total); err != nil || b.tenant != "" {
				break
			}
			after, row = tenant, ""
		}
		return fmt.Sprintf("%d keys assigned, %d rows indexed", total.Assigned, total.Indexed), err
	})
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.printValue(total)
	}
	fmt.Fprintf(a.Stdout, "%d tenants, %d rows: %d keys assigned, %d rows indexed.\n", total.Tenants, total.Scanned, total.Assigned, total.Indexed)
	return nil
}

// nextTenant returns the tenant after another one.
func (a *app) nextTenant(ctx context.Context, box *outbox.Admin, after string) (tenant string, ok bool, err error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return box.NextTenant(ctx, after)
}

// backfillTenant backfills one tenant from a row on. Its error has the row at which to continue.
func (a *app) backfillTenant(ctx context.Context, box *outbox.Admin, tenant, row string, slice int, total *backfilled) error {
	total.Tenants++
	for {
		bounded, cancel := a.bounded(ctx)
		p, err := box.Backfill(bounded, tenant, row, slice)
		cancel()
		if err != nil {
			return fmt.Errorf("%w\ncontinue with: roundhouse outbox backfill --continue %q", err, tables.EscapeKey(tenant)+"/"+row)
		}
		total.Scanned, total.Assigned, total.Indexed = total.Scanned+p.Scanned, total.Assigned+p.Assigned, total.Indexed+p.Indexed
		a.note("%s: %d rows, %d keys assigned, %d rows indexed in all.", printable(tenant), total.Scanned, total.Assigned, total.Indexed)
		if row = p.Continuation; row == "" {
			return nil
		}
	}
}
