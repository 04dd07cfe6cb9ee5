package spn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// after changes the world after some time, while a run is in progress.
func after(t *testing.T, d time.Duration, do func()) {
	t.Helper()
	timer := time.AfterFunc(d, do)
	t.Cleanup(func() { timer.Stop() })
}

// enabled reports whether a version is enabled.
func (w *world) enabled(t *testing.T, version string) bool {
	t.Helper()
	for _, v := range w.versions(t) {
		if v.Version == version {
			return v.Enabled
		}
	}
	return false
}

// enable enables a version again, as an operator does in the vault.
func (w *world) enable(t *testing.T, made spn.RotateOutput) {
	t.Helper()
	key := tables.Key{Partition: tables.EscapeKey(strings.ToLower(made.SecretName)), Row: made.Version}
	row, err := w.Tables.Get(t.Context(), secrets.DevelopmentTable, key)
	if err != nil {
		t.Fatal(err)
	}
	row.Properties["Enabled"], row.Properties["UpdatedAtUtc"] = true, time.Now().UTC().Truncate(time.Second)
	if err := w.Tables.Apply(t.Context(), secrets.DevelopmentTable, tables.Replace(row)); err != nil {
		t.Fatal(err)
	}
}

// open counts the open human tasks.
func (w *world) open(t *testing.T) (open int) {
	t.Helper()
	page, err := w.Runtime().Tasks().List(t.Context(), tasks.Filter{}, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range page.Tasks {
		if task.Open() {
			open++
		}
	}
	return open
}

// The version of the older password is disabled at the end of the overlap, with an event; the password is removed
// later.
func TestTwoStages(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		older := rotated(t, w, "2026-10")
		began := time.Now()
		after(t, overlap-time.Minute, func() {
			if !w.enabled(t, older.Version) {
				t.Error("the version was disabled within the overlap")
			}
		})
		after(t, overlap+removeAfter-time.Minute, func() {
			if w.enabled(t, older.Version) || w.graph.Live(application)[older.KeyID] == "" {
				t.Errorf("%s after its beginning: the version is enabled: %t, passwords %v", time.Since(began), w.enabled(t, older.Version), w.graph.Live(application))
			}
		})
		w.run(message)
		w.checkSettled(t)
		if len(w.Published()) != 2 || w.Published()[1].Type != spn.EventRetiring || !strings.Contains(string(w.Published()[1].Payload), older.KeyID) {
			t.Errorf("events: %+v", w.Published())
		}
	})
}

// While the receiver of events is down, nothing is disabled or removed. The run is dead-lettered; its retry continues
// with the same password, and succeeds when the receiver is back.
func TestNothingIsRemovedWhileTheReceiverIsDown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		older := rotated(t, w, "2026-10")
		w.outbox.Down = true
		w.run(message)
		dead := w.deadLetters()
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonNotAcknowledged || !strings.Contains(dead[0].ErrorMessage, "receiver of event") {
			t.Fatalf("dead letters: %+v", dead)
		}
		if !w.enabled(t, older.Version) || len(w.ours()) != 2 {
			t.Errorf("the older version is enabled: %t, passwords %v", w.enabled(t, older.Version), w.ours())
		}
		made := w.graph.Count("/addPassword")
		after(t, overlap+24*time.Hour, func() {
			if !w.enabled(t, older.Version) || len(w.ours()) != 2 {
				t.Errorf("after a retry, the older version is enabled: %t, passwords %v", w.enabled(t, older.Version), w.ours())
			}
			w.outbox.Recover()
		})
		w.run(message)
		if live := w.ours(); len(live) != 1 || live[0] == older.KeyID || w.enabled(t, older.Version) || w.graph.Count("/addPassword") != made || len(w.deadLetters()) != 1 {
			t.Errorf("passwords %v, dead letters %+v", live, w.deadLetters())
		}
	})
}

// A run whose password a later rotation has replaced leaves the rest to that rotation, also on a retry: it makes no
// other password.
func TestALaterRotationSeesToTheRest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		rotated(t, w, "2026-10")
		w.outbox.Down = true
		w.run(message) // ends in a dead letter
		w.outbox.Down = false
		w.run(strings.NewReplacer("c1", "c2", slot, "2026-12").Replace(message))
		made, left := w.graph.Count("/addPassword"), w.ours()
		if len(left) != 1 {
			t.Errorf("passwords %v", left)
		}
		began := time.Now()
		w.run(message)
		if w.graph.Count("/addPassword") != made || cmp.Diff(left, w.ours()) != "" || time.Since(began) > time.Hour {
			t.Errorf("passwords %v after %v, want %v", w.ours(), time.Since(began), left)
		}
		if h := w.history(); h[len(h)-1].RunStatus != engine.StatusSucceeded {
			t.Errorf("history: %+v", h)
		}
	})
}

// A consumer that still needs a password enables its version again: it is kept, and the run is dead-lettered. Its
// retry continues.
func TestAnObjectionKeepsThePassword(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		older := rotated(t, w, "2026-10")
		after(t, overlap+time.Hour, func() { w.enable(t, older) })
		w.run(message)
		dead := w.deadLetters()
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonStillInUse || !strings.Contains(dead[0].ErrorMessage, older.KeyID+" (version "+older.Version+")") {
			t.Fatalf("dead letters: %+v", dead)
		}
		if w.graph.Live(application)[older.KeyID] == "" || !w.enabled(t, older.Version) {
			t.Errorf("passwords %v", w.graph.Live(application))
		}
		w.run(message)
		if w.graph.Live(application)[older.KeyID] != "" || w.enabled(t, older.Version) || len(w.deadLetters()) != 1 {
			t.Errorf("after a retry: passwords %v", w.graph.Live(application))
		}
	})
}

// Registered consumers have to acknowledge the version, too.
func TestRegisteredConsumers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.names = []string{"gateway"}
		w.Restart(nil)
		older := rotated(t, w, "2026-10")
		after(t, overlap+10*time.Hour, func() {
			if !w.enabled(t, older.Version) {
				t.Error("it was disabled before anybody acknowledged the new one")
			}
			versions := w.versions(t)
			c, err := consumers.New(consumers.Config{Engine: spn.Engine, Tables: w.Tables, Outbox: w.outbox.Admin(),
				Targets: map[string]consumers.Target{application: {Names: w.names}}, Knows: w.steps(t).Knows})
			if err != nil {
				t.Fatal(err)
			}
			a := consumers.Acknowledgement{Target: application, Version: versions[len(versions)-1].Version, Consumer: "gateway"}
			if open := w.open(t); open != 1 {
				t.Errorf("%d tasks are open while it waits", open)
			}
			if _, err := c.Acknowledge(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
		after(t, overlap+18*time.Hour, func() {
			if open := w.open(t); open != 0 || w.enabled(t, older.Version) || w.graph.Live(application)[older.KeyID] == "" {
				t.Errorf("in the second stage %d tasks are open, passwords %v", open, w.graph.Live(application))
			}
		})
		w.run(message)
		w.checkSettled(t)
	})
}
