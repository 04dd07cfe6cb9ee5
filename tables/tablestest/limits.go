package tablestest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

func testPropertySize(t *testing.T, e env) {
	tests := []struct {
		name      string
		fits, not any
	}{
		{"ascii", strings.Repeat("a", 32768), strings.Repeat("a", 32769)},
		{"two-bytes", strings.Repeat("é", 32768), strings.Repeat("é", 32769)},
		{"three-bytes", strings.Repeat("語", 32768), strings.Repeat("語", 32769)},
		{"surrogates", strings.Repeat("𝄞", 16384), strings.Repeat("𝄞", 16384) + "a"},
		{"bytes", make([]byte, 65536), make([]byte, 65537)},
	}
	for _, test := range tests {
		in := entity("p", test.name, "V", test.fits)
		e.mustApply(t, tables.Insert(in))
		wantProperties(t, test.name, e.mustGet(t, in.Key), in.Properties)
		wantOpError(t, test.name, e.apply(t, tables.Upsert(entity("p", test.name, "V", test.not))), tables.ErrTooLarge, 0)
		wantOpError(t, test.name+" in a transaction", e.apply(t, tables.Insert(entity("p", "x")), tables.Insert(entity("p", "y", "V", test.not))), tables.ErrTooLarge, 1)
	}
}

// ofSize returns an entity whose size by the service's rules is n: 4, the keys, and for each property 8, its name and
// its value with 4 more.
func ofSize(row string, n int) tables.Entity {
	e := entity("p", row)
	n -= 4 + 2*len("p") + 2*len(row)
	for i := 0; n > 0; i++ {
		name := fmt.Sprintf("V%02d", i)
		overhead := 8 + 2*len(name) + 4
		units := min((n-overhead)/2, 32768)
		if rest := n - overhead - 2*units; rest > 0 && rest < overhead+2 {
			units -= overhead // leave room for one more property
		}
		e.Properties[name] = strings.Repeat("a", units)
		n -= overhead + 2*units
	}
	return e
}

func testEntitySize(t *testing.T, e env) {
	fits := ofSize("r", 1<<20)
	e.mustApply(t, tables.Insert(fits))
	wantProperties(t, "1 MiB", e.mustGet(t, fits.Key), fits.Properties)
	wantOpError(t, "1 MiB and 2", e.apply(t, tables.Upsert(ofSize("r", 1<<20+2))), tables.ErrTooLarge, 0)
}

func testPropertyCount(t *testing.T, e env) {
	in := entity("p", "r")
	for i := range 252 {
		in.Properties[fmt.Sprintf("P%03d", i)] = int32(i)
	}
	e.mustApply(t, tables.Insert(in))
	wantProperties(t, "252", e.mustGet(t, in.Key), in.Properties)
	in.Properties["Nil"] = nil
	e.mustApply(t, tables.Upsert(in))
	in.Properties["More"] = true
	wantOpError(t, "253", e.apply(t, tables.Upsert(in)), tables.ErrTooLarge, 0)
}

func testPropertyNames(t *testing.T, e env) {
	in := entity("p", "r", "_", "1", "a1_b", "2", "Größe", "3", "日本", "4", strings.Repeat("n", 255), "5")
	e.mustApply(t, tables.Insert(in))
	wantProperties(t, "legal names", e.mustGet(t, in.Key), in.Properties)
	wantOpError(t, "256 characters", e.apply(t, tables.Upsert(entity("p", "r", strings.Repeat("n", 256), "1"))), tables.ErrTooLarge, 0)
	for _, name := range []string{"", "1a", "a-b", "a.b", "a b", "a@odata.type", "odata.etag", "PartitionKey", "RowKey", "Timestamp", "a\xff"} {
		wantOpError(t, name, e.apply(t, tables.Upsert(entity("p", "r", name, "1"))), tables.ErrInvalid, 0)
	}
}

