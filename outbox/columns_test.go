package outbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// The columns of a message are the outbox document's, by name and by type, from its insert through a failure to its
// delivery.
func TestColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver = func(_ context.Context, e Event) error {
		if e.Attempt == 1 {
			return errors.New("no line")
		}
		return nil
	}
	p := w.process(t, nil)
	p.add(t, message1(1))
	row := func() map[string]any {
		e := testenv.Must(w.tables.Get(t.Context(), w.table, tables.Key{Partition: "acme", Row: "m-" + key(1).String()}))(t)
		return e.Properties
	}
	added := row()
	p.sweep(t)
	failed := row()
	w.pass(time.Minute)
	p.sweep(t)
	processed := row()
	for name, want := range map[string][3]any{
		"Id":             {key(1).String(), key(1).String(), key(1).String()},
		"TenantId":       {"acme", "acme", "acme"},
		"EventType":      {"order.created", "order.created", "order.created"},
		"Payload":        {`{"n":1}`, `{"n":1}`, `{"n":1}`},
		"CreatedAt":      {noon(), noon(), noon()},
		"IdempotencyKey": {key(1).String(), key(1).String(), key(1).String()},
		"RetryCount":     {int32(0), int32(1), int32(1)},
		"Error":          {nil, "no line", nil},
		"ProcessedAt":    {nil, nil, noon().Add(time.Minute)},
		"IsProcessed":    {false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Equal(t, "added, failed, processed", want, [3]any{added[name], failed[name], processed[name]})
		})
	}
}

// Messages leave in the order of their addition, a batch at a time.
func TestOldestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.BatchSize, w.options.MaxPerDestination = 2, 1
	p := w.process(t, nil)
	order := []int{3, 0, 4, 1, 2}
	for _, n := range order {
		p.add(t, message1(n))
		w.pass(time.Second)
	}
	batches := 0
	p.o.observe.Claimed = func(n int) {
		if batches++; n > 2 {
			t.Errorf("%d are claimed at once", n)
		}
	}
	p.sweep(t)
	if diff := cmp.Diff(order, numbersOf(w, "")); diff != "" || batches < 3 {
		t.Errorf("in %d batches (-want +got):\n%s", batches, diff)
	}
}
