package registry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/tables"
)

// Locks count as held until they expire, and as expired until they are released.
func TestCountLocks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		c := newClock()
		r := open(t, store, table, c)
		count := func(want registry.Locks) {
			t.Helper()
			got, err := r.CountLocks(t.Context())
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v, %s", err, diff)
			}
		}
		count(registry.Locks{})
		for _, id := range []string{"a", "b", "free"} {
			create(t, r, id)
		}
		for id, d := range map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour} {
			if _, err := r.Acquire(t.Context(), id, "job", d); err != nil {
				t.Fatal(err)
			}
		}
		count(registry.Locks{Held: 2})
		c.pass(90 * time.Minute)
		count(registry.Locks{Held: 1, Expired: 1, LongestExpired: 30 * time.Minute})
		c.pass(time.Hour)
		count(registry.Locks{Expired: 2, LongestExpired: 90 * time.Minute})
		if _, err := r.Acquire(t.Context(), "a", "other", time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := r.Release(t.Context(), "b", "job"); err != nil {
			t.Fatal(err)
		}
		count(registry.Locks{Held: 1})
	})
}
