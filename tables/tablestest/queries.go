package tablestest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/tables"
)

func testRowRange(t *testing.T, e env) {
	for _, row := range []string{"c", "a", "~index", "b", "B", "b-1", "é", "10", "9"} {
		e.mustApply(t, tables.Insert(entity("p", row)))
	}
	e.mustApply(t, tables.Insert(entity("other", "b")))
	tests := []struct {
		from, to string
		want     []string
	}{
		{"", "", []string{"10", "9", "B", "a", "b", "b-1", "c", "~index", "é"}},
		{"b", "", []string{"b", "b-1", "c", "~index", "é"}},
		{"", "b", []string{"10", "9", "B", "a"}},
		{"b", "c", []string{"b", "b-1"}},
		{"b-", "b.", []string{"b-1"}},
		{"~", "", []string{"~index", "é"}},
		{"c", "b", nil},
		{"b", "b", nil},
	}
	for _, test := range tests {
		got := e.rows(t, tables.Query{Partition: "p", From: test.from, To: test.to})
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("from %q to %q (-want +got):\n%s", test.from, test.to, diff)
		}
	}
	if got := e.rows(t, tables.Query{Partition: "nothing"}); got != nil {
		t.Errorf("rows of an empty partition: %q", got)
	}
}

func testWhere(t *testing.T, e env) {
	at := time.Date(2026, 11, 21, 10, 58, 1, 100, time.UTC)
	rows := []struct {
		row, property string
		value         any
	}{
		{"quote", "Text", "O'Brien"}, {"quotes", "Text", "''"}, {"attack", "Text", "x' or RowKey ne '"}, {"empty", "Text", ""},
		{"unicode", "Text", "日本 𝄞 é"}, {"percent", "Text", "100% + 5&6=7"}, {"lines", "Text", "a\r\n\tb"}, {"backslash", "Text", `a\"b`},
		{"long", "Text", strings.Repeat("語", 512)},
		{"true", "Bool", true}, {"false", "Bool", false},
		{"int32", "Int32", int32(-5)}, {"int32zero", "Int32", int32(0)},
		{"int64", "Int64", int64(math.MaxInt64)}, {"int64small", "Int64", int64(-5)},
		{"double", "Double", 1.5}, {"whole", "Double", float64(7)}, {"tiny", "Double", 1e-7}, {"huge", "Double", -1e20},
		{"time", "Time", at}, {"later", "Time", at.Add(time.Millisecond)},
		{"bytes", "Bytes", []byte{0, 0xff, '\''}}, {"bytes2", "Bytes", []byte{0}},
	}
	for _, r := range rows {
		e.mustApply(t, tables.Insert(entity("p", r.row, r.property, r.value, "Row", r.row)))
	}
	e.mustApply(t, tables.Insert(entity("p", "none", "Row", "none")))
	for _, r := range rows {
		got := e.rows(t, tables.Query{Partition: "p", Where: map[string]any{r.property: r.value}})
		if diff := cmp.Diff([]string{r.row}, got); diff != "" {
			t.Errorf("where %s = %v (-want +got):\n%s", r.property, r.value, diff)
		}
		if got := e.rows(t, tables.Query{Partition: "p", Where: map[string]any{r.property: r.value, "Row": "none"}}); got != nil {
			t.Errorf("where %s = %v and another does not hold: %q", r.property, r.value, got)
		}
	}
	got := e.rows(t, tables.Query{Partition: "p", From: "a", To: "r", Where: map[string]any{"Text": "O'Brien", "Row": "quote"}})
	if diff := cmp.Diff([]string{"quote"}, got); diff != "" {
		t.Errorf("range and two equalities (-want +got):\n%s", diff)
	}
	in := entity("p", "many")
	for i := range 12 {
		in.Properties[fmt.Sprintf("P%02d", i)] = fmt.Sprintf("value %d", i)
	}
	e.mustApply(t, tables.Insert(in))
	got = e.rows(t, tables.Query{Partition: "p", From: "a", To: "z", Where: in.Properties})
	if diff := cmp.Diff([]string{"many"}, got); diff != "" {
		t.Errorf("range and twelve equalities (-want +got):\n%s", diff)
	}
}

func testSelect(t *testing.T, e env) {
	e.mustApply(t, tables.Insert(entity("p", "a", "A", "1", "B", int64(2), "C", []byte{3})), tables.Insert(entity("p", "b", "A", "4")))
	page, err := e.store.Query(t.Context(), e.table, tables.Query{Partition: "p", Select: []string{"B", "C", "Missing"}})
	if err != nil || len(page.Entities) != 2 {
		t.Fatalf("got %d entities, %v", len(page.Entities), err)
	}
	a, b := page.Entities[0], page.Entities[1]
	wantProperties(t, "a", a, map[string]any{"B": int64(2), "C": []byte{3}})
	wantProperties(t, "b", b, nil)
	if a.Row != "a" || b.Row != "b" || a.Partition != "p" {
		t.Errorf("keys %v and %v", a.Key, b.Key)
	}
	if want := e.mustGet(t, a.Key).ETag; a.ETag != want {
		t.Errorf("ETag %q, want %q", a.ETag, want)
	}
}

