package main

import (
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// No message costs more than its budget, and each does all of its work. Time is virtual, so that results that wait to
// be batched wait as long on a slow machine as on a fast one.
func TestBudgets(t *testing.T) {
	t.Parallel()
	activities := map[string]int64{"tx/sequence/1": 1, "tx/sequence/3": 3, "tx/sequence/5": 5, "tx/sequence/100": 100,
		"tx/local/5": 5, "tx/fanout/100": 100, "tx/fanout/1000": 1000, "tx/duplicate": 3}
	for _, m := range messages() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := testenv.Must(newHouse(t.Context()))(t)
				n := testenv.Must(m.count(t.Context(), h))(t)
				if n > m.budget {
					t.Errorf("%d storage transactions, the budget is %d", n, m.budget)
				}
				if got := h.worked.Load(); got != activities[m.name] {
					t.Errorf("%d activities ran, want %d", got, activities[m.name])
				}
				if left, err := h.queues.Length(t.Context(), engineQueue); err != nil || left != 0 {
					t.Errorf("%d messages are left, %v", left, err)
				}
			})
		})
	}
}
