package tablestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/tables"
)

// sized is a storage limit: of(n) returns operations of size n in one partition, and the first one is refused when n is
// too large.
type sized struct {
	name        string
	limit, step int
	of          func(n int) []tables.Op
}

func one(e tables.Entity) []tables.Op { return []tables.Op{tables.Insert(e)} }

func sizes() []sized {
	text := func(s string) func(int) []tables.Op {
		return func(n int) []tables.Op { return one(entity("p", "r", "V", strings.Repeat(s, n))) }
	}
	return []sized{
		{"units of a partition key", 512, 1, func(n int) []tables.Op { return one(entity(strings.Repeat("k", n), "r", "V", "x")) }},
		{"units of a row key", 512, 1, func(n int) []tables.Op { return one(entity("p", strings.Repeat("語", n), "V", "x")) }},
		{"pairs of units of a row key", 256, 1, func(n int) []tables.Op { return one(entity("p", strings.Repeat("𝄞", n), "V", "x")) }},
		{"units of a text", 32 << 10, 1, text("a")},
		{"units of a text of three bytes each", 32 << 10, 1, text("語")},
		{"pairs of units of a text", 16 << 10, 1, text("𝄞")},
		{"bytes of a binary", 64 << 10, 1, func(n int) []tables.Op { return one(entity("p", "r", "V", make([]byte, n))) }},
		{"properties", 252, 1, func(n int) []tables.Op {
			e := entity("p", "r")
			for i := range n {
				e.Properties[fmt.Sprintf("P%03d", i)] = int64(i)
			}
			return one(e)
		}},
		{"units of a property's name", 255, 1, func(n int) []tables.Op { return one(entity("p", "r", strings.Repeat("n", n), "x")) }},
		{"bytes of an entity of text", 1 << 20, 2, func(n int) []tables.Op { return one(ofSize("r", n)) }},
		{"bytes of an entity of binary", 1 << 20, 1, func(n int) []tables.Op { return one(binaryOfSize("r", n)) }},
		{"operations", 100, 1, func(n int) []tables.Op {
			ops := make([]tables.Op, n)
			for i := range ops {
				ops[i] = tables.Insert(entity("p", fmt.Sprintf("%03d", i), "V", int64(i)))
			}
			return ops
		}},
		{"bytes of a transaction", largestTransaction(), 1, transactionOf},
	}
}

// binaryOfSize returns an entity of bytes whose size by the service's rules is n.
func binaryOfSize(row string, n int) tables.Entity {
	e := entity("p", row)
	n -= 4 + 2*len("p") + 2*len(row)
	for i := 0; n > 0; i++ {
		name := fmt.Sprintf("V%02d", i)
		overhead := 8 + 2*len(name) + 4
		size := min(n-overhead, 64<<10)
		if rest := n - overhead - size; rest > 0 && rest <= overhead {
			size -= overhead + 1 // leave room for one more property
		}
		e.Properties[name] = make([]byte, size)
		n -= overhead + size
	}
	return e
}

// transactionOf returns a transaction of 6 entities with texts that take n bytes in a request: < takes six, but one in
// storage.
func transactionOf(n int) []tables.Op {
	var ops []tables.Op
	for row := range 6 {
		e := entity("p", fmt.Sprintf("%03d", row))
		for p := range 5 {
			size := min(n/6, 32<<10-6)
			text := strings.Repeat("<", size)
			if n -= 6 * size; n < 6 {
				text, n = text+strings.Repeat("a", n), 0
			}
			e.Properties[fmt.Sprintf("T%02d", p)] = text
		}
		ops = append(ops, tables.Insert(e))
	}
	return ops
}

// largestTransaction returns the longest text that fits 4 MiB with the overhead of a request. All stores count alike,
// so the store in memory finds it.
func largestTransaction() int {
	store := tables.NewMemory()
	fits := func(n int) bool {
		return !errors.Is(store.Apply(context.Background(), "none", transactionOf(n)...), tables.ErrTooLarge)
	}
	least, most := 3<<20, 4<<20
	for least+1 < most {
		if middle := (least + most) / 2; fits(middle) {
			least = middle
		} else {
			most = middle
		}
	}
	return least
}

