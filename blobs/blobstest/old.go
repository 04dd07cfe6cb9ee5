package blobstest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
)

// old returns the versions of all pages of a list of old blobs.
func (e env) old(t *testing.T, before time.Time) map[string]blobs.Version {
	t.Helper()
	found := map[string]blobs.Version{}
	last := ""
	for next, first := "", true; first || next != ""; first = false {
		var page []blobs.Version
		var err error
		if page, next, err = e.store.ListOld(t.Context(), e.container, "", before, next); err != nil {
			t.Fatal(err)
		}
		for _, v := range page {
			if v.Name <= last {
				t.Errorf("%q comes behind %q", v.Name, last)
			}
			last, found[v.Name] = v.Name, v
		}
	}
	return found
}

func testListOld(t *testing.T, e env) {
	later, earlier := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	if got := e.old(t, later); len(got) != 0 {
		t.Errorf("an empty container: %v", got)
	}
	var names []string
	for n := range 1003 {
		names = append(names, fmt.Sprintf("a b+c=2F/%04d", n))
	}
	e.putAll(t, names)
	if got := e.old(t, later); len(got) != len(names) {
		t.Errorf("%d blobs of %d are old", len(got), len(names))
	}
	if got := e.old(t, earlier); len(got) != 0 {
		t.Errorf("%d blobs are older than they are", len(got))
	}
	_, next, err := e.store.ListOld(t.Context(), e.container, "", earlier, "")
	if err != nil || next == "" {
		t.Fatalf("a page of young blobs does not lead to the next: %v", err)
	}
	_, _, err = e.store.List(t.Context(), e.container, "", next)
	wantError(t, "a continuation of another kind of list", err, blobs.ErrInvalid)
	_, _, err = e.store.ListOld(t.Context(), e.container, "a", earlier, next)
	wantError(t, "a continuation of another prefix", err, blobs.ErrInvalid)
	ever := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if part, next, err := e.store.ListOld(t.Context(), e.container, names[7], ever, ""); err != nil || next != "" || len(part) != 1 || part[0].Name != names[7] {
		t.Errorf("of a prefix: %v %q %v", part, next, err)
	}
	_, _, err = e.store.ListOld(t.Context(), "another-container", "", later, next)
	wantError(t, "a continuation of another container", err, blobs.ErrInvalid)
	_, _, err = e.store.ListOld(t.Context(), "missing-container", "", later, "")
	wantError(t, "a missing container", err, blobs.ErrNotFound)
	_, _, err = e.store.ListOld(t.Context(), "Upper", "", later, "")
	wantError(t, "no container", err, blobs.ErrInvalid)
}

func testDeleteVersion(t *testing.T, e env) {
	for _, name := range []string{"gone", "stays", "back"} {
		e.put(t, name, []byte(name))
	}
	old := e.old(t, time.Now().Add(time.Hour))
	e.put(t, "stays", []byte("stays")) // the same content, written a second time
	if err := e.store.Delete(t.Context(), e.container, "back"); err != nil {
		t.Fatal(err)
	}
	e.put(t, "back", []byte("back"))
	if err := e.store.DeleteVersion(t.Context(), e.container, old["gone"]); err != nil {
		t.Errorf("delete: %v", err)
	}
	for _, name := range []string{"gone", "stays", "back"} {
		wantError(t, "delete what is another, or gone", e.store.DeleteVersion(t.Context(), e.container, old[name]), blobs.ErrPrecondition)
	}
	if got, want := e.names(t, ""), []string{"back", "stays"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	wantError(t, "delete in a missing container", e.store.DeleteVersion(t.Context(), "missing-container", old["gone"]), blobs.ErrPrecondition)
	wantError(t, "delete what is no blob", e.store.DeleteVersion(t.Context(), e.container, blobs.Version{Name: "a//b"}), blobs.ErrInvalid)
}
