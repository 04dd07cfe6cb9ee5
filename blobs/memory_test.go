package blobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Lists of small pages match a set of names.
func TestMemoryList(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory()
		m.pageLimit = rapid.IntRange(1, 4).Draw(t, "limit")
		testenv.OK(t, m.CreateContainer(ctx, "payloads"))
		model := map[string]bool{}
		name := rapid.StringMatching(`[ab=é]{1,2}(/[ab=é]{1,2})?`)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n := name.Draw(t, "name")
				testenv.OK(t, m.Put(ctx, "payloads", n, nil))
				model[n] = true
			},
			"delete": func(t *rapid.T) {
				n := name.Draw(t, "name")
				testenv.OK(t, m.Delete(ctx, "payloads", n))
				delete(model, n)
			},
			"list": func(t *rapid.T) {
				prefix := rapid.StringMatching(`([ab=é]{1,2}/?)?`).Draw(t, "prefix")
				want := slices.DeleteFunc(slices.Sorted(maps.Keys(model)), func(n string) bool { return !strings.HasPrefix(n, prefix) })
				var got []string
				for next, pages := "", 0; ; pages++ {
					names, after, err := m.List(ctx, "payloads", prefix, next)
					if err != nil {
						t.Fatal(err)
					}
					if len(names) > m.pageLimit || pages > len(want) {
						t.Fatalf("page %d has %d names", pages, len(names))
					}
					got = append(got, names...)
					if next = after; next == "" {
						break
					}
				}
				if !slices.Equal(want, got) {
					t.Errorf("prefix %q (-want +got):\n%s", prefix, cmp.Diff(want, got))
				}
			},
		})
	})
}

// Deletions between two pages, even of the first name of the second page, do not disturb the list.
func TestMemoryListWhileDeleting(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	m.pageLimit = 2
	testenv.OK(t, m.CreateContainer(t.Context(), "payloads"))
	for i := range 6 {
		testenv.OK(t, m.Put(t.Context(), "payloads", fmt.Sprintf("b%d", i), nil))
	}
	var got []string
	for name, err := range All(t.Context(), m, "payloads", "b") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
		if name == "b0" {
			for _, gone := range []string{"b0", "b2"} {
				testenv.OK(t, m.Delete(t.Context(), "payloads", gone))
			}
		}
	}
	testenv.Equal(t, "", []string{"b0", "b1", "b3", "b4", "b5"}, got)
}

// The token of the longest prefix and marker, with the most escapes, is accepted.
func TestLongestContinuation(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("<", maxNameUnits)
	want := Listing{Container: strings.Repeat("c", 63), Prefix: longest, Marker: longest}
	got, err := Listing{Container: want.Container, Prefix: want.Prefix}.Resume(want.Continuation())
	if err != nil || got != want {
		t.Errorf("a token of %d characters: %v", len(want.Continuation()), err)
	}
}

func FuzzResume(f *testing.F) {
	f.Add("p/", Listing{Container: "payloads", Prefix: "p/", Marker: "p/1"}.Continuation())
	f.Add("", "e30")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, prefix, continuation string) {
		p, err := Listing{Container: "payloads", Prefix: prefix}.Resume(continuation)
		if err != nil {
			return
		}
		if p.Container != "payloads" || p.Prefix != prefix || (p.Marker == "") != (continuation == "") {
			t.Errorf("%q goes on at %+v", continuation, p)
		}
		if again, err := (Listing{Container: "payloads", Prefix: prefix}).Resume(p.Continuation()); err != nil || again != p {
			t.Errorf("%+v became %+v, %v", p, again, err)
		}
	})
}
