package codec_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/internal/testenv"
)

func envelope(t testing.TB, c codec.EnvelopeConfig) *codec.Envelope {
	t.Helper()
	return testenv.Must(codec.NewEnvelope(c))(t)
}

func seal(t testing.TB, c codec.Codec, plain, place string) []byte {
	t.Helper()
	return testenv.Must(c.Encode(t.Context(), []byte(plain), place))(t)
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	e := envelope(t, codec.EnvelopeConfig{Keys: newVault()})
	for _, plain := range []string{"", "x", `{"card":"4111"}`, strings.Repeat("long ", 100_000)} {
		sealed := seal(t, e, plain, "row a/b")
		if len(sealed) > len(plain)+codec.MaxOverhead {
			t.Errorf("%d bytes take %d", len(plain), len(sealed))
		}
		if len(plain) > 1 && bytes.Contains(sealed, []byte(plain)) {
			t.Errorf("%.20q is in clear", plain)
		}
		if again := seal(t, e, plain, "row a/b"); bytes.Equal(sealed, again) {
			t.Errorf("%.20q was encrypted twice with one nonce", plain)
		}
		got, err := e.Decode(t.Context(), sealed, "row a/b")
		if err != nil || string(got) != plain {
			t.Errorf("%.20q came back as %.20q, %v", plain, got, err)
		}
		if id := e.KeyID(sealed); id != "payloads/1" {
			t.Errorf("the key is %q", id)
		}
	}
}

