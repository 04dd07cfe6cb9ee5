package outbox

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// legacy writes a row like programs from before idempotency keys.
func (w *world) legacy(t testing.TB, tenant, id string, change map[string]any) {
	t.Helper()
	props := map[string]any{
		"Id": id, "TenantId": tenant, "Name": "order.created", "Payload": `{"old":true}`, "CreatedAt": noon().Add(-time.Hour),
		"RetryCount": int32(0), "IsProcessed": false, "Extra": "kept",
	}
	maps.Copy(props, change)
	e := tables.Entity{Key: tables.Key{Partition: partition(tenant), Row: messageRow(id)}, Properties: props}
	testenv.OK(t, w.tables.Apply(t.Context(), w.table, tables.Insert(e)))
}

func TestMigration(t *testing.T) {
	t.Parallel()
	integration(t, "Migration_Adds_Columns", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		w.legacy(t, "acme", "1", nil)
		testenv.Must(p.admin.Backfill(t.Context(), "acme", "", 0))(t)
		p.sweep(t)
		e := testenv.Must(w.tables.Get(t.Context(), w.table, tables.Key{Partition: "acme", Row: "m-1"}))(t)
		if e.String("IdempotencyKey") == "" || e.Time("ProcessedAt").IsZero() || e.Int("SchemaVersion") != schemaVersion || e.String("Extra") != "kept" {
			t.Errorf("%+v", e.Properties)
		}
	})
	integration(t, "Migration_Backfills_IdempotencyKey", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		plain := uuid.NewString()
		w.legacy(t, "acme", plain, nil)
		for i := range 100 {
			change := map[string]any{}
			switch i % 4 {
			case 1:
				change = map[string]any{"IsProcessed": true}
			case 2:
				change = map[string]any{"ProcessedAt": noon().Add(-time.Minute)}
			case 3:
				change = map[string]any{"RetryCount": int32(2), "Error": "no line"}
			}
			w.legacy(t, "acme", fmt.Sprint("old/", i), change)
		}
		p.add(t, message1(1))
		var total BackfillProgress
		for slices := 1; ; slices++ {
			// Each slice runs in a new process that knows only the continuation.
			s := testenv.Must(w.process(t, nil).admin.Backfill(t.Context(), "acme", total.Continuation, 30))(t)
			total = BackfillProgress{total.Scanned + s.Scanned, total.Assigned + s.Assigned, total.Indexed + s.Indexed, s.Continuation}
			if s.Continuation == "" {
				if slices != 4 {
					t.Errorf("%d slices", slices)
				}
				break
			}
		}
		testenv.Equal(t, "", BackfillProgress{Scanned: 102, Assigned: 101, Indexed: 101}, total)
		testenv.Equal(t, "", map[Status]int{StatusPending: 52, StatusProcessed: 50}, w.check(t, "acme"))
		if got := p.get(t, "acme", plain); got.IdempotencyKey.String() != plain {
			t.Errorf("a row whose id is a UUID has the key %s", got.IdempotencyKey)
		}
		again, err := p.admin.Backfill(t.Context(), "acme", "", 0)
		if err != nil || again.Indexed != 0 || again.Scanned != 102 {
			t.Errorf("again: %+v, %v", again, err)
		}
		p.sweep(t)
		testenv.Equal(t, "", map[Status]int{StatusProcessed: 102}, w.check(t, "acme"))
		for _, e := range w.events() {
			if r := p.get(t, "acme", e.ID); r.IdempotencyKey != e.Key || e.Key == uuid.Nil || e.Type != "order.created" {
				t.Errorf("delivered %+v, stored %+v", e, r)
			}
		}
	})
	t.Run("a sweep takes rows without key along", func(t *testing.T) {
		w, p := start(t)
		w.legacy(t, "acme", "old", nil)
		p.add(t, message1(1))
		if r := p.sweep(t); r.Delivered != 2 {
			t.Errorf("%+v", r)
		}
		page, err := p.admin.List(t.Context(), Filter{Status: StatusProcessed})
		if err != nil || len(page.Records) != 2 {
			t.Errorf("%+v, %v", page, err)
		}
	})
	t.Run("a row gets the same key each time", func(t *testing.T) {
		t.Parallel()
		backfilled := func(tenant string) uuid.UUID {
			w := newWorld(t)
			w.legacy(t, tenant, "old", nil)
			p := w.process(t, nil)
			testenv.Must(p.admin.Backfill(t.Context(), tenant, "", 0))(t)
			return p.get(t, tenant, "old").IdempotencyKey
		}
		if first, again, other := backfilled("acme"), backfilled("acme"), backfilled("contoso"); first != again || first == other || first == uuid.Nil {
			t.Errorf("%s, then %s; of another tenant %s", first, again, other)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		p := newWorld(t).process(t, nil)
		for _, c := range []struct {
			tenant, continuation string
			limit                int
			want                 error
		}{{"", "", 0, ErrInvalid}, {"a", "", 501, ErrInvalid}, {"a", "p-1", 0, ErrToken}, {"a", "m-\x00", 0, ErrToken}} {
			if _, err := p.admin.Backfill(t.Context(), c.tenant, c.continuation, c.limit); !errors.Is(err, c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
