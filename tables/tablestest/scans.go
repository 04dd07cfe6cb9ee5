package tablestest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/tables"
)

func testScan(t *testing.T, e env) {
	if got := e.partitions(t, tables.Scan{Row: "status"}); got != nil {
		t.Errorf("an empty table: %q", got)
	}
	hour := func(n int) time.Time { return time.Date(2026, 1, 1, n, 0, 0, 0, time.UTC) }
	hours := map[string]int{"9": 0, "a": 1, "b": 2, "B": 3, "10": 4, "b-1": 5, "c": 6, "é": 7}
	for i, p := range []string{"c", "a", "b", "B", "b-1", "é", "10", "9"} {
		e.mustApply(t, tables.Insert(entity(p, "a-row-before")), tables.Insert(entity(p, "status", "Even", i%2 == 0, "Name", p, "At", hour(hours[p]))), tables.Insert(entity(p, "z-row-behind", "Even", true)))
	}
	e.mustApply(t, tables.Insert(entity("bare", "statu")), tables.Insert(entity("bare", "status-2")), tables.Insert(entity("bare", "Status")))
	e.mustApply(t, tables.Insert(entity("emptied", "status")))
	e.mustApply(t, tables.Delete(tables.Key{Partition: "emptied", Row: "status"}, ""))
	even := map[string]any{"Even": true}
	tests := []struct {
		scan tables.Scan
		want []string
	}{
		{tables.Scan{Row: "status"}, []string{"10", "9", "B", "a", "b", "b-1", "c", "é"}},
		{tables.Scan{Row: "status", FromPartition: "b"}, []string{"b", "b-1", "c", "é"}},
		{tables.Scan{Row: "status", ToPartition: "b"}, []string{"10", "9", "B", "a"}},
		{tables.Scan{Row: "status", FromPartition: "b", ToPartition: "c"}, []string{"b", "b-1"}},
		{tables.Scan{Row: "status", FromPartition: "b-", ToPartition: "b."}, []string{"b-1"}},
		{tables.Scan{Row: "status", FromPartition: "d"}, []string{"é"}},
		{tables.Scan{Row: "status", FromPartition: "c", ToPartition: "b"}, nil},
		{tables.Scan{Row: "status", FromPartition: "b", ToPartition: "b"}, nil},
		{tables.Scan{Row: "status", Where: even}, []string{"10", "b", "b-1", "c"}},
		{tables.Scan{Row: "status", Where: even, FromPartition: "b", ToPartition: "c"}, []string{"b", "b-1"}},
		{tables.Scan{Row: "status", Where: map[string]any{"Even": false, "Name": "a"}}, []string{"a"}},
		{tables.Scan{Row: "status", Where: map[string]any{"Even": true, "Name": "a"}}, nil},
		{tables.Scan{Row: "status", Where: map[string]any{"Missing": ""}}, nil},
		{tables.Scan{Row: "status", NotBefore: map[string]time.Time{"At": hour(5)}}, []string{"b-1", "c", "é"}},
		{tables.Scan{Row: "status", NotBefore: map[string]time.Time{"At": hour(5)}, Where: even}, []string{"b-1", "c"}},
		{tables.Scan{Row: "status", NotBefore: map[string]time.Time{"At": hour(5).Add(time.Millisecond)}}, []string{"c", "é"}},
		{tables.Scan{Row: "status", NotBefore: map[string]time.Time{"Missing": hour(0)}}, nil},
		{tables.Scan{Row: "Status"}, []string{"bare"}},
		{tables.Scan{Row: "nothing"}, nil},
		{tables.Scan{AnyRow: true, Limit: 3}, []string{"10", "10", "10", "9", "9", "9", "B", "B", "B", "a", "a", "a", "b", "b", "b", "b-1", "b-1", "b-1", "bare", "bare", "bare", "c", "c", "c", "é", "é", "é"}},
		{tables.Scan{AnyRow: true, FromPartition: "b ", ToPartition: "c"}, []string{"b-1", "b-1", "b-1", "bare", "bare", "bare"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, e.partitions(t, test.scan)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.scan, diff)
		}
	}
	many := tables.Scan{Row: "status", FromPartition: "many", ToPartition: "many-2", Where: map[string]any{}}
	for i := range 12 {
		many.Where[fmt.Sprintf("P%02d", i)] = int64(i)
	}
	e.mustApply(t, tables.Insert(tables.Entity{Key: tables.Key{Partition: "many", Row: "status"}, Properties: many.Where}))
	if diff := cmp.Diff([]string{"many"}, e.partitions(t, many)); diff != "" {
		t.Errorf("range and twelve equalities (-want +got):\n%s", diff)
	}
}