// Values at and one below each limit are stored and read back unchanged. A value above it fails with the limit in the
// error and stores nothing. The store itself refuses, because the emulator accepts some larger values.
func testSweep(t *testing.T, e env) {
	for _, s := range sizes() {
		for _, n := range []int{s.limit - s.step, s.limit, s.limit + s.step} {
			ops, what := s.of(n), fmt.Sprintf("%d %s", n, s.name)
			err := e.apply(t, ops...)
			if n > s.limit {
				wantError(t, what, err, tables.ErrTooLarge)
				wantText(t, what, err, "at most", "more than")
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			for _, op := range ops {
				e.wantStored(t, what, op.Entity, n <= s.limit)
			}
		}
	}
}

// wantStored checks that the entity exists, or not, and deletes it.
func (e env) wantStored(t *testing.T, what string, want tables.Entity, stored bool) {
	t.Helper()
	got, err := e.store.Get(t.Context(), e.table, want.Key)
	if !stored {
		if !errors.Is(err, tables.ErrNotFound) && !errors.Is(err, tables.ErrTooLarge) {
			t.Errorf("%s: it is there, or %v", what, err)
		}
		return
	}
	// cmp compares bytes one by one, which takes seconds for all limits.
	same := len(want.Properties)+len(got.Properties) == 0 || cmp.Equal(want.Properties, got.Properties, cmp.Comparer(bytes.Equal))
	if err != nil || !same {
		t.Errorf("%s: %v, or other properties are stored", what, err)
	}
	e.mustApply(t, tables.Delete(want.Key, ""))
}

// wantText checks that the error contains one of these texts.
func wantText(t *testing.T, what string, err error, any ...string) {
	t.Helper()
	for _, text := range any {
		if err != nil && strings.Contains(err.Error(), text) {
			return
		}
	}
	t.Errorf("%s: %.200v does not say the limit", what, err)
}

// The limits of queries and scans. Every query matches an existing row.
func testQuerySweep(t *testing.T, e env) {
	row := entity("p", "r", "Bytes", make([]byte, 512), "Text", strings.Repeat("a", 512))
	for i := range 249 {
		row.Properties[fmt.Sprintf("P%03d", i)] = true
	}
	e.mustApply(t, tables.Insert(row))
	where := func(n int) map[string]any {
		w := map[string]any{}
		for i := range n {
			w[fmt.Sprintf("P%03d", i)] = true
		}
		return w
	}
	selected := func(n int) []string {
		names := []string{"Text"}
		for i := range n - 1 {
			names = append(names, fmt.Sprintf("P%03d", i))
		}
		return names
	}
	for _, tt := range []struct {
		name  string
		limit int
		want  error
		q     func(n int) tables.Query
		finds func(n int) int
	}{
		{"equalities", 12, tables.ErrTooLarge, func(n int) tables.Query { return tables.Query{From: "q", To: "s", Where: where(n)} }, func(int) int { return 1 }},
		{"units to look for", 512, tables.ErrTooLarge, func(n int) tables.Query { return tables.Query{Where: map[string]any{"Text": strings.Repeat("a", n)}} }, func(n int) int { return n / 512 }},
		{"bytes to look for", 512, tables.ErrTooLarge, func(n int) tables.Query { return tables.Query{Where: map[string]any{"Bytes": make([]byte, n)}} }, func(n int) int { return n / 512 }},
		{"selected properties", 252, tables.ErrTooLarge, func(n int) tables.Query { return tables.Query{Select: selected(n)} }, func(int) int { return 1 }},
		{"rows of a page", 1000, tables.ErrInvalid, func(n int) tables.Query { return tables.Query{Limit: n} }, func(int) int { return 1 }},
		{"units of a bound", 512, tables.ErrTooLarge, func(n int) tables.Query { return tables.Query{To: strings.Repeat("z", n)} }, func(int) int { return 1 }},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			q := tt.q(n)
			q.Partition = "p"
			page, err := e.store.Query(t.Context(), e.table, q)
			switch what := fmt.Sprintf("%d %s", n, tt.name); {
			case n > tt.limit:
				wantError(t, what, err, tt.want)
				wantText(t, what, err, "at most", "use 1 to")
			case err != nil || len(page.Entities) != tt.finds(n):
				t.Errorf("%s: %d rows, %v", what, len(page.Entities), err)
			}
		}
	}
	for n := 62; n <= 64; n++ {
		wantErr := error(nil)
		if n > 63 {
			wantErr = tables.ErrInvalid
		}
		wantError(t, fmt.Sprintf("a table's name of %d", n), e.store.CreateTable(t.Context(), e.table+strings.Repeat("x", n-len(e.table))), wantErr)
	}
}
