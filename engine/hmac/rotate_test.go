package hmac_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/services/secrets/secretstest"
)

func input(slot, job string) hmac.RotateInput {
	return hmac.RotateInput{InstanceID: instance, TenantID: "t1", Slot: slot, JobID: job}
}

func TestRotateIsIdempotentPerSlot(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s", 300)
	runs := []struct {
		slot, job string
		as        int // index of the run that has the same result; its own when new
	}{
		0: {"a", "j1", 0},
		1: {"a", "j1", 0},
		2: {"a", "j2", 0},
		3: {"b", "j2", 3},
		4: {"a", "j3", 0},
		5: {"b", "j4", 3},
		6: {long, strings.Repeat("j", 400), 6},
		7: {long, "j5", 6},
		8: {long + "x", "j5", 8},
		9: {"A/ü#?\n", "j6", 9},
	}
	w := newWorld(t)
	outs := make([]hmac.RotateOutput, len(runs))
	for i, run := range runs {
		out, err := w.steps(t).Rotate(t.Context(), input(run.slot, run.job))
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		outs[i] = out
		if diff := cmp.Diff(outs[run.as], out); diff != "" {
			t.Errorf("run %d against run %d (-want +got):\n%s", i, run.as, diff)
		}
		if out.Slot != run.slot || out.SecretName != secrets.Name("hmac", instance) || out.CreatedAtUtc.IsZero() {
			t.Errorf("run %d: %+v", i, out)
		}
	}
	if n := len(w.random.keys()); n != 5 {
		t.Errorf("%d keys were drawn, want 5", n)
	}
	w.checkSettled(t, outs[0])
	w.checkSettled(t, outs[3])
	w.checkSecret(t, outs)
}

func TestRotateTagsAndKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, err := w.steps(t).Rotate(t.Context(), input(slot, "job-1"))
	if err != nil {
		t.Fatal(err)
	}
	v := w.enabled(t, slot)[0]
	if diff := cmp.Diff(map[string]string{"rotationSlot": slot, "rotationJobId": "job-1"}, v.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	want := make([]byte, 32)
	if _, err := io.ReadFull(rand.NewChaCha8([32]byte{1}), want); err != nil {
		t.Fatal(err)
	}
	got, err := w.vault.Value(t.Context(), out.SecretName, out.Version)
	if err != nil || !bytes.Equal(got, want) {
		t.Error("the key is not the first 32 bytes of Config.Random")
	}
}

func TestRotateWipesTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	vault := &keepSlice{Store: w.vault}
	if _, err := w.stepsOver(t, vault, w.tables).Rotate(t.Context(), input(slot, "j")); err != nil {
		t.Fatal(err)
	}
	if len(vault.value) != hmac.KeySize || !bytes.Equal(vault.value, make([]byte, hmac.KeySize)) {
		t.Error("the key's bytes are still in memory after Rotate")
	}
}

func TestRotateAdoptsAndTidiesUp(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what    string
		prepare func(t *testing.T, w *world)
		drawn   int // keys that Rotate draws
	}{
		{"versions of runs that died are adopted, one of them", func(t *testing.T, w *world) { orphans(t, w, 3) }, 0},
		{"a version disabled by hand is replaced", func(t *testing.T, w *world) { disabledByHand(t, w) }, 1},
		{"disabled by hand, and a run died replacing it", func(t *testing.T, w *world) { disabledByHand(t, w); orphans(t, w, 2) }, 0},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.prepare(t, w)
			before := len(w.random.keys())
			out, err := w.steps(t).Rotate(t.Context(), input(slot, "j9"))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(w.random.keys()) - before; got != c.drawn {
				t.Errorf("%d keys were drawn, want %d", got, c.drawn)
			}
			w.checkSettled(t, out)
			again, err := w.steps(t).Rotate(t.Context(), input(slot, "j10"))
			if diff := cmp.Diff(out, again); err != nil || diff != "" {
				t.Errorf("again: %v (-first +again):\n%s", err, diff)
			}
		})
	}
}

func TestRotateMissingVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.steps(t).Rotate(t.Context(), input(slot, "j1")); err != nil {
		t.Fatal(err)
	}
	empty := newWorld(t)
	out, err := w.stepsOver(t, empty.vault, w.tables).Rotate(t.Context(), input(slot, "j2"))
	if !errors.Is(err, hmac.ErrVersionMissing) {
		t.Errorf("Rotate over an emptied vault = %+v, %v; want ErrVersionMissing", out, err)
	}
}

func TestRotateErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	events := publisher{outbox.NewWriter(w.outbox.Over(w.tables)), w}
	steps, err := hmac.New(hmac.Config{Vault: w.vault, Tables: w.tables, Publisher: events, Arrivals: w.arrivals(t, w.tables, nil), Random: iotest.ErrReader(io.ErrUnexpectedEOF)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.Rotate(t.Context(), input(slot, "j")); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), slot) {
		t.Errorf("Rotate without randomness = %v", err)
	}
	short := strings.NewReader(strings.Repeat("x", hmac.KeySize-1))
	if steps, err = hmac.New(hmac.Config{Vault: w.vault, Tables: w.tables, Publisher: events, Arrivals: w.arrivals(t, w.tables, nil), Random: short}); err != nil {
		t.Fatal(err)
	}
	if _, err := steps.Rotate(t.Context(), input(slot, "j")); err == nil {
		t.Error("Rotate took a key that is too short")
	}
	if got := w.enabled(t, slot); len(got) != 0 {
		t.Errorf("versions: %v, want none", got)
	}
	_, err = hmac.New(hmac.Config{})
	for _, missing := range []string{"Vault", "Tables", "Publisher"} {
		if err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("New(Config{}) = %v, want it to name %s", err, missing)
		}
	}
}

func TestRotateConcurrently(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what    string
		prepare func(t testing.TB, w *world)
	}{
		{"fresh slot", func(testing.TB, *world) {}},
		{"version disabled by hand", disabledByHand},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.prepare(t, w)
			race(t, w)
		})
	}
}

// race lets several processes rotate one slot. All read before any adds, and all try to replace a decision before any
// does: the worst case, in which each makes a version.
func race(t *testing.T, w *world) {
	t.Helper()
	const processes = 8
	before := len(w.random.keys())
	looked, replacing := newBarrier(processes), newBarrier(processes)
	var done sync.WaitGroup
	outs, errs := make([]hmac.RotateOutput, processes), make([]error, processes)
	for i := range processes {
		look, replace := looked.once(), replacing.once()
		vault := vaultHook{w.vault, func(call string, do func() error) error {
			err := do()
			if call == "Versions" {
				look()
			}
			return err
		}}
		store := tablesHook{w.tables, func(call string, do func() error) error {
			if call == "Replace" {
				replace()
			}
			return do()
		}}
		steps := w.stepsOver(t, vault, store)
		done.Go(func() { outs[i], errs[i] = steps.Rotate(t.Context(), input(slot, string(rune('a'+i)))) })
	}
	done.Wait()
	for i := range processes {
		if errs[i] != nil || outs[i].Version != outs[0].Version {
			t.Errorf("process %d: %+v, %v; want what the first returns: %+v", i, outs[i], errs[i], outs[0])
		}
	}
	if n := len(w.random.keys()) - before; n < processes {
		t.Errorf("%d keys were drawn, want %d or more: the race did not happen", n, processes)
	}
	w.checkSettled(t, outs[0])
	w.checkSecret(t, outs, errs)
}

// barrier holds processes until all have arrived.
type barrier struct{ *sync.WaitGroup }

func newBarrier(n int) barrier {
	b := barrier{new(sync.WaitGroup)}
	b.Add(n)
	return b
}

// once returns the wait of one process; it waits only the first time.
func (b barrier) once() func() {
	var once sync.Once
	return func() { once.Do(func() { b.Done(); b.Wait() }) }
}

func TestRotateOverKeyVault(t *testing.T) {
	t.Parallel()
	vault := secretstest.NewVault(t)
	store, err := secrets.NewKeyVault(vault.URL(), vault.Credential(), vault.Options())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	steps := w.stepsOver(t, store, w.tables)
	// The first version is stored without an answer; the next slot's first request is lost on the way.
	vault.Inject(secretstest.Fault{Method: "PUT", Applied: true}, secretstest.Fault{Method: "PUT"})
	for n, slot := range []string{"one", "two"} {
		out, err := steps.Rotate(t.Context(), input(slot, "j"))
		if err != nil {
			t.Fatal(err)
		}
		versions, err := store.Versions(t.Context(), out.SecretName)
		if err != nil || len(versions) != n+1 {
			t.Errorf("after slot %s: %v, %v; want %d versions", slot, versions, err, n+1)
		}
		key, err := store.Value(t.Context(), out.SecretName, out.Version)
		if keys := w.random.keys(); err != nil || !bytes.Equal(key, keys[len(keys)-1]) {
			t.Errorf("slot %s: the key is not the one drawn last: %v", slot, err)
		}
		w.checkSecret(t, out, versions)
	}
}

// keepSlice retains the slice that it is given.
type keepSlice struct {
	secrets.Store
	value []byte
}

func (k *keepSlice) Add(ctx context.Context, name string, value []byte, tags map[string]string) (secrets.Version, error) {
	k.value = value
	return k.Store.Add(ctx, name, value, tags)
}

// orphans adds versions of the slot that no decision names, as dead runs leave them.
func orphans(t testing.TB, w *world, n int) {
	t.Helper()
	for range n {
		tags := map[string]string{hmac.TagSlot: slot, hmac.TagJob: "dead"}
		if _, err := w.vault.Add(t.Context(), secrets.Name(hmac.Engine, instance), make([]byte, hmac.KeySize), tags); err != nil {
			t.Fatal(err)
		}
	}
}

// disabledByHand rotates the slot and disables its version.
func disabledByHand(t testing.TB, w *world) {
	t.Helper()
	out, err := w.steps(t).Rotate(t.Context(), input(slot, "j0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.vault.Disable(t.Context(), out.SecretName, out.Version); err != nil {
		t.Fatal(err)
	}
}
