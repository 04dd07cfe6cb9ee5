package tablestest

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

func testCreateTable(t *testing.T, e env) {
	if err := e.store.CreateTable(t.Context(), e.table); err != nil {
		t.Errorf("create a table that exists: %v", err)
	}
	for _, name := range []string{"", "ab", "1abc", "with-hyphen", "with_line", "straße", "a/b", "tables", strings.Repeat("a", 64)} {
		wantError(t, "create "+name, e.store.CreateTable(t.Context(), name), tables.ErrInvalid)
	}
}

func testMissingTable(t *testing.T, e env) {
	const missing = "missing0table"
	_, err := e.store.Get(t.Context(), missing, tables.Key{Partition: "p", Row: "r"})
	wantError(t, "get", err, tables.ErrNotFound)
	_, err = e.store.Query(t.Context(), missing, tables.Query{Partition: "p"})
	wantError(t, "query", err, tables.ErrNotFound)
	_, err = e.store.Scan(t.Context(), missing, tables.Scan{Row: "r"})
	wantError(t, "scan", err, tables.ErrNotFound)
	one, two := tables.Insert(entity("p", "r")), tables.Insert(entity("p", "s"))
	for name, err := range map[string]error{
		"insert":      e.store.Apply(t.Context(), missing, one),
		"transaction": e.store.Apply(t.Context(), missing, one, two),
	} {
		wantError(t, name, err, tables.ErrNotFound)
		var op *tables.OpError
		if errors.As(err, &op) {
			t.Errorf("%s: %v blames an operation, want the table", name, err)
		}
	}
}

func testInsert(t *testing.T, e env) {
	_, err := e.store.Get(t.Context(), e.table, tables.Key{Partition: "p", Row: "r"})
	wantError(t, "get a missing entity", err, tables.ErrNotFound)
	e.mustApply(t, tables.Insert(entity("p", "r", "A", "1")))
	wantOpError(t, "insert twice", e.apply(t, tables.Insert(entity("p", "r", "A", "2"))), tables.ErrExists, 0)
	got := e.mustGet(t, tables.Key{Partition: "p", Row: "r"})
	wantProperties(t, "after a failed insert", got, map[string]any{"A": "1"})
	if got.Key != (tables.Key{Partition: "p", Row: "r"}) || got.ETag == "" {
		t.Errorf("got key %v and ETag %q, want p/r and some", got.Key, got.ETag)
	}
}

func testReplace(t *testing.T, e env) {
	wantOpError(t, "replace a missing entity", e.apply(t, tables.Replace(entity("p", "r"))), tables.ErrNotFound, 0)
	e.mustApply(t, tables.Insert(entity("p", "r", "A", "1", "B", "1")))
	e.mustApply(t, tables.Replace(entity("p", "r", "A", "2")))
	got := e.mustGet(t, tables.Key{Partition: "p", Row: "r"})
	wantProperties(t, "replaced, not merged", got, map[string]any{"A": "2"})

	stale := got.ETag
	fresh := entity("p", "r", "A", "3")
	fresh.ETag = stale
	e.mustApply(t, tables.Replace(fresh))
	late := entity("p", "r", "A", "4")
	late.ETag = stale
	wantOpError(t, "replace with a stale ETag", e.apply(t, tables.Replace(late)), tables.ErrPrecondition, 0)
	wantProperties(t, "after it", e.mustGet(t, got.Key), map[string]any{"A": "3"})
}

func testUpsert(t *testing.T, e env) {
	e.mustApply(t, tables.Upsert(entity("p", "r", "A", "1", "B", "1")))
	again := entity("p", "r", "A", "2")
	again.ETag = `W/"stale"`
	e.mustApply(t, tables.Upsert(again))
	wantProperties(t, "upserted twice", e.mustGet(t, again.Key), map[string]any{"A": "2"})
}