// Every changed, cut or moved byte is detected, and the data is never taken for another payload.
func TestEnvelopeRefusesWhatWasChanged(t *testing.T) {
	t.Parallel()
	e := envelope(t, codec.EnvelopeConfig{Keys: newVault()})
	sealed := seal(t, e, "secret", "row a/b")
	if _, err := e.Decode(t.Context(), sealed, "row a/c"); !errors.Is(err, codec.ErrDamaged) {
		t.Errorf("moved to another row: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		got, err := e.Decode(t.Context(), changed, "row a/b")
		if damaged, key := errors.Is(err, codec.ErrDamaged), errors.Is(err, codec.ErrKey); got != nil || damaged == key {
			t.Errorf("byte %d changed: %q, %v", i, got, err)
		}
		if _, err := e.Decode(t.Context(), sealed[:i], "row a/b"); !errors.Is(err, codec.ErrDamaged) {
			t.Errorf("cut after %d bytes: %v", i, err)
		}
	}
}

// One wrap serves many payloads, and so does one unwrap in each other process. A process reads its own data without a
// request.
func TestEnvelopeAsksSeldom(t *testing.T) {
	t.Parallel()
	v, c := newVault(), &clock{}
	writer := envelope(t, codec.EnvelopeConfig{Keys: v, Now: c.now, MaxAge: time.Hour, MaxUses: 100})
	var all [][]byte
	for range 100 {
		all = append(all, seal(t, writer, "x", "p"))
	}
	if n := v.wraps.Load(); n != 1 {
		t.Errorf("100 payloads: %d wraps", n)
	}
	all = append(all, seal(t, writer, "x", "p"))
	if n := v.wraps.Load(); n != 2 {
		t.Errorf("the 101st payload, of 100 with one key: %d wraps", n)
	}
	c.add(59 * time.Minute)
	seal(t, writer, "x", "p")
	c.add(time.Minute)
	all = append(all, seal(t, writer, "x", "p"))
	if n := v.wraps.Load(); n != 3 {
		t.Errorf("after an hour: %d wraps", n)
	}
	for _, reader := range []struct {
		name string
		*codec.Envelope
		unwraps int64
	}{
		{"the writer itself", writer, 0},
		{"another process", envelope(t, codec.EnvelopeConfig{Keys: v}), 3},
		{"one that keeps one key", envelope(t, codec.EnvelopeConfig{Keys: v, Cached: 1}), 3},
	} {
		before := v.unwraps.Load()
		for _, sealed := range all {
			testenv.Must(reader.Decode(t.Context(), sealed, "p"))(t)
		}
		if n := v.unwraps.Load() - before; n != reader.unwraps {
			t.Errorf("%s: %d unwraps, want %d", reader.name, n, reader.unwraps)
		}
	}
	small := envelope(t, codec.EnvelopeConfig{Keys: v, Cached: 1})
	before := v.unwraps.Load()
	for _, i := range []int{0, 100, 0, 100} {
		testenv.Must(small.Decode(t.Context(), all[i], "p"))(t)
	}
	if n := v.unwraps.Load() - before; n != 4 {
		t.Errorf("two keys in turns, one kept: %d unwraps, want 4", n)
	}
}

// Concurrent callers that miss the same key send one request.
func TestEnvelopeAsksOnce(t *testing.T) {
	t.Parallel()
	v := newVault()
	sealed := seal(t, envelope(t, codec.EnvelopeConfig{Keys: v}), "x", "p")
	reader := envelope(t, codec.EnvelopeConfig{Keys: v})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := reader.Decode(t.Context(), sealed, "p"); err != nil {
				t.Error(err)
			}
			if _, err := reader.Encode(t.Context(), nil, "p"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if w, u := v.wraps.Load(), v.unwraps.Load(); w != 2 || u != 1 {
		t.Errorf("%d wraps, %d unwraps", w, u)
	}
}

// Old data stays readable after a rotation of the key.
func TestEnvelopeRotation(t *testing.T) {
	t.Parallel()
	v, c := newVault(), &clock{}
	e := envelope(t, codec.EnvelopeConfig{Keys: v, Now: c.now})
	old := seal(t, e, "old", "p")
	v.rename("payloads/2")
	if id := e.KeyID(seal(t, e, "still", "p")); id != "payloads/1" {
		t.Errorf("at once: %s", id)
	}
	c.add(24 * time.Hour)
	young := seal(t, e, "young", "p")
	if id := e.KeyID(young); id != "payloads/2" {
		t.Errorf("a day later: %s", id)
	}
	for _, reader := range []*codec.Envelope{e, envelope(t, codec.EnvelopeConfig{Keys: v})} {
		for want, sealed := range map[string][]byte{"old": old, "young": young} {
			if got, err := reader.Decode(t.Context(), sealed, "p"); err != nil || string(got) != want {
				t.Errorf("%q, %v; want %s", got, err, want)
			}
		}
	}
}

// An outage of the vault stops no running work: cached keys stay in use, and so does a key that is due for replacement,
// up to its number of uses. Calls that need the vault fail with ErrKey, repeat the request after a delay, and succeed
// after the outage.
func TestEnvelopeOutage(t *testing.T) {
	t.Parallel()
	v, c := newVault(), &clock{}
	e := envelope(t, codec.EnvelopeConfig{Keys: v, Now: c.now, MaxAge: time.Hour, MaxUses: 4})
	foreign := seal(t, envelope(t, codec.EnvelopeConfig{Keys: v}), "foreign", "p")
	seal(t, e, "1", "p")
	v.fail(errVault)
	c.add(time.Hour)
	for range 3 {
		seal(t, e, "2, 3, 4", "p")
	}
	for range 5 {
		if _, err := e.Encode(t.Context(), nil, "row x/y"); !errors.Is(err, codec.ErrKey) || !errors.Is(err, errVault) || !strings.Contains(err.Error(), "row x/y") {
			t.Errorf("a key used up: %v", err)
		}
		if _, err := e.Decode(t.Context(), foreign, "row x/y"); !errors.Is(err, codec.ErrKey) || !strings.Contains(err.Error(), "payloads/1") || !strings.Contains(err.Error(), "row x/y") {
			t.Errorf("an unknown key: %v", err)
		}
	}
	if w, u := v.wraps.Load(), v.unwraps.Load(); w != 3 || u != 1 {
		t.Errorf("the vault was asked %d and %d times", w-2, u)
	}
	v.fail(nil)
	c.add(10 * time.Second)
	seal(t, e, "again", "p")
	if got, err := e.Decode(t.Context(), foreign, "p"); err != nil || string(got) != "foreign" {
		t.Errorf("%q, %v", got, err)
	}
}

// A canceled caller does not cancel the request for the other callers.
func TestEnvelopeCanceled(t *testing.T) {
	t.Parallel()
	e := envelope(t, codec.EnvelopeConfig{Keys: newVault()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Encode(ctx, nil, "p"); err != nil {
		t.Error(err)
	}
}

func TestEnvelopeChecksItsKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []codec.EnvelopeConfig{{}, {Keys: newVault(), MaxAge: -1}, {Keys: newVault(), MaxUses: -1}, {Keys: newVault(), Cached: -1}} {
		if _, err := codec.NewEnvelope(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	long := newVault()
	long.wrapped = make([]byte, codec.MaxWrapped+1)
	if err := envelope(t, codec.EnvelopeConfig{Keys: long}).Check(t.Context()); !errors.Is(err, codec.ErrKey) || !strings.Contains(err.Error(), "513 bytes") {
		t.Errorf("%v", err)
	}
	if err := envelope(t, codec.EnvelopeConfig{Keys: newVault()}).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Any bytes are refused or authentic.
func FuzzEnvelope(f *testing.F) {
	e := envelope(f, codec.EnvelopeConfig{Keys: newVault()})
	f.Add(seal(f, e, "secret", "p"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, sealed []byte) {
		got, err := e.Decode(t.Context(), sealed, "p")
		if err == nil && string(got) != "secret" {
			t.Errorf("%q", got)
		}
		if err != nil && errors.Is(err, codec.ErrKey) == errors.Is(err, codec.ErrDamaged) {
			t.Errorf("%v", err)
		}
	})
}
