package orchestrator

import (
	"testing"
	"time"
)

// The orchestrations of a lost node are found by its name, with encrypted rows, too.
func TestTakeOverOfEncryptedRows(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	w.encrypt(t)
	orchestrators, activities := sleeper(l, time.Hour)
	lost := w.signalling(t, nil, orchestrators, activities)
	mustRun(t, lost, startOf("a", 1))
	found := -1
	err := w.signalling(t, nil, orchestrators, activities).TakeOver(t.Context(), Lost{Node: lost.Node(), Since: time.Now().Add(-time.Hour)},
		func(orchestrations int) { found = orchestrations })
	if err != nil || found != 1 {
		t.Errorf("%d taken over, want 1: %v", found, err)
	}
}
