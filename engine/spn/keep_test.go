package spn_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/services/secrets"
)

// When the new password is missing at the end of the overlap, the older one is kept.
func TestNothingIsRemovedWithoutReplacement(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		older := rotated(t, w, "2026-10")
		steps := w.steps(t)
		made := rotated(t, w, slot)
		retire := replaces(made)
		w.graph.Remove(application, made.KeyID)
		if _, err := steps.Retire(t.Context(), retire); err == nil || errors.Is(err, spn.ErrKeyMissing) {
			t.Errorf("Retire, when a list may lag = %v, want an error that another attempt can mend", err)
		}
		time.Sleep(time.Hour)
		if _, err := steps.Retire(t.Context(), retire); !errors.Is(err, spn.ErrKeyMissing) {
			t.Errorf("Retire = %v, want ErrKeyMissing", err)
		}
		if err := w.vault.Disable(t.Context(), made.SecretName, made.Version); err != nil {
			t.Fatal(err)
		}
		if _, err := steps.Retire(t.Context(), retire); !errors.Is(err, spn.ErrKeyMissing) {
			t.Errorf("Retire = %v, want ErrKeyMissing", err)
		}
		if live := w.graph.Live(application); live[older.KeyID] == "" || live[w.foreign] == "" {
			t.Errorf("passwords: %v", live)
		}
		fmt.Fprintln(w, retire)
	})
}

// Two rotations of one application overlap: the earlier one, which ends first, does not touch the later one.
func TestALaterRotationStays(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		earlier, later := rotated(t, w, "a"), rotated(t, w, "b")
		steps := w.steps(t)
		for _, made := range []spn.RotateOutput{earlier, later} {
			retired(t, steps, made)
			fmt.Fprintln(w, made, application)
			live := w.graph.Live(application)
			if live[later.KeyID] == "" || (live[earlier.KeyID] == "") != (made == later) {
				t.Errorf("after %s: %v", made.Slot, live)
			}
		}
	})
}

func replaces(made spn.RotateOutput) spn.RetireInput {
	return spn.RetireInput{ApplicationID: application, Slot: made.Slot, SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID}
}

// retired runs the steps that follow the overlap, by an operator's decision.
func retired(t *testing.T, steps *spn.Steps, made spn.RotateOutput) {
	t.Helper()
	if _, err := steps.Confirm(t.Context(), spn.ConfirmInput{RetireInput: replaces(made)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(removeAfter)
	if _, err := steps.Remove(t.Context(), replaces(made)); err != nil {
		t.Fatal(err)
	}
}

// A young password of the slot without a version may be another process's work: it is kept, and none is added.
func TestTwoAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		orphaned(t, w)
		time.Sleep(time.Minute)
		_, err := w.steps(t).Rotate(t.Context(), spn.RotateInput{ApplicationID: application, Slot: slot, JobID: "j"})
		if !errors.Is(err, spn.ErrInFlight) || len(w.ours()) != 1 || w.graph.Count("/addPassword") != 0 {
			t.Errorf("Rotate = %v, passwords %v", err, w.ours())
		}
		fmt.Fprintln(w, err, application)
	})
}

// A secret store that refuses a value leaves no password behind.
func TestRefusedByTheSecretStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		plan := &faults.Plan{Refuse: func(c faults.Call) bool { return c.Target == secrets.DevelopmentTable && c.Operation == "Apply" }}
		_, err := w.stepsOver(t, w.Restart(plan).Stores).Rotate(t.Context(), spn.RotateInput{ApplicationID: application, Slot: slot, JobID: "j"})
		if !errors.Is(err, secrets.ErrThrottled) || len(w.ours()) != 0 || w.graph.Count("/addPassword") != 1 {
			t.Errorf("Rotate = %v, passwords %v", err, w.ours())
		}
		fmt.Fprintln(w, err, application)
	})
}

// A password of an earlier attempt is found before lists show it.
func TestRotateFindsWhatIsNotListedYet(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.graph.ListedAfter = 5 * time.Minute
		first, again := rotated(t, w, slot), rotated(t, w, slot)
		if first != again || w.graph.Count("/addPassword") != 1 {
			t.Errorf("Rotate = %+v, then %+v", first, again)
		}
		fmt.Fprintln(w, first, application)
	})
}

// Retire removes the passwords without a stored value, but not one that could be on its way into the secret store.
func TestRetireOrphans(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		mark := "roundhouse/" + owner + "/"
		earlier := w.graph.Add(application, mark+"2026-09")
		time.Sleep(time.Minute)
		made := rotated(t, w, slot)
		sameSlot, later := w.graph.Add(application, mark+slot), w.graph.Add(application, mark+"2026-12")
		time.Sleep(time.Hour)
		young := w.graph.Add(application, mark+slot)
		time.Sleep(time.Minute)
		steps := w.steps(t)
		if out, err := steps.Confirm(t.Context(), spn.ConfirmInput{RetireInput: replaces(made)}); err != nil || len(out.Passwords) != 2 {
			t.Errorf("Confirm = %+v, %v", out, err)
		}
		if _, err := steps.Remove(t.Context(), replaces(made)); err != nil {
			t.Error(err)
		}
		live := w.graph.Live(application)
		for id, stays := range map[string]bool{earlier: false, sameSlot: false, later: true, young: true, made.KeyID: true, w.foreign: true} {
			if (live[id] != "") != stays {
				t.Errorf("%s: stays %t, want %t (%v)", id, live[id] != "", stays, live)
			}
		}
		fmt.Fprintln(w, made, application)
	})
}
