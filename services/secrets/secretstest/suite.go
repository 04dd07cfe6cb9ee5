// Package secretstest is the test kit of package secrets: the conformance suite that every store passes, and a Key
// Vault on an HTTPS server for tests of the wire.
package secretstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/services/secrets"
)

// Store is the store under test: the suite reads values to check them.
type Store interface {
	secrets.Store
	secrets.Reader
}

// Run tests the promises of package secrets. open makes a new, empty store for each test.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	cases := []struct {
		name string
		run  func(t *testing.T, store Store)
	}{
		{"unknown secret has no versions", unknown},
		{"each add makes a version", adds},
		{"many versions are all listed", many},
		{"disabled version stays listed and is not readable", disables},
		{"any bytes come back", bytesComeBack},
		{"names ignore case and share no prefix", names},
		{"limits", limits},
		{"concurrent adds", concurrent},
		{"cancelled context", cancelled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

func unknown(t *testing.T, store Store) {
	versions, err := store.Versions(t.Context(), "nobody")
	if err != nil || len(versions) != 0 {
		t.Errorf("Versions = %v, %v; want none", versions, err)
	}
	id := strings.Repeat("0a", 16)
	if _, err := store.Value(t.Context(), "nobody", id); !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("Value = %v, want ErrNotFound", err)
	}
	if err := store.Disable(t.Context(), "nobody", id); !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("Disable = %v, want ErrNotFound", err)
	}
}

func adds(t *testing.T, store Store) {
	tags := map[string]string{"slot": "2026-11-21T00", "job": "j/1 ü"}
	first := add(t, store, "key", "same", tags)
	second := add(t, store, "key", "same", nil)
	if first.Version == second.Version || !secrets.ValidVersion(first.Version) || !secrets.ValidVersion(second.Version) {
		t.Errorf("versions %q and %q, want two different ones of 32 hex digits", first.Version, second.Version)
	}
	if !first.Enabled || first.Name != "key" || first.Created.IsZero() || first.Created.Nanosecond() != 0 || !first.Updated.Equal(first.Created) {
		t.Errorf("Add = %+v, want it enabled, named and created at a whole second", first)
	}
	if diff := cmp.Diff(tags, first.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	want := []secrets.Version{first, second}
	slices.SortFunc(want, secrets.Compare)
	if diff := cmp.Diff(want, list(t, store, "key")); diff != "" {
		t.Errorf("Versions (-want +got):\n%s", diff)
	}
}

func many(t *testing.T, store Store) {
	var want []secrets.Version
	for i := range 60 {
		want = append(want, add(t, store, "key", "v", map[string]string{"n": fmt.Sprint(i)}))
	}
	slices.SortFunc(want, secrets.Compare)
	if diff := cmp.Diff(want, list(t, store, "key")); diff != "" {
		t.Errorf("Versions (-want +got):\n%s", diff)
	}
}

func disables(t *testing.T, store Store) {
	gone, kept := add(t, store, "key", "a", map[string]string{"x": "y"}), add(t, store, "key", "b", nil)
	for range 2 {
		if err := store.Disable(t.Context(), "key", gone.Version); err != nil {
			t.Fatalf("Disable: %v", err)
		}
	}
	gone.Enabled = false
	want := []secrets.Version{gone, kept}
	slices.SortFunc(want, secrets.Compare)
	got := list(t, store, "key")
	for i, v := range got {
		if v.Updated.Before(want[i].Updated) {
			t.Errorf("%+v was changed before it was made", v)
		}
		got[i].Updated = want[i].Updated
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Versions (-want +got):\n%s", diff)
	}
	if _, err := store.Value(t.Context(), "key", gone.Version); !errors.Is(err, secrets.ErrForbidden) {
		t.Errorf("Value of the disabled version = %v, want ErrForbidden", err)
	}
	if value, err := store.Value(t.Context(), "key", kept.Version); err != nil || string(value) != "b" {
		t.Errorf("Value of the other = %q, %v", value, err)
	}
	if err := store.Disable(t.Context(), "key", strings.Repeat("0a", 16)); !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("Disable of an unknown version = %v, want ErrNotFound", err)
	}
}

func bytesComeBack(t *testing.T, store Store) {
	value := make([]byte, 256)
	for i := range value {
		value[i] = byte(i)
	}
	want := bytes.Clone(value)
	v, err := store.Add(t.Context(), "key", value, nil)
	if err != nil {
		t.Fatal(err)
	}
	clear(value) // a caller wipes its copy
	got, err := store.Value(t.Context(), "key", v.Version)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("Value = %x, %v; want %x", got, err, want)
	}
}