func testPages(t *testing.T, e env) {
	var want []string
	for i := range 7 {
		row := fmt.Sprintf("r%d", i)
		want = append(want, row)
		e.mustApply(t, tables.Insert(entity("p", row, "Odd", i%2 == 1)))
	}
	for limit := 1; limit <= 8; limit++ {
		q := tables.Query{Partition: "p", Limit: limit}
		var got []string
		for {
			page, err := e.store.Query(t.Context(), e.table, q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Entities) > limit {
				t.Errorf("limit %d: a page of %d", limit, len(page.Entities))
			}
			for _, entity := range page.Entities {
				got = append(got, entity.Row)
			}
			if q.Continuation = page.Next; page.Next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
		odd := e.rows(t, tables.Query{Partition: "p", Limit: limit, Where: map[string]any{"Odd": true}})
		if diff := cmp.Diff([]string{"r1", "r3", "r5"}, odd); diff != "" {
			t.Errorf("limit %d, odd rows (-want +got):\n%s", limit, diff)
		}
	}
	page, err := e.store.Query(t.Context(), e.table, tables.Query{Partition: "p", Limit: 2})
	if err != nil || page.Next == "" {
		t.Fatalf("got %+v, %v", page, err)
	}
	_, err = e.store.Query(t.Context(), e.table, tables.Query{Partition: "q", Limit: 2, Continuation: page.Next})
	wantError(t, "a continuation of another partition", err, tables.ErrInvalid)
}

func testManyRows(t *testing.T, e env) {
	const count = 2300
	for from := 0; from < count; from += 100 {
		ops := make([]tables.Op, 100)
		for i := range ops {
			ops[i] = tables.Insert(entity("p", fmt.Sprintf("%05d", from+i), "N", int32(from+i), "Last", from+i == count-1))
		}
		e.mustApply(t, ops...)
	}
	page, err := e.store.Query(t.Context(), e.table, tables.Query{Partition: "p"})
	if err != nil || len(page.Entities) > 1000 || page.Next == "" {
		t.Fatalf("the first page has %d entities and next %q, %v", len(page.Entities), page.Next, err)
	}
	n := int64(0)
	for entity, err := range tables.All(t.Context(), e.store, e.table, tables.Query{Partition: "p"}) {
		if err != nil {
			t.Fatal(err)
		}
		if entity.Int("N") != n || entity.Row != fmt.Sprintf("%05d", n) {
			t.Fatalf("entity %d is %v with N = %d", n, entity.Key, entity.Int("N"))
		}
		n++
	}
	if n != count {
		t.Errorf("walked %d rows of %d", n, count)
	}
	if got := e.rows(t, tables.Query{Partition: "p", Where: map[string]any{"Last": true}}); len(got) != 1 {
		t.Errorf("one row far behind: %q", got)
	}
	for range tables.All(t.Context(), e.store, e.table, tables.Query{Partition: "p", Limit: 1}) {
		break // an early end must not disturb the iterator
	}
}

// testKeyOrder checks that keys have the order of UTF-16, in which a character above U+FFFF is before one from
// U+E000 on: for rows and partitions, at every bound, and at the end of every prefix.
func testKeyOrder(t *testing.T, e env) {
	ordered := []string{
		"p", "p1", "p~", "p\u00a0", "p\ud7ff", "p\U00010000", "p\U0001f600", "p\U0001f600\uffff", "p\U0010ffff", "p\U0010ffff\U0010ffff", "p\ue000", "p\ue0001", "p\uff21", "p\uffff", "p\uffff1",
		"p\uffff\U0001f600", "p\uffff\uffff", "q", "\U0001f600", "\uff21", "\uffff1",
	}
	for i := len(ordered); i > 0; i-- {
		e.mustApply(t, tables.Insert(entity("order", ordered[i-1])))
		e.mustApply(t, tables.Insert(entity(ordered[i-1], "row")))
	}
	for i, from := range ordered {
		for _, limit := range []int{0, 1, 4} {
			if diff := cmp.Diff(ordered[i:], e.rows(t, tables.Query{Partition: "order", From: from, Limit: limit})); diff != "" {
				t.Errorf("from %q, limit %d (-want +got):\n%s", from, limit, diff)
			}
		}
		if diff := cmp.Diff(ordered[:i], e.rows(t, tables.Query{Partition: "order", To: from}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("to %q (-want +got):\n%s", from, diff)
		}
		var within []string
		for _, key := range ordered {
			if strings.HasPrefix(key, from) {
				within = append(within, key)
			}
		}
		end := tables.PrefixEnd(from)
		if diff := cmp.Diff(within, e.rows(t, tables.Query{Partition: "order", From: from, To: end})); diff != "" {
			t.Errorf("rows with the prefix %q, to %q (-want +got):\n%s", from, end, diff)
		}
		scan := tables.Scan{Row: "row", FromPartition: from, ToPartition: end}
		if diff := cmp.Diff(within, e.partitions(t, scan)); diff != "" {
			t.Errorf("partitions with the prefix %q, to %q (-want +got):\n%s", from, end, diff)
		}
	}
}
