package hmac_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
)

// remembered returns the slots that have rows.
func (w *world) remembered(t testing.TB) map[string]bool {
	t.Helper()
	slots := map[string]bool{}
	for _, row := range w.rows(t, hmac.SlotsTable) {
		slots[row.String("Slot")] = true
	}
	return slots
}

// An instance that is rotated for ever has a bounded number of rows, and its kept slots stay decided.
func TestSlotsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const slots, every = 50, 10 * day
	most := 0
	var told []hmac.NotifyOutput
	for n := range slots {
		w.move(start.Add(time.Duration(n) * every))
		told = append(told, w.turn(t, fmt.Sprint(n)))
		w.move(w.clock().Add(day + time.Minute))
		w.retire(t, told[n])
		most = max(most, len(w.remembered(t)))
	}
	if keep := int(hmac.SlotKeep / every); most < keep || most > keep+3 {
		t.Errorf("up to %d rows, of %d slots, one every %v", most, slots, every)
	}
	if got := w.decided(t, fmt.Sprint(slots-30)); got.Version != told[slots-30].Version {
		t.Error("a slot that is remembered was decided anew")
	}
}

// Only slots that ended long ago are removed: not the newest, and no enabled ones.
func TestSlotsThatAreNotForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turn(t, "enabled")
	w.decided(t, "pending")
	w.move(start.Add(time.Hour))
	old := w.turn(t, "old")
	w.move(start.Add(3 * time.Hour))
	w.turn(t, "next")
	w.move(start.Add(hmac.SlotKeep + 30*24*time.Hour))
	last := w.turn(t, "last")
	if err := w.vault.Disable(t.Context(), old.SecretName, old.Version); err != nil {
		t.Fatal(err)
	}
	w.move(last.GraceEndsAtUtc)
	w.retire(t, last)
	// The version that this one has disabled was enabled when it read the slots.
	if diff := cmp.Diff(set("enabled", "pending", "next", "last"), w.remembered(t)); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	w.retire(t, last)
	if diff := cmp.Diff(set("pending", "last"), w.remembered(t)); diff != "" {
		t.Errorf("remembered later (-want +got):\n%s", diff)
	}
	w.move(w.clock().Add(2 * hmac.SlotKeep))
	w.retire(t, last)
	if diff := cmp.Diff(set("pending", "last"), w.remembered(t)); diff != "" {
		t.Errorf("remembered without another rotation (-want +got):\n%s", diff)
	}
}
