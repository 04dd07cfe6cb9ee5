package catalog

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// A bucket differs if and only if a row of its orchestrations is missing, changed or surplus; in any order, and with
// any stop in between.
func TestSums(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9/]{1,12}`), 1, 30, rapid.ID).Draw(rt, "ids")
		s, wrong := make(sums, buckets), sums(make([]uint64, buckets))
		var rows []tables.Entity
		for i, id := range ids {
			e := entry{id: id, orchestrator: "o", tag: fmt.Sprint(i % 2), tenant: "t", status: orchestrator.Running, created: time.Unix(int64(i), 0)}
			for _, name := range e.all() {
				s.add(e.row(name), true)
				rows = append(rows, e.row(name))
			}
		}
		for _, row := range rapid.Permutation(rows).Draw(rt, "rows") {
			id := row.String(columnID)
			switch rapid.IntRange(0, 99).Draw(rt, "wrong") {
			case 0: // missing
				wrong.mark(id)
				continue
			case 1: // another column
				row.Properties[columnOrchestrator] = row.String(columnOrchestrator) + "x"
				wrong.mark(id)
			case 2: // another's
				wrong.mark(id)
				row.Properties[columnID] = "!"
				wrong.mark("!")
			case 3: // a surplus row
				extra := tables.Entity{Key: key(row.Row + "0"), Properties: row.Properties}
				s.add(extra, false)
				wrong.mark(id)
			}
			s.add(row, false)
			s = decodeSums(s.encode())
		}
		for _, id := range append(ids, "!") {
			if s.differ(id) != wrong.differ(id) {
				rt.Errorf("%q differs: %t", id, s.differ(id))
			}
		}
		if s.equal() != wrong.equal() {
			rt.Errorf("equal: %t", s.equal())
		}
	})
	if s := decodeSums([]byte{1}); s.equal() || !s.differ("a") {
		t.Error("sums that were not made show that all is correct")
	}
}

// mark notes that a bucket is expected to differ.
func (s sums) mark(id string) { s[hash([]byte(id))%buckets] = 1 }
