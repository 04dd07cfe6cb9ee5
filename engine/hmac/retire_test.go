package hmac_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/services/secrets"
)

// move sets the world's clock.
func (w *world) move(at time.Time) { w.clock = func() time.Time { return at } }

// turn rotates and announces a slot, as a process of its own.
func (w *world) turn(t testing.TB, slot string) hmac.NotifyOutput {
	t.Helper()
	return w.tell(t, w.decided(t, slot))
}

func (w *world) tell(t testing.TB, made hmac.RotateOutput) hmac.NotifyOutput {
	t.Helper()
	told, err := w.steps(t).Notify(t.Context(), notice(made))
	if err != nil {
		t.Fatal(err)
	}
	return told
}

func notice(made hmac.RotateOutput) hmac.NotifyInput {
	return hmac.NotifyInput{InstanceID: instance, TenantID: "t1", SecretName: made.SecretName, Version: made.Version}
}

// retire runs the step that follows the grace.
func (w *world) retire(t testing.TB, told hmac.NotifyOutput) []string {
	t.Helper()
	out, err := w.steps(t).Retire(t.Context(), retirement(told))
	if err != nil {
		t.Fatal(err)
	}
	return out.Disabled
}

func retirement(told hmac.NotifyOutput) hmac.RetireInput {
	return hmac.RetireInput{InstanceID: told.InstanceID, SecretName: told.SecretName, Version: told.Version, GraceEndsAtUtc: told.GraceEndsAtUtc}
}

// usable returns the enabled versions of the instance.
func (w *world) usable(t testing.TB) map[string]bool {
	t.Helper()
	versions, err := w.vault.Versions(t.Context(), secrets.Name(hmac.Engine, instance))
	if err != nil {
		t.Fatal(err)
	}
	usable := map[string]bool{}
	for _, v := range versions {
		if v.Enabled {
			usable[v.Version] = true
		}
	}
	return usable
}

// byHand adds a version that no rotation made.
func (w *world) byHand(t testing.TB) string {
	t.Helper()
	v, err := w.vault.Add(t.Context(), secrets.Name(hmac.Engine, instance), make([]byte, hmac.KeySize), nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.Version
}

func set(versions ...string) map[string]bool {
	all := map[string]bool{}
	for _, v := range versions {
		all[v] = true
	}
	return all
}

func TestRetireWaitsForTheGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign, a := w.byHand(t), w.turn(t, "a")
	w.move(start.Add(48 * time.Hour))
	b := w.turn(t, "b")
	early := retirement(b)
	early.GraceEndsAtUtc = time.Time{}
	for _, now := range []time.Time{w.clock(), b.GraceEndsAtUtc.Add(-time.Second)} {
		w.move(now)
		if out, err := w.steps(t).Retire(t.Context(), early); err != nil || len(out.Disabled) != 0 {
			t.Errorf("Retire at %v = %v, %v, before the grace ends at %v", now, out, err, b.GraceEndsAtUtc)
		}
	}
	// The clock of the retiring process may lag behind that of the waiting one.
	if got := w.retire(t, b); len(got) != 1 || got[0] != a.Version {
		t.Errorf("Retire disabled %v, want %s", got, a.Version)
	}
	if got := w.retire(t, b); len(got) != 0 {
		t.Errorf("Retire again disabled %v", got)
	}
	if diff := cmp.Diff(set(foreign, b.Version), w.usable(t)); diff != "" {
		t.Errorf("usable (-want +got):\n%s", diff)
	}
}

func TestRetireWithoutGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.timing = &hmac.Timing{Propagation: time.Minute}
	w.turn(t, "a")
	b := w.turn(t, "b")
	if want := start.Truncate(time.Second).Add(time.Second); !b.ActiveAtUtc.Equal(want) || !b.GraceEndsAtUtc.Equal(want) {
		t.Errorf("%+v, want it active, and the one before retired, when it follows: %v", b, want)
	}
	w.retire(t, b)
	if diff := cmp.Diff(set(b.Version), w.usable(t)); diff != "" {
		t.Errorf("usable (-want +got):\n%s", diff)
	}
}