func testScanSelect(t *testing.T, e env) {
	e.mustApply(t, tables.Insert(entity("p", "status", "A", "1", "B", int64(2), "C", []byte{3})))
	e.mustApply(t, tables.Insert(entity("q", "status", "A", "4")))
	s := tables.Scan{Row: "status", Select: []string{"B", "C", "Missing"}}
	for range 2 {
		page, err := e.store.Scan(t.Context(), e.table, s)
		if err != nil || len(page.Entities) != 2 {
			t.Fatalf("got %d entities, %v", len(page.Entities), err)
		}
		p, q := page.Entities[0], page.Entities[1]
		wantProperties(t, "p", p, map[string]any{"B": int64(2), "C": []byte{3}})
		wantProperties(t, "q", q, nil)
		if want := (tables.Key{Partition: "p", Row: "status"}); p.Key != want || q.Partition != "q" {
			t.Errorf("keys %v and %v", p.Key, q.Key)
		}
		if want := e.mustGet(t, p.Key).ETag; p.ETag != want {
			t.Errorf("ETag %q, want %q", p.ETag, want)
		}
		p.Properties["C"].([]byte)[0] = 'X' // the caller owns the result: the second round sees no change of it
	}
}

func testScanPages(t *testing.T, e env) {
	var want, odd []string
	for i := range 7 {
		p := fmt.Sprintf("p%d", i)
		want = append(want, p)
		if i%2 == 1 {
			odd = append(odd, p)
		}
		// The rows around it differ between partitions, and a partition without such a row lies between two of them.
		e.mustApply(t, tables.Insert(entity(p, "status", "Odd", i%2 == 1)), tables.Insert(entity(p, fmt.Sprintf("r%d", 9-i))), tables.Insert(entity(p, fmt.Sprintf("z%d", i))))
		e.mustApply(t, tables.Insert(entity(p+"-bare", "other", "Odd", true)), tables.Insert(entity(p+"-bare", "z")))
	}
	for limit := 1; limit <= 8; limit++ {
		s := tables.Scan{Row: "status", Limit: limit}
		var got []string
		for {
			page, err := e.store.Scan(t.Context(), e.table, s)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Entities) > limit {
				t.Errorf("limit %d: a page of %d", limit, len(page.Entities))
			}
			for _, entity := range page.Entities {
				got = append(got, entity.Partition)
			}
			if s.Continuation = page.Next; page.Next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
		if diff := cmp.Diff(odd, e.partitions(t, tables.Scan{Row: "status", Limit: limit, Where: map[string]any{"Odd": true}})); diff != "" {
			t.Errorf("limit %d, odd partitions (-want +got):\n%s", limit, diff)
		}
		if diff := cmp.Diff(want[2:5], e.partitions(t, tables.Scan{Row: "status", Limit: limit, FromPartition: "p2", ToPartition: "p5"})); diff != "" {
			t.Errorf("limit %d, a range (-want +got):\n%s", limit, diff)
		}
	}
	for range tables.ScanAll(t.Context(), e.store, e.table, tables.Scan{Row: "status", Limit: 1}) {
		break // an early end must not disturb the iterator
	}
}

func testScanPastManyRows(t *testing.T, e env) {
	for from := 0; from < 2100; from += 100 {
		ops := make([]tables.Op, 100)
		for i := range ops {
			ops[i] = tables.Insert(entity("b", fmt.Sprintf("r-%05d", from+i)))
		}
		e.mustApply(t, ops...)
	}
	for _, p := range []string{"a", "b", "c"} {
		e.mustApply(t, tables.Insert(entity(p, "status")))
	}
	scan := tables.ScanAll(t.Context(), e.store, e.table, tables.Scan{Row: "status"})
	for round := range 2 { // an iterator restarts each time
		var got []string
		for entity, err := range scan {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, entity.Partition)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

// Keys that have a meaning in filters, URLs and headers are data here: as row keys, bounds and in continuations.
func testScanKeys(t *testing.T, e env) {
	ids := []string{"/subscriptions/0/resourceGroups/rg", "O'Brien", "x' or RowKey ne '", "x or PartitionKey ne x", "100%", "a%2Fb", "a+b c", "~first", "=", "日本語", "𝄞", "\xff\xfe",
		" lead", "trail ", "a:b;c,d(e)", `"`, ".", "..", "&$@!*", "&$filter=true", "null", "true", "a\r\nb"}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = tables.EscapeKey(id)
		e.mustApply(t, tables.Insert(entity(keys[i], "r")), tables.Insert(entity(keys[i], "s")))
	}
	for _, key := range keys {
		bounds := tables.Scan{Row: "r", FromPartition: key, ToPartition: key + "!"}
		if diff := cmp.Diff([]string{key}, e.partitions(t, bounds)); diff != "" {
			t.Errorf("from %q (-want +got):\n%s", key, diff)
		}
		e.mustApply(t, tables.Insert(entity("one", key)), tables.Insert(entity("one", key+"!")))
		if diff := cmp.Diff([]string{"one"}, e.partitions(t, tables.Scan{Row: key, Limit: 1})); diff != "" {
			t.Errorf("row %q (-want +got):\n%s", key, diff)
		}
	}
	slices.Sort(keys)
	if diff := cmp.Diff(keys, e.partitions(t, tables.Scan{Row: "r", Limit: 1})); diff != "" {
		t.Errorf("in pages of one (-want +got):\n%s", diff)
	}
}

func testScanPrefix(t *testing.T, e env) {
	ids := []string{"hmac", "hmac-", "hmac-1", "hmac-/x", "hmac-~", "hmac-é", "hmac.", "hmac.1", "hmac/1", "hmac0", "tls-1"}
	for _, id := range ids {
		e.mustApply(t, tables.Insert(entity(tables.EscapeKey(id), "status")))
	}
	for _, prefix := range []string{"", "h", "hmac", "hmac-", "hmac-é", "hmac.", "hmac/", "hmac-/", "tls-", "z"} {
		var want []string
		for _, id := range ids {
			if strings.HasPrefix(id, prefix) {
				want = append(want, tables.EscapeKey(id))
			}
		}
		slices.Sort(want)
		from := tables.EscapeKey(prefix)
		got := e.partitions(t, tables.Scan{Row: "status", FromPartition: from, ToPartition: tables.PrefixEnd(from)})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ids that begin with %q (-want +got):\n%s", prefix, diff)
		}
	}
}

