package tablestest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/tables"
)

func testTransaction(t *testing.T, e env) {
	e.mustApply(t, tables.Insert(entity("p", "a", "V", "1")), tables.Insert(entity("p", "b", "V", "1")), tables.Insert(entity("p", "c", "V", "1")))
	replaced := e.mustGet(t, tables.Key{Partition: "p", Row: "a"})
	replaced.Properties["V"] = "2"
	e.mustApply(t,
		tables.Replace(replaced),
		tables.Upsert(entity("p", "b", "V", "2")),
		tables.Delete(tables.Key{Partition: "p", Row: "c"}, e.mustGet(t, tables.Key{Partition: "p", Row: "c"}).ETag),
		tables.Insert(entity("p", "d", "V", "2")),
		tables.Upsert(entity("p", "e", "V", "2")))
	if diff := cmp.Diff([]string{"a", "b", "d", "e"}, e.rows(t, tables.Query{Partition: "p", Where: map[string]any{"V": "2"}})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}

	ops := make([]tables.Op, 100)
	for i := range ops {
		ops[i] = tables.Insert(entity("full", fmt.Sprintf("%03d", i)))
	}
	e.mustApply(t, ops...)
	if n := len(e.rows(t, tables.Query{Partition: "full"})); n != 100 {
		t.Errorf("a transaction of 100 made %d rows", n)
	}
}

func testTransactionFails(t *testing.T, e env) {
	tests := []struct {
		name string
		bad  func(existing tables.Entity) tables.Op
		want error
	}{
		{"insert an existing row", func(x tables.Entity) tables.Op { return tables.Insert(x) }, tables.ErrExists},
		{"replace a missing row", func(x tables.Entity) tables.Op { return tables.Replace(entity(x.Partition, "missing")) }, tables.ErrNotFound},
		{"delete a missing row", func(x tables.Entity) tables.Op {
			return tables.Delete(tables.Key{Partition: x.Partition, Row: "missing"}, "")
		}, tables.ErrNotFound},
		{"replace with a stale ETag", func(x tables.Entity) tables.Op { return tables.Replace(x) }, tables.ErrPrecondition},
		{"delete with a stale ETag", func(x tables.Entity) tables.Op { return tables.Delete(x.Key, x.ETag) }, tables.ErrPrecondition},
	}
	const size = 12
	for n, test := range tests {
		for _, at := range []int{0, size / 2, size - 1} {
			name := fmt.Sprintf("%s at %d", test.name, at)
			partition := fmt.Sprintf("p%d-%d", n, at)
			e.mustApply(t, tables.Insert(entity(partition, "x", "V", "1")), tables.Insert(entity(partition, "y", "V", "1")))
			stale := e.mustGet(t, tables.Key{Partition: partition, Row: "x"})
			e.mustApply(t, tables.Upsert(entity(partition, "x", "V", "now")))
			ops := []tables.Op{
				tables.Upsert(entity(partition, "y", "V", "lost")),
				tables.Insert(entity(partition, "z", "V", "lost")),
			}
			for i := len(ops); i < size; i++ {
				ops = append(ops, tables.Insert(entity(partition, fmt.Sprintf("new%d", i))))
			}
			if at == 0 {
				ops = ops[2:]
				ops = append(ops, tables.Insert(entity(partition, "v")), tables.Insert(entity(partition, "w")))
			}
			ops[at] = test.bad(stale)
			wantOpError(t, name, e.apply(t, ops...), test.want, at)
			if diff := cmp.Diff([]string{"x", "y"}, e.rows(t, tables.Query{Partition: partition})); diff != "" {
				t.Errorf("%s: rows (-want +got):\n%s", name, diff)
			}
			for row, want := range map[string]string{"x": "now", "y": "1"} {
				wantProperties(t, name, e.mustGet(t, tables.Key{Partition: partition, Row: row}), map[string]any{"V": want})
			}
		}
	}
}

func testTransactionRules(t *testing.T, e env) {
	wantError(t, "no operations", e.apply(t), tables.ErrInvalid)
	tooMany := make([]tables.Op, 101)
	for i := range tooMany {
		tooMany[i] = tables.Insert(entity("p", fmt.Sprintf("%03d", i)))
	}
	wantError(t, "101 operations", e.apply(t, tooMany...), tables.ErrTooLarge)
	a := tables.Insert(entity("p", "a"))
	wantOpError(t, "two partitions", e.apply(t, a, tables.Insert(entity("q", "b"))), tables.ErrInvalid, 1)
	wantOpError(t, "a row twice", e.apply(t, a, tables.Insert(entity("p", "b")), tables.Delete(a.Entity.Key, "")), tables.ErrInvalid, 2)
	wantOpError(t, "no kind", e.apply(t, a, tables.Op{Entity: entity("p", "b")}), tables.ErrInvalid, 1)
	if rows := e.rows(t, tables.Query{Partition: "p"}); rows != nil {
		t.Errorf("rows after refused transactions: %q", rows)
	}
}

// Every transaction inserts its own row and one common row: the rows of the losers must not exist.
func testRaceOfTransactions(t *testing.T, e env) {
	var winner atomic.Value
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			own := fmt.Sprintf("own%02d", i)
			err := e.apply(t, tables.Insert(entity("p", own)), tables.Insert(entity("p", "round")), tables.Upsert(entity("p", "status", "By", own)))
			switch {
			case err == nil && !winner.CompareAndSwap(nil, own):
				t.Errorf("%s won, as %v did", own, winner.Load())
			case err != nil && !errors.Is(err, tables.ErrExists):
				t.Errorf("%s: %v", own, err)
			}
		})
	}
	wg.Wait()
	own, _ := winner.Load().(string)
	if diff := cmp.Diff([]string{own, "round", "status"}, e.rows(t, tables.Query{Partition: "p"})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	wantProperties(t, "status", e.mustGet(t, tables.Key{Partition: "p", Row: "status"}), map[string]any{"By": own})
}

// Binary travels as base64, text as JSON: 4 MiB of request are 3 MiB of bytes, or a sixth of it in a text of "<".
func testRequestSize(t *testing.T, e env) {
	binary := func(partition string, total int) []tables.Op {
		var ops []tables.Op
		for row := 0; total > 0; row++ {
			in := entity(partition, fmt.Sprintf("%03d", row))
			for p := 0; p < 10 && total > 0; p++ {
				n := min(total, 64<<10)
				in.Properties[fmt.Sprintf("B%d", p)] = make([]byte, n)
				total -= n
			}
			ops = append(ops, tables.Insert(in))
		}
		return ops
	}
	text := func(partition string, properties int) []tables.Op {
		var ops []tables.Op
		for i := range properties {
			ops = append(ops, tables.Insert(entity(partition, fmt.Sprintf("%03d", i), "T", strings.Repeat("<", 32768))))
		}
		return ops
	}
	e.mustApply(t, binary("fits", 3<<20-16<<10)...)
	wantError(t, "3 MiB of bytes", e.apply(t, binary("toolarge", 3<<20)...), tables.ErrTooLarge)
	e.mustApply(t, text("fits2", 21)...)
	wantError(t, "22 texts of escapes", e.apply(t, text("toolarge", 22)...), tables.ErrTooLarge)
	if rows := e.rows(t, tables.Query{Partition: "toolarge"}); rows != nil {
		t.Errorf("rows of refused transactions: %q", rows)
	}
}
