package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// The longest ids are indexed like all others, and lists continue behind them; a longer id is refused at the start.
func TestTheLongestIDs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.start(t, "a", "short", "", 1)
	long := strings.Repeat("/", 168)
	ids := []string{long + "aaaaa", long + "aaaaab"} // 509 and 510 bytes as keys have them
	for _, id := range ids {
		h.start(t, id, "short", "", 1)
	}
	_, err := h.runtime.Start(t.Context(), orchestrator.Start{ID: long + "aaaaabb", Orchestrator: "short", Input: []byte("1"), CorrelationID: "c"})
	if err == nil || len(tables.EscapeKey(ids[1])) != maxEscapedID {
		t.Errorf("one byte more: %v", err)
	}
	noError(t, h.Flush(t.Context()))
	for _, f := range []orchestrator.Filter{{}, {Prefix: long}, {Prefix: ids[0]}, {Prefix: ids[1]}, {Prefix: long + "aaaaabb"}} {
		found := map[string]bool{}
		for next := ""; ; {
			page, more, err := h.List(t.Context(), f, 1, next)
			if err != nil {
				t.Fatalf("%q: %v", f.Prefix, err)
			}
			for _, s := range page {
				found[s.ID] = true
			}
			if next = more; more == "" {
				break
			}
		}
		for _, id := range append(ids, "a") {
			if found[id] != strings.HasPrefix(id, f.Prefix) {
				t.Errorf("prefix of %d bytes: %d bytes found %v", len(f.Prefix), len(id), found[id])
			}
		}
	}
}

// Lists by prefix have the order of storage, in which a character above U+FFFF is before one from U+E000 on. They
// find all ids with the prefix, whatever its last character is.
func TestIDsInTheOrderOfStorage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ids := []string{"p", "p-1", "p\ud7ff", "p\U0001f600", "p\U0010ffff", "p\ue000", "p\uff21", "p\uffff", "p\uffff-1"}
	for _, id := range ids {
		h.start(t, id, "short", "", 1)
	}
	noError(t, h.Flush(t.Context()))
	for _, prefix := range ids {
		var want []string
		for _, id := range ids {
			if strings.HasPrefix(id, prefix) {
				want = append(want, id)
			}
		}
		for _, limit := range []int{1, 2, 100} {
			if got := h.pages(t, orchestrator.Filter{Prefix: prefix}, limit); !slices.Equal(got, want) {
				t.Errorf("prefix %q, pages of %d: %q, want %q", prefix, limit, got, want)
			}
		}
	}
}