func names(t *testing.T, store Store) {
	short, long := add(t, store, "ab", "1", nil), add(t, store, "ab-c", "2", nil)
	if got := list(t, store, "ab"); len(got) != 1 || got[0].Version != short.Version {
		t.Errorf("versions of ab: %v", got)
	}
	if got := list(t, store, "AB-C"); len(got) != 1 || got[0].Version != long.Version {
		t.Errorf("versions of AB-C: %v, want those of ab-c", got)
	}
}

func limits(t *testing.T, store Store) {
	tags := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("t", i)] = "x"
		}
		return m
	}
	long := strings.Repeat("n", secrets.MaxName)
	cases := []struct {
		what, name string
		size       int
		tags       map[string]string
		ok         bool
	}{
		{"largest value", "key", secrets.MaxValue, nil, true},
		{"value too large", "key", secrets.MaxValue + 1, nil, false},
		{"empty value", "key", 0, nil, false},
		{"longest name", long, 1, nil, true},
		{"name too long", long + "n", 1, nil, false},
		{"no name", "", 1, nil, false},
		{"name with a slash", "a/b", 1, nil, false},
		{"name with an underscore", "a_b", 1, nil, false},
		{"name with a line feed", "ab\n", 1, nil, false},
		{"name outside ASCII", "schlüssel", 1, nil, false},
		{"most tags", "key", 1, tags(secrets.MaxTags), true},
		{"too many tags", "key", 1, tags(secrets.MaxTags + 1), false},
		{"longest tag", "key", 1, map[string]string{strings.Repeat("n", secrets.MaxTag): strings.Repeat("v", secrets.MaxTag)}, true},
		{"tag name too long", "key", 1, map[string]string{strings.Repeat("n", secrets.MaxTag+1): "v"}, false},
		{"tag value too long", "key", 1, map[string]string{"n": strings.Repeat("v", secrets.MaxTag+1)}, false},
		{"tag without a name", "key", 1, map[string]string{"": "v"}, false},
		{"tag that is not UTF-8", "key", 1, map[string]string{"n": "\xff"}, false},
	}
	for _, c := range cases {
		_, err := store.Add(t.Context(), c.name, bytes.Repeat([]byte{0xff}, c.size), c.tags)
		if c.ok && err != nil || !c.ok && !errors.Is(err, secrets.ErrInvalid) {
			t.Errorf("%s: Add = %v, want ok %v or ErrInvalid", c.what, err, c.ok)
		}
	}
	for _, version := range []string{"", "..", "0a", strings.Repeat("0A", 16), strings.Repeat("0a", 16) + "/"} {
		if err := store.Disable(t.Context(), "key", version); !errors.Is(err, secrets.ErrInvalid) {
			t.Errorf("Disable version %q = %v, want ErrInvalid", version, err)
		}
		if _, err := store.Value(t.Context(), "key", version); !errors.Is(err, secrets.ErrInvalid) {
			t.Errorf("Value of version %q = %v, want ErrInvalid", version, err)
		}
	}
	if _, err := store.Versions(t.Context(), "a/b"); !errors.Is(err, secrets.ErrInvalid) {
		t.Errorf("Versions of a/b = %v, want ErrInvalid", err)
	}
}

func concurrent(t *testing.T, store Store) {
	const writers = 8
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() { _, errs[i] = store.Add(t.Context(), "key", []byte{1}, nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := list(t, store, "key"); len(got) != writers {
		t.Errorf("%d versions, want %d", len(got), writers)
	}
}

func cancelled(t *testing.T, store Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Add(ctx, "key", []byte{1}, nil); err == nil {
		t.Error("Add with a cancelled context succeeded")
	}
	if _, err := store.Versions(ctx, "key"); err == nil {
		t.Error("Versions with a cancelled context succeeded")
	}
}

// add adds a version or ends the test.
func add(t *testing.T, store Store, name, value string, tags map[string]string) secrets.Version {
	t.Helper()
	v, err := store.Add(t.Context(), name, []byte(value), tags)
	if err != nil {
		t.Fatalf("Add to %s: %v", name, err)
	}
	return v
}

// list lists versions or ends the test.
func list(t *testing.T, store Store, name string) []secrets.Version {
	t.Helper()
	versions, err := store.Versions(t.Context(), name)
	if err != nil {
		t.Fatalf("Versions of %s: %v", name, err)
	}
	return versions
}
