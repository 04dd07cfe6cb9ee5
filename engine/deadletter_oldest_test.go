package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// The oldest pending dead letter is found: exactly in one query while they are few, and nearly in a bounded number of
// queries when they are many.
func TestOldestPending(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		young   int
		ages    []time.Duration
		queries int
		exact   bool
	}{
		"none":            {0, nil, 1, true},
		"one":             {0, []time.Duration{time.Hour}, 1, true},
		"a page":          {999, []time.Duration{40 * day}, 1, true},
		"more than that":  {1100, []time.Duration{40 * day}, oldestProbes + 1, false},
		"spread":          {1100, []time.Duration{time.Hour, day, 3 * day, 89 * day}, oldestProbes + 1, false},
		"all of one time": {1100, nil, oldestProbes + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(100 * day)
				store, _, letters := newTables(t)
				now, oldest := time.Now(), time.Time{}
				add := func(id string, age time.Duration) {
					at := now.Add(-age).UTC()
					if oldest.IsZero() || at.Before(oldest) {
						oldest = at
					}
					addLetter(t, letters, DeadLetter{Engine: "hmac", MessageID: id, CorrelationID: id, FirstFailureAtUtc: at, LastFailureAtUtc: at, ErrorMessage: "no"})
				}
				for i, age := range test.ages {
					add(fmt.Sprintf("old-%d", i), age)
				}
				for i := range test.young {
					add(fmt.Sprintf("young-%d", i), time.Minute+time.Duration(i)*time.Millisecond)
				}
				store.reset()
				got, err := letters.OldestPending(t.Context(), "hmac")
				off := got.Sub(oldest)
				if err != nil || off < 0 || test.exact && off > 0 || off > now.Sub(oldest)/oldestShare+time.Second || store.queries > test.queries {
					t.Errorf("%v, %v: %v off, %d queries", got, err, off, store.queries)
				}
				if other, err := letters.OldestPending(t.Context(), "tls"); err != nil || !other.IsZero() {
					t.Errorf("of another engine: %v, %v", other, err)
				}
			})
		})
	}
}