// Only the kind of request that returned a continuation accepts it, and only for the same key.
func testScanContinuations(t *testing.T, e env) {
	for _, p := range []string{"p", "q", "status"} {
		e.mustApply(t, tables.Insert(entity(p, "status")), tables.Insert(entity(p, "r")))
	}
	scanned, err := e.store.Scan(t.Context(), e.table, tables.Scan{Row: "status", Limit: 1})
	if err != nil || scanned.Next == "" {
		t.Fatalf("got %+v, %v", scanned, err)
	}
	queried, err := e.store.Query(t.Context(), e.table, tables.Query{Partition: "status", Limit: 1})
	if err != nil || queried.Next == "" {
		t.Fatalf("got %+v, %v", queried, err)
	}
	_, err = e.store.Scan(t.Context(), e.table, tables.Scan{Row: "r", Continuation: scanned.Next})
	wantError(t, "a continuation of another row key", err, tables.ErrInvalid)
	_, err = e.store.Scan(t.Context(), e.table, tables.Scan{Row: "status", Continuation: queried.Next})
	wantError(t, "a continuation of a query", err, tables.ErrInvalid)
	_, err = e.store.Query(t.Context(), e.table, tables.Query{Partition: "status", Continuation: scanned.Next})
	wantError(t, "a continuation of a scan", err, tables.ErrInvalid)
}

func testBadScans(t *testing.T, e env) {
	for _, bad := range []string{"a/b", `a\b`, "a#b", "a?b", "a%b", "a'b", "' or RowKey ne '", "a\x00b", "a\tb", "a\x7fb", "a\u0085b", "a\xffb"} {
		for name, s := range map[string]tables.Scan{"row": {Row: bad}, "from": {Row: "r", FromPartition: bad}, "to": {Row: "r", ToPartition: bad}} {
			_, err := e.store.Scan(t.Context(), e.table, s)
			wantError(t, name+" "+bad, err, tables.ErrInvalid)
		}
	}
	long := strings.Repeat("k", 513)
	tooMany := map[string]any{}
	for i := range 13 {
		tooMany[fmt.Sprintf("P%d", i)] = true
	}
	tests := []struct {
		name string
		s    tables.Scan
		want error
	}{
		{"no row", tables.Scan{}, tables.ErrInvalid},
		{"no row but bounds", tables.Scan{FromPartition: "a", ToPartition: "b"}, tables.ErrInvalid},
		{"long row", tables.Scan{Row: long}, tables.ErrTooLarge},
		{"long from", tables.Scan{Row: "r", FromPartition: long}, tables.ErrTooLarge},
		{"long to", tables.Scan{Row: "r", ToPartition: long}, tables.ErrTooLarge},
		{"negative limit", tables.Scan{Row: "r", Limit: -1}, tables.ErrInvalid},
		{"limit 1001", tables.Scan{Row: "r", Limit: 1001}, tables.ErrInvalid},
		{"name", tables.Scan{Row: "r", Where: map[string]any{"a eq 1 or b": "x"}}, tables.ErrInvalid},
		{"key as property", tables.Scan{Row: "r", Where: map[string]any{"PartitionKey": "x"}}, tables.ErrInvalid},
		{"type", tables.Scan{Row: "r", Where: map[string]any{"A": 5}}, tables.ErrInvalid},
		{"NaN", tables.Scan{Row: "r", Where: map[string]any{"A": math.NaN()}}, tables.ErrInvalid},
		{"long value", tables.Scan{Row: "r", Where: map[string]any{"A": long}}, tables.ErrTooLarge},
		{"many values", tables.Scan{Row: "r", Where: tooMany}, tables.ErrTooLarge},
		{"select", tables.Scan{Row: "r", Select: []string{"A,B"}}, tables.ErrInvalid},
		{"continuation", tables.Scan{Row: "r", Continuation: "garbage!"}, tables.ErrInvalid},
		{"long continuation", tables.Scan{Row: "r", Continuation: strings.Repeat("A", 1<<20)}, tables.ErrInvalid},
	}
	for _, test := range tests {
		_, err := e.store.Scan(t.Context(), e.table, test.s)
		wantError(t, test.name, err, test.want)
	}
	_, err := e.store.Scan(t.Context(), "no-table", tables.Scan{Row: "r"})
	wantError(t, "table name", err, tables.ErrInvalid)
}
