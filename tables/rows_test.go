package tables

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// The ordered rows of a partition match a map.
func TestRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var set rows
		model := map[string]*row{}
		fill := rapid.IntRange(0, 3*maxChunk).Draw(t, "fill")
		for i := range fill {
			r := &row{key: strconv.Itoa(i % 997)}
			set.put(r)
			model[r.key] = r
		}
		key := rapid.Map(rapid.IntRange(0, 1100), strconv.Itoa)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				r := &row{key: key.Draw(t, "key")}
				set.put(r)
				model[r.key] = r
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				set.remove(k)
				delete(model, k)
			},
			"empty a range": func(t *rapid.T) {
				for i := range rapid.IntRange(0, 600).Draw(t, "n") {
					set.remove(strconv.Itoa(i))
					delete(model, strconv.Itoa(i))
				}
			},
			"get": func(t *rapid.T) {
				if k := key.Draw(t, "key"); set.get(k) != model[k] {
					t.Errorf("get %s: %v, want %v", k, set.get(k), model[k])
				}
			},
			"": func(t *rapid.T) {
				from := key.Draw(t, "from")
				var got []string
				for r := range set.from(from) {
					got = append(got, r.key)
				}
				want := slices.DeleteFunc(slices.Sorted(maps.Keys(model)), func(k string) bool { return k < from })
				testenv.Equal(t, "rows from "+from, append([]string{}, want...), append([]string{}, got...))
				for _, c := range set.chunks {
					if len(c) == 0 || len(c) > maxChunk {
						t.Errorf("a chunk of %d", len(c))
					}
				}
			},
		})
	})
}