func testDelete(t *testing.T, e env) {
	key := tables.Key{Partition: "p", Row: "r"}
	wantOpError(t, "delete a missing entity", e.apply(t, tables.Delete(key, "")), tables.ErrNotFound, 0)
	e.mustApply(t, tables.Insert(entity("p", "r", "A", "1")))
	stale := e.mustGet(t, key).ETag
	e.mustApply(t, tables.Replace(entity("p", "r", "A", "2")))
	wantOpError(t, "delete with a stale ETag", e.apply(t, tables.Delete(key, stale)), tables.ErrPrecondition, 0)
	e.mustApply(t, tables.Delete(key, e.mustGet(t, key).ETag))
	_, err := e.store.Get(t.Context(), e.table, key)
	wantError(t, "get a deleted entity", err, tables.ErrNotFound)
	e.mustApply(t, tables.Insert(entity("p", "r")), tables.Insert(entity("p", "s")))
	e.mustApply(t, tables.Delete(key, ""), tables.Delete(tables.Key{Partition: "p", Row: "s"}, ""))
	if rows := e.rows(t, tables.Query{Partition: "p"}); rows != nil {
		t.Errorf("rows after all are deleted: %q", rows)
	}
}

func testETags(t *testing.T, e env) {
	key := tables.Key{Partition: "p", Row: "r"}
	seen := map[string]string{}
	for name, op := range map[string]tables.Op{"insert": tables.Upsert(entity("p", "r")), "same again": tables.Upsert(entity("p", "r")), "replace": tables.Upsert(entity("p", "r", "A", "1"))} {
		e.mustApply(t, op)
		tag := e.mustGet(t, key).ETag
		if tag == "" || seen[tag] != "" {
			t.Errorf("%s: ETag %q is the one after %q", name, tag, seen[tag])
		}
		seen[tag] = name
		page, err := e.store.Query(t.Context(), e.table, tables.Query{Partition: "p"})
		if err != nil || len(page.Entities) != 1 || page.Entities[0].ETag != tag {
			t.Errorf("%s: a query gives %+v, %v, want the ETag %q of a get", name, page, err, tag)
		}
	}
}

func testCopies(t *testing.T, e env) {
	in := entity("p", "r", "Bytes", []byte("one"), "Text", "one")
	e.mustApply(t, tables.Insert(in))
	in.Properties["Bytes"].([]byte)[0] = 'X'
	in.Properties["Text"] = "X"
	first := e.mustGet(t, in.Key)
	first.Properties["Bytes"].([]byte)[0] = 'Y'
	first.Properties["More"] = "Y"
	page, err := e.store.Query(t.Context(), e.table, tables.Query{Partition: "p"})
	if err != nil {
		t.Fatal(err)
	}
	page.Entities[0].Properties["Bytes"].([]byte)[0] = 'Z'
	wantProperties(t, "after the caller changed its copies", e.mustGet(t, in.Key), map[string]any{"Bytes": []byte("one"), "Text": "one"})
}

func testCancelled(t *testing.T, e env) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := e.store.Get(ctx, e.table, tables.Key{Partition: "p", Row: "r"})
	_, queryErr := e.store.Query(ctx, e.table, tables.Query{Partition: "p"})
	_, scanErr := e.store.Scan(ctx, e.table, tables.Scan{Row: "r"})
	for name, err := range map[string]error{
		"create": e.store.CreateTable(ctx, e.table),
		"get":    getErr,
		"query":  queryErr,
		"scan":   scanErr,
		"apply":  e.store.Apply(ctx, e.table, tables.Insert(entity("p", "r"))),
	} {
		wantError(t, name, err, context.Canceled)
	}
}

