package spn_test

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/spn"
)

// A run that is canceled during the overlap does not retire the older password: consumers may still use it.
func TestACanceledOverlapRemovesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		older := rotated(t, w, "2026-10")
		time.AfterFunc(time.Hour, func() {
			if err := w.Runtime().Cancel(t.Context(), "spn-c1", "not now"); err != nil {
				t.Error(err)
			}
		})
		w.run(message)
		if live := w.graph.Live(application); live[older.KeyID] == "" || len(w.ours()) != 2 || len(w.deadLetters()) != 0 {
			t.Errorf("passwords %v, dead letters %+v", live, w.deadLetters())
		}
	})
}

// A password that is lost before the login accepts it is replaced when the message is retried.
func TestTheNextAttemptDoesNotGoOnWithALostPassword(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.graph.AcceptedAfter = 8 * time.Minute
		time.AfterFunc(3*time.Minute, func() {
			for _, v := range w.versions(t) {
				if err := w.vault.Disable(t.Context(), v.Name, v.Version); err != nil {
					t.Error(err)
				}
			}
			w.graph.AcceptedAfter = 18 * time.Second
		})
		w.run(message)
		w.run(message) // as the retry of a dead letter does, if one exists
		runs := 0
		for _, e := range w.history() {
			if e.RunStatus == engine.StatusSucceeded {
				runs++
			}
		}
		ours := w.ours()
		if runs != 1 || len(ours) != 1 {
			t.Fatalf("%d runs succeeded, passwords %v, dead letters %+v", runs, ours, w.deadLetters())
		}
		for _, v := range w.versions(t) {
			if v.Enabled != (v.Tags[spn.TagKey] == ours[0]) {
				t.Errorf("version %+v; the application's password is %s", v, ours[0])
			}
		}
	})
}
