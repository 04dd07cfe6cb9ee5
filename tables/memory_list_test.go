package tables

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// A page examines 1,000 rows, so lists meet short pages in memory as in the service.
func TestMemoryScanPassesRows(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	testenv.OK(t, m.CreateTable(t.Context(), "orchestrations"))
	for i := range 1000 {
		key := Key{Partition: fmt.Sprintf("p%d", i/500), Row: fmt.Sprintf("r-%05d", i)}
		testenv.OK(t, m.Apply(t.Context(), "orchestrations", Insert(Entity{Key: key})))
	}
	last := Key{Partition: "p1", Row: "status"}
	testenv.OK(t, m.Apply(t.Context(), "orchestrations", Insert(Entity{Key: last})))
	first, err := m.Scan(t.Context(), "orchestrations", Scan{Row: "status"})
	if err != nil || len(first.Entities) != 0 || first.Next == "" {
		t.Fatalf("the first page is %+v, %v, want an empty one with a next", first, err)
	}
	second, err := m.Scan(t.Context(), "orchestrations", Scan{Row: "status", Continuation: first.Next})
	if err != nil || len(second.Entities) != 1 || second.Entities[0].Key != last || second.Next != "" {
		t.Fatalf("the second page is %+v, %v, want %v and no next", second, err, last)
	}
}

// Scans match a set of keys while partitions are added and rows deleted.
func TestMemoryScan(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory()
		testenv.OK(t, m.CreateTable(ctx, "orchestrations"))
		model := map[Key]bool{}
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab-é")), 1, 3, -1)
		bound := rapid.OneOf(rapid.Just(""), text)
		row := rapid.SampledFrom([]string{"a", "status", "z"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key := Key{Partition: text.Draw(t, "partition"), Row: row.Draw(t, "row")}
				testenv.OK(t, m.Apply(ctx, "orchestrations", Upsert(Entity{Key: key})))
				model[key] = true
			},
			"delete": func(t *rapid.T) {
				key := Key{Partition: text.Draw(t, "partition"), Row: row.Draw(t, "row")}
				if err := m.Apply(ctx, "orchestrations", Delete(key, "")); (err == nil) != model[key] {
					t.Fatalf("delete %v: %v", key, err)
				}
				delete(model, key)
			},
			"scan": func(t *rapid.T) {
				s := Scan{Row: row.Draw(t, "row"), FromPartition: bound.Draw(t, "from"), ToPartition: bound.Draw(t, "to"), Limit: rapid.IntRange(0, 4).Draw(t, "limit")}
				var got, want []string
				for e, err := range ScanAll(ctx, m, "orchestrations", s) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, e.Partition)
				}
				for key := range model {
					if key.Row == s.Row && key.Partition >= s.FromPartition && (s.ToPartition == "" || key.Partition < s.ToPartition) {
						want = append(want, key.Partition)
					}
				}
				slices.SortFunc(want, strings.Compare)
				testenv.Equal(t, fmt.Sprintf("%+v", s), want, got)
			},
		})
	})
}
