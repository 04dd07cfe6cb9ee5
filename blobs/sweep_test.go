package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A sweep deletes old blobs that are unused and are not written again meanwhile.
func TestSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const container = "payloads"
		store := blobs.NewMemory()
		put := func(name string) {
			testenv.OK(t, store.Put(t.Context(), container, name, nil))
		}
		testenv.OK(t, store.CreateContainer(t.Context(), container))
		for n := range 1500 {
			put(fmt.Sprintf("old/%04d", n))
		}
		time.Sleep(time.Hour)
		put("young")
		before := time.Now()
		removed, pages := 0, 0
		for next, more := "", true; more; more = next != "" {
			var n int
			var err error
			n, next, err = blobs.Sweep(t.Context(), store, container, before, next, func(_ context.Context, names []string) ([]string, error) {
				put("old/0007")
				return append(slices.DeleteFunc(names, func(name string) bool { return name == "old/0003" || name == "old/1400" }), "young"), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			removed, pages = removed+n, pages+1
		}
		var left []string
		for name, err := range blobs.All(t.Context(), store, container, "") {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, name)
		}
		if want := []string{"old/0003", "old/0007", "old/1400", "young"}; !slices.Equal(left, want) || removed != 1497 || pages != 2 {
			t.Errorf("%q are left after %d deletions in %d pages, want %q", left, removed, pages, want)
		}
	})
}

// A sweep that cannot determine the unused blobs keeps all.
func TestSweepWithoutKnowledge(t *testing.T) {
	t.Parallel()
	store, later := blobs.NewMemory(), time.Now().Add(time.Hour)
	doubt := errors.New("nobody knows")
	unused := func(context.Context, []string) ([]string, error) { return nil, doubt }
	if n, next, err := blobs.Sweep(t.Context(), store, "missing", later, "", unused); n != 0 || next != "" || err != nil {
		t.Errorf("a missing container: %d, %q, %v", n, next, err)
	}
	testenv.OK(t, errors.Join(store.CreateContainer(t.Context(), "there"), store.Put(t.Context(), "there", "a", nil)))
	if n, _, err := blobs.Sweep(t.Context(), store, "there", later, "", unused); n != 0 || !errors.Is(err, doubt) {
		t.Errorf("%d deleted, %v", n, err)
	}
	if _, err := store.Get(t.Context(), "there", "a"); err != nil {
		t.Error(err)
	}
}
