package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// old returns an outbox with rows from before idempotency keys.
func old(t *testing.T, rows int) *outbox.Admin {
	t.Helper()
	store := tables.NewMemory()
	o, err := outbox.New(outbox.Config{Tables: store, Queues: queues.NewMemory(), Blobs: blobs.NewMemory()})
	if err == nil {
		err = o.Create(t.Context())
	}
	for i := range rows {
		if err == nil {
			err = store.Apply(t.Context(), outbox.DefaultTable, tables.Insert(tables.Entity{Key: tables.Key{Partition: "contoso", Row: fmt.Sprint("m-", i)},
				Properties: map[string]any{"Id": fmt.Sprint(i), "TenantId": "contoso", "EventType": "x", "Payload": "{}"}}))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return outbox.NewAdmin(o)
}

func lines(t *testing.T, text string) []progress {
	t.Helper()
	var all []progress
	for line := range strings.Lines(text) {
		var p progress
		testenv.OK(t, json.Unmarshal([]byte(line), &p))
		all = append(all, p)
	}
	return all
}

// breaking fails once, in the middle.
type breaking struct {
	*outbox.Admin
	left int
}

func (b *breaking) Backfill(ctx context.Context, tenant, continuation string, limit int) (outbox.BackfillProgress, error) {
	if b.left--; b.left == 0 {
		return outbox.BackfillProgress{}, errors.New("the network is away")
	}
	return b.Admin.Backfill(ctx, tenant, continuation, limit)
}

func TestBackfillGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	box := &breaking{old(t, 7), 2}
	open := func() (admin, error) { return box, nil }
	var out bytes.Buffer
	err := run(t.Context(), []string{"-tenant", "contoso", "-slice", "3"}, &out, open)
	first := lines(t, out.String())
	if err == nil || len(first) != 1 || first[0].Scanned != 3 || !strings.Contains(err.Error(), first[0].Continuation) {
		t.Fatalf("%v, %+v", err, first)
	}
	out.Reset()
	testenv.OK(t, run(t.Context(), []string{"-tenant", "contoso", "-slice", "3", "-continuation", first[0].Continuation}, &out, open))
	rest := lines(t, out.String())
	if last := rest[len(rest)-1]; !last.Done || last.Assigned != 4 {
		t.Errorf("%+v", last)
	}
	out.Reset()
	testenv.OK(t, run(t.Context(), []string{"-tenant", "contoso"}, &out, open))
	again := lines(t, out.String())
	testenv.Equal(t, "a second time", progress{Tenant: "contoso", Scanned: 7, Done: true}, again[len(again)-1])
}

func TestBackfillNeedsATenant(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-tenant", "x", "more"}, {"-what"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}, func() (admin, error) { return nil, errors.New("opened") }); err == nil || err.Error() == "opened" {
			t.Errorf("%v: %v", args, err)
		}
	}
}
