package orchestrator

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/sample"
)

// A mailbox is a list from which the oldest event of a name is taken, regardless of case.
func TestMailboxIsAList(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(t *rapid.T) {
		var m mailbox
		var model []event
		names := rapid.SampledFrom([]string{"a", "A", "b", "k", "K", "\u212a", "ſ", "S", "straße", "STRASSE", "", "\xff"})
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			name := names.Draw(t, "name")
			if rapid.Bool().Draw(t, "put") {
				e := event{Name: name, At: int64(m.arrived)}
				m.put(e)
				model = append(model, e)
			} else {
				i := slices.IndexFunc(model, func(e event) bool { return strings.EqualFold(e.Name, name) })
				k := m.oldest(name)
				if (k == nil) != (i < 0) || k != nil && k.At != model[i].At {
					t.Fatalf("the oldest %q is %+v, want that of place %d", name, k, i)
				}
				if k != nil {
					m.take(k)
					model = slices.Delete(model, i, i+1)
				}
			}
			most := rapid.IntRange(0, 5).Draw(t, "most")
			if diff := cmp.Diff(model[:min(len(model), most)], m.list(most), same()); diff != "" || m.len() != len(model) {
				t.Fatalf("%d of %d (-want +got):\n%s", m.len(), len(model), diff)
			}
		}
	})
}