// The only usable key is not disabled, and neither is a key of a renewed decision.
func TestRetireKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	disable := func(t *testing.T, w *world, version string) {
		t.Helper()
		if err := w.vault.Disable(t.Context(), secrets.Name(hmac.Engine, instance), version); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		what   string
		change func(t *testing.T, w *world, a, b hmac.NotifyOutput) (kept string)
	}{
		{"the new one is disabled by hand", func(t *testing.T, w *world, a, b hmac.NotifyOutput) string {
			disable(t, w, b.Version)
			return a.Version
		}},
		{"the slot was decided anew, and nobody was told", func(t *testing.T, w *world, a, b hmac.NotifyOutput) string {
			disable(t, w, b.Version)
			rotateAs(t, w, "b", "j2")
			return a.Version
		}},
		{"the slot was decided anew", func(t *testing.T, w *world, a, b hmac.NotifyOutput) string {
			disable(t, w, b.Version)
			if c := w.turn(t, "b"); c.PreviousVersion != a.Version || c.Version == b.Version {
				t.Errorf("%+v", c)
			}
			return a.Version
		}},
		{"a run is about to tell of another", func(t *testing.T, w *world, _, _ hmac.NotifyOutput) string {
			made, err := w.steps(t).Rotate(t.Context(), input("c", "j"))
			if err != nil {
				t.Fatal(err)
			}
			return made.Version
		}},
		{"a run is about to decide another", func(t *testing.T, w *world, _, _ hmac.NotifyOutput) string {
			orphans(t, w, 1)
			return w.enabled(t, slot)[0].Version
		}},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := w.turn(t, "a"), w.turn(t, "b")
			w.move(b.GraceEndsAtUtc.Add(-time.Minute))
			kept := c.change(t, w, a, b)
			w.retire(t, b)
			if !w.usable(t)[kept] {
				t.Errorf("%s was disabled", kept)
			}
		})
	}
}

// A late message of an old slot, for example a retry, finds its version retired: it makes no new one, and announces
// nothing.
func TestAnOldSlotStaysOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, err := w.steps(t).Rotate(t.Context(), input("a", "j"))
	if err != nil {
		t.Fatal(err)
	}
	toldA := w.tell(t, a)
	w.move(start.Add(time.Hour))
	b := w.turn(t, "b")
	w.move(b.GraceEndsAtUtc)
	w.retire(t, b)
	for _, leftover := range []bool{false, true} {
		if leftover { // of an attempt that died
			tags := map[string]string{hmac.TagSlot: "a", hmac.TagJob: "dead"}
			if _, err := w.vault.Add(t.Context(), a.SecretName, make([]byte, hmac.KeySize), tags); err != nil {
				t.Fatal(err)
			}
		}
		again, err := w.steps(t).Rotate(t.Context(), input("a", "j9"))
		if err != nil || again != a {
			t.Errorf("Rotate = %+v, %v; want %+v", again, err, a)
		}
		if told := w.tell(t, again); told != toldA {
			t.Errorf("Notify = %+v, want %+v", told, toldA)
		}
		if got := w.retire(t, toldA); len(got) != 0 {
			t.Errorf("Retire disabled %v", got)
		}
	}
	if n := len(w.random.keys()); n != 2 || len(w.outbox.Events()) != 2 {
		t.Errorf("%d keys were drawn, %d events", n, len(w.outbox.Events()))
	}
	if diff := cmp.Diff(set(b.Version), w.usable(t)); diff != "" {
		t.Errorf("usable (-want +got):\n%s", diff)
	}
}

func TestRetireErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.turn(t, "a")
	b := w.turn(t, "b")
	failing := vaultHook{w.vault, func(string, func() error) error { return secrets.ErrThrottled }}
	_, err := w.stepsOver(t, failing, w.tables).Retire(t.Context(), retirement(b))
	if !errors.Is(err, secrets.ErrThrottled) || errors.Is(err, hmac.ErrInput) || !strings.Contains(err.Error(), b.Version) {
		t.Errorf("Retire = %v, want the store's error, and what it was about", err)
	}
	// The older one was purged meanwhile.
	gone := vaultHook{w.vault, func(call string, do func() error) error {
		if call == "Disable" {
			return secrets.ErrNotFound
		}
		return do()
	}}
	if _, err := w.stepsOver(t, gone, w.tables).Retire(t.Context(), retirement(b)); err != nil {
		t.Errorf("Retire = %v", err)
	}
	for _, in := range []hmac.RetireInput{{}, {InstanceID: "i", SecretName: "s"}, {SecretName: "s", Version: version}, {InstanceID: "i", SecretName: "a/b", Version: version}} {
		if _, err := w.steps(t).Retire(t.Context(), in); !errors.Is(err, hmac.ErrInput) {
			t.Errorf("Retire(%+v) = %v, want ErrInput", in, err)
		}
	}
}