func testKeySize(t *testing.T, e env) {
	for _, fits := range []string{strings.Repeat("k", 512), strings.Repeat("é", 512), strings.Repeat("語", 512), strings.Repeat("𝄞", 256)} {
		in := entity(fits, fits)
		e.mustApply(t, tables.Insert(in))
		got := e.mustGet(t, in.Key)
		e.mustApply(t, tables.Replace(got), tables.Insert(entity(fits, "second")))
		if rows := e.rows(t, tables.Query{Partition: fits, From: fits}); !slices.Contains(rows, fits) {
			t.Errorf("query of a key of %d bytes: %d rows", len(fits), len(rows))
		}
		wantOpError(t, "partition", e.apply(t, tables.Insert(entity(fits+"k", "r"))), tables.ErrTooLarge, 0)
		wantOpError(t, "row", e.apply(t, tables.Insert(entity("p", fits+"k"))), tables.ErrTooLarge, 0)
	}
}

func testBadEntities(t *testing.T, e env) {
	for _, bad := range []string{"", "a/b", `a\b`, "a#b", "a?b", "a%b", "a'b", "a\x00b", "a\tb", "a\x7fb", "a\u0085b", "a\xffb"} {
		wantOpError(t, "row "+bad, e.apply(t, tables.Insert(entity("p", bad))), tables.ErrInvalid, 0)
		wantOpError(t, "partition "+bad, e.apply(t, tables.Insert(entity(bad, "r"))), tables.ErrInvalid, 0)
		wantOpError(t, "delete "+bad, e.apply(t, tables.Delete(tables.Key{Partition: "p", Row: bad}, "")), tables.ErrInvalid, 0)
		_, err := e.store.Get(t.Context(), e.table, tables.Key{Partition: "p", Row: bad})
		wantError(t, "get "+bad, err, tables.ErrInvalid)
		_, err = e.store.Query(t.Context(), e.table, tables.Query{Partition: "x" + bad, From: bad})
		if bad != "" {
			wantError(t, "query "+bad, err, tables.ErrInvalid)
		}
	}
	for _, bad := range []any{5, uint8(5), float32(5), "a\xffb", struct{}{}, []string{"a"}, time.Time{}, time.Date(1600, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		wantOpError(t, fmt.Sprintf("a %T", bad), e.apply(t, tables.Insert(entity("p", "r", "V", bad))), tables.ErrInvalid, 0)
	}
}

func testBadQueries(t *testing.T, e env) {
	tooMany := map[string]any{}
	for i := range 13 {
		tooMany[fmt.Sprintf("P%d", i)] = true
	}
	tests := []struct {
		name string
		q    tables.Query
		want error
	}{
		{"no partition", tables.Query{}, tables.ErrInvalid},
		{"negative limit", tables.Query{Partition: "p", Limit: -1}, tables.ErrInvalid},
		{"limit 1001", tables.Query{Partition: "p", Limit: 1001}, tables.ErrInvalid},
		{"name", tables.Query{Partition: "p", Where: map[string]any{"a eq 1 or b": "x"}}, tables.ErrInvalid},
		{"key as property", tables.Query{Partition: "p", Where: map[string]any{"RowKey": "x"}}, tables.ErrInvalid},
		{"type", tables.Query{Partition: "p", Where: map[string]any{"A": 5}}, tables.ErrInvalid},
		{"nil", tables.Query{Partition: "p", Where: map[string]any{"A": nil}}, tables.ErrInvalid},
		{"NaN", tables.Query{Partition: "p", Where: map[string]any{"A": math.NaN()}}, tables.ErrInvalid},
		{"long value", tables.Query{Partition: "p", Where: map[string]any{"A": strings.Repeat("a", 513)}}, tables.ErrTooLarge},
		{"many values", tables.Query{Partition: "p", Where: tooMany}, tables.ErrTooLarge},
		{"select", tables.Query{Partition: "p", Select: []string{"A,B"}}, tables.ErrInvalid},
		{"continuation", tables.Query{Partition: "p", Continuation: "garbage!"}, tables.ErrInvalid},
		{"long continuation", tables.Query{Partition: "p", Continuation: strings.Repeat("A", 1<<20)}, tables.ErrInvalid},
	}
	for _, test := range tests {
		_, err := e.store.Query(t.Context(), e.table, test.q)
		wantError(t, test.name, err, test.want)
	}
}
