package handler

import (
	"log/slog"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// One of two processes collects, as long as it is asked; when it is not asked any more, the other does.
func TestOneCollects(t *testing.T) {
	t.Parallel()
	store := tables.NewMemory()
	now := time.Now()
	locks := hostlock.Locks{Tables: store, Now: func() time.Time { return now }}
	testenv.Check(t, locks.CreateTable(t.Context()))
	one := &collector{locks: locks, log: slog.New(slog.DiscardHandler), now: locks.Now}
	other := &collector{locks: locks, log: slog.New(slog.DiscardHandler), now: locks.Now}
	for range 10 {
		if !one.Held(t.Context()) || other.Held(t.Context()) {
			t.Fatal("the first to ask does not collect alone")
		}
		now = now.Add(collectorLease / 3)
	}
	now = now.Add(collectorLease)
	if !other.Held(t.Context()) || one.Held(t.Context()) {
		t.Error("the other does not take over")
	}
}
