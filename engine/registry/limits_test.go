package registry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/tables"
)

// fill returns a change to a document with a text of n bytes.
func fill(n int) func(*registry.Instance) error {
	return func(i *registry.Instance) error { return i.SetField("more", strings.Repeat("x", n)) }
}

// The largest document that a row can hold is stored and read; one byte more is refused, with the limit, and the
// document stays unchanged.
func TestSizesOfDocuments(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		least, most := 400<<10, 600<<10
		for trial := open(t, tables.NewMemory(), registry.DefaultTable, newClock()); least+1 < most; {
			middle := (least + most) / 2
			create(t, trial, instance+"a")
			if _, err := trial.Update(t.Context(), instance+"a", "", fill(middle)); err == nil {
				least = middle
			} else {
				most = middle
			}
			trial = open(t, tables.NewMemory(), registry.DefaultTable, newClock())
		}
		for n := least - 1; n <= least+1; n++ {
			r := open(t, store, table, newClock())
			id := instance + string(rune('a'+n-least+1))
			before := create(t, r, id)
			_, err := r.Update(t.Context(), id, "", fill(n))
			after, getErr := r.Get(t.Context(), id)
			var text string
			if getErr == nil {
				_, getErr = after.Field("more", &text)
			}
			switch {
			case getErr != nil:
				t.Errorf("%d bytes: %v", n, getErr)
			case n > least:
				if !errors.Is(err, tables.ErrTooLarge) || !strings.Contains(err.Error(), "at most 1048576") || after.Version != before.Version || text != "" {
					t.Errorf("%d bytes: %.200v, then version %d", n, err, after.Version)
				}
			case err != nil || len(text) != n || after.Version != before.Version+1:
				t.Errorf("%d bytes: %d came back, %.200v", n, len(text), err)
			}
		}
	})
}

// Escaped ids have the limit of keys.
func TestSizesOfIDs(t *testing.T) {
	t.Parallel()
	r := open(t, tables.NewMemory(), registry.DefaultTable, newClock())
	for n := 511; n <= 513; n++ {
		id := strings.Repeat("/", 170) + strings.Repeat("i", n-510)
		_, err := r.Create(t.Context(), registry.Instance{InstanceID: id})
		if _, getErr := r.Get(t.Context(), id); (err == nil) != (n <= 512) || (getErr == nil) != (n <= 512) || err != nil && !strings.Contains(err.Error(), "1 to 512 bytes") {
			t.Errorf("%d bytes as a key: %v, %v", n, err, getErr)
		}
	}
}
