// Package pollertest tests the promises of a poller.Store: one suite for every implementation.
package pollertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/poller"
)

// RunStore runs the suite. open returns an empty store that has not been created.
func RunStore(t *testing.T, open func(t *testing.T) poller.Store) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, poller.Store)
	}{
		{"Missing", testMissing},
		{"Swap", testSwap},
		{"Sizes", testSizes},
		{"Names", testNames},
		{"List", testList},
		{"Race", testRace},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			for range 2 { // it may be repeated
				if err := store.Create(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			test.run(t, store)
		})
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func swap(t *testing.T, s poller.Store, name, text, etag string) poller.State {
	t.Helper()
	state, err := s.Swap(t.Context(), name, []byte(text), etag)
	if err != nil {
		t.Fatal(err)
	}
	if state.ETag == "" || state.ETag == etag {
		t.Errorf("version %q after %q", state.ETag, etag)
	}
	checkTime(t, state)
	return state
}

// checkTime allows for an hour: the store's clock need not be this machine's, but it is a clock.
func checkTime(t *testing.T, state poller.State) {
	t.Helper()
	if d := time.Since(state.Time).Abs(); d > time.Hour || state.Time.Location() != time.UTC {
		t.Errorf("the store's clock says %v", state.Time)
	}
}

func testMissing(t *testing.T, s poller.Store) {
	state, err := s.Load(t.Context(), "orders")
	wantError(t, "load", err, poller.ErrNotFound)
	if state.ETag != "" {
		t.Errorf("there is a version %q of nothing", state.ETag)
	}
	checkTime(t, state)
	_, err = s.Swap(t.Context(), "orders", []byte("{}"), `W/"datetime'2026-01-01T00%3A00%3A00.0000000Z'"`)
	wantError(t, "swap over what is missing", err, poller.ErrChanged)
}

func testSwap(t *testing.T, s poller.Store) {
	first := swap(t, s, "orders", `{"n":1}`, "")
	_, err := s.Swap(t.Context(), "orders", []byte(`{"n":2}`), "")
	wantError(t, "swap for what is there", err, poller.ErrChanged)
	second := swap(t, s, "orders", `{"n":2}`, first.ETag)
	_, err = s.Swap(t.Context(), "orders", []byte(`{"n":3}`), first.ETag)
	wantError(t, "swap over an old version", err, poller.ErrChanged)
	got, err := s.Load(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	checkTime(t, got)
	if string(got.Data) != `{"n":2}` {
		t.Errorf("loaded %s", got.Data)
	}
	// Both ETags of the version are accepted.
	third := swap(t, s, "orders", `{"n":4}`, got.ETag)
	_, err = s.Swap(t.Context(), "orders", []byte(`{"n":5}`), second.ETag)
	wantError(t, "swap over the version before", err, poller.ErrChanged)
	swap(t, s, "orders", `{"n":4}`, third.ETag) // the same text is a new version
	_, err = s.Swap(t.Context(), "orders", []byte(`{"n":5}`), third.ETag)
	wantError(t, "swap over a version with the same text", err, poller.ErrChanged)
}

func testSizes(t *testing.T, s poller.Store) {
	for _, text := range []string{"{}", `{"s":"` + strings.Repeat("ü𝄞", 30_000) + `"}`, strings.Repeat("x", 256<<10)} {
		state, err := s.Load(t.Context(), "orders")
		if err != nil && !errors.Is(err, poller.ErrNotFound) {
			t.Fatal(err)
		}
		swap(t, s, "orders", text, state.ETag)
		got, err := s.Load(t.Context(), "orders")
		if err != nil || string(got.Data) != text {
			t.Errorf("%d bytes came back as %d, %v", len(text), len(got.Data), err)
		}
	}
}

func testNames(t *testing.T, s poller.Store) {
	for _, name := range []string{"", "A", "a/b", "a--b", "-a", "a-", "../a", "a.json", "a b", strings.Repeat("a", 64)} {
		_, err := s.Load(t.Context(), name)
		wantError(t, "load "+name, err, poller.ErrInvalid)
		_, err = s.Swap(t.Context(), name, []byte("{}"), "")
		wantError(t, "swap "+name, err, poller.ErrInvalid)
	}
	swap(t, s, strings.Repeat("a", 63), "{}", "")
}

func testList(t *testing.T, s poller.Store) {
	want := []string{"a", "a-b", "a0", "orders"}
	for _, name := range []string{"orders", "a0", "a-b", "a"} {
		swap(t, s, name, "{}", "")
	}
	got, err := s.List(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

// Of concurrent replacements of one version, one succeeds.
func testRace(t *testing.T, s poller.Store) {
	etag := ""
	for round := range 3 {
		var won, other atomic.Int32
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				_, err := s.Swap(t.Context(), "orders", fmt.Appendf(nil, "%d-%d", round, i), etag)
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, poller.ErrChanged):
					other.Add(1)
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || other.Load() != 0 {
			t.Errorf("%d of 6 replaced one version", won.Load())
		}
		state, err := s.Load(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		etag = state.ETag
	}
}