func testTypes(t *testing.T, e env) {
	at := time.Date(2026, 11, 21, 10, 58, 1, 123456700, time.UTC)
	want := map[string]any{
		"Text": "a\tb\r\n\"quoted\" <é𝄞> \\ ' & \u2028", "Empty": "", "Long": strings.Repeat("x", 5000),
		"True": true, "False": false,
		"Int32": int32(math.MinInt32), "Zero32": int32(0), "Int64": int64(math.MaxInt64), "Min64": int64(math.MinInt64), "Small64": int64(5),
		"Time": at, "Whole": at.Truncate(time.Second), "First": time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC),
		"Last":  time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC),
		"Bytes": []byte{0, 1, 0xff}, "NoBytes": []byte{},
		"Digits": "123", "Date": "2026-11-21T10:58:01Z", "_x1": "underscore",
	}
	in := entity("p", "r")
	for name, v := range want {
		in.Properties[name] = v
	}
	in.Properties["Nil"] = nil
	in.Properties["Time"] = at.Add(99).In(time.FixedZone("east", 3600))
	e.mustApply(t, tables.Insert(in))
	wantProperties(t, "got", e.mustGet(t, in.Key), want)
	page, err := e.store.Query(t.Context(), e.table, tables.Query{Partition: "p"})
	if err != nil || len(page.Entities) != 1 {
		t.Fatalf("query: %d entities, %v", len(page.Entities), err)
	}
	wantProperties(t, "queried", page.Entities[0], want)

	in.Row = "in a transaction"
	e.mustApply(t, tables.Insert(in), tables.Insert(entity("p", "other")))
	wantProperties(t, "from a transaction", e.mustGet(t, in.Key), want)
}

func testDoubles(t *testing.T, e env) {
	for i, want := range []float64{0, 5, -5, 1.5, 0.1, 1e-7, 1e15, 1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		in := entity("p", strconv.Itoa(i), "V", want)
		e.mustApply(t, tables.Insert(in))
		got, ok := e.mustGet(t, in.Key).Properties["V"].(float64)
		if !ok || got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("double %v came back as %v (a float64: %t)", want, got, ok)
		}
	}
}

func testText(t *testing.T, e env) {
	for i, text := range []string{"", "short", strings.Repeat("a", 32768), strings.Repeat("a", 32769), "x" + strings.Repeat("𝄞", 40000), strings.Repeat("é", 100000)} {
		in := entity("p", strconv.Itoa(i))
		tables.PutText(in.Properties, "Doc", text)
		e.mustApply(t, tables.Insert(in))
		if got := tables.Text(e.mustGet(t, in.Key), "Doc"); got != text {
			t.Errorf("text %d of %d bytes came back with %d", i, len(text), len(got))
		}
	}
}

func testKeys(t *testing.T, e env) {
	var all []string
	for c := range 0x180 {
		all = append(all, "a"+string(rune(c))+"z")
	}
	all = append(all, "/subscriptions/0/resourceGroups/rg", "O'Brien", "100%", "a%2Fb", "a+b c", "~first", "=", "=2F", "日本語", "𝄞", "\xff\xfe", " lead", "trail ", "a:b;c,d(e)", `"`, ".", "..", "&$@!*")
	seen := map[string]bool{}
	for _, id := range all {
		key := tables.EscapeKey(id)
		if seen[key] {
			t.Errorf("key %q of %q is taken", key, id)
		}
		seen[key] = true
		in := entity("p-"+key, key, "Id", strings.ToValidUTF8(id, "?"))
		e.mustApply(t, tables.Insert(in))
		got := e.mustGet(t, in.Key)
		if got.Key != in.Key || got.String("Id") != in.Properties["Id"] {
			t.Errorf("got %v with %q, want %v with %q", got.Key, got.String("Id"), in.Key, in.Properties["Id"])
		}
		e.mustApply(t, tables.Replace(got), tables.Insert(entity(in.Partition, key+"-2")))
		e.mustApply(t, tables.Delete(tables.Key{Partition: in.Partition, Row: key + "-2"}, ""), tables.Upsert(got))
		if rows := e.rows(t, tables.Query{Partition: in.Partition, From: key}); len(rows) != 1 || rows[0] != key {
			t.Errorf("query of %q: rows %q", in.Partition, rows)
		}
		e.mustApply(t, tables.Delete(in.Key, e.mustGet(t, in.Key).ETag))
	}
}

func testRaceForKey(t *testing.T, e env) {
	var wins, losses atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			err := e.apply(t, tables.Insert(entity("p", "r", "Writer", strconv.Itoa(i))))
			switch {
			case err == nil:
				wins.Add(1)
			case errors.Is(err, tables.ErrExists):
				losses.Add(1)
			default:
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 || losses.Load() != 15 {
		t.Errorf("%d inserts of one key won and %d lost, want 1 and 15", wins.Load(), losses.Load())
	}
}
