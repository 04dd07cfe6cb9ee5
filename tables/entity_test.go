package tables

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestGetters(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := Entity{Properties: map[string]any{"S": "s", "I": int32(-1), "L": int64(1) << 40, "B": true, "F": 1.5, "T": at, "X": []byte{1}}}
	got := []any{e.String("S"), e.Int("I"), e.Int("L"), e.Bool("B"), e.Float("F"), e.Time("T"), e.Bytes("X")}
	testenv.Equal(t, "", []any{"s", int64(-1), int64(1) << 40, true, 1.5, at, []byte{1}}, got)
	for _, name := range []string{"S", "I", "L", "B", "F", "T", "X", "Missing"} {
		zero := 0
		for _, isZero := range []bool{e.String(name) == "", e.Int(name) == 0, !e.Bool(name), e.Float(name) == 0, e.Time(name).IsZero(), e.Bytes(name) == nil} {
			if isZero {
				zero++
			}
		}
		want := 5
		if name == "Missing" {
			want = 6
		}
		if zero != want {
			t.Errorf("%s: %d of 6 getters give zero, want %d", name, zero, want)
		}
	}
}

func TestPutText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", "é", "語", "𝄞"})
		text := strings.Repeat(unit.Draw(t, "head"), rapid.IntRange(0, 2).Draw(t, "n")) +
			strings.Repeat(unit.Draw(t, "body"), rapid.SampledFrom([]int{0, 1, 16384, 32767, 32768, 32769, 70000}).Draw(t, "length"))
		props := map[string]any{"Doc": "old", "Doc2": "old", "Doc3": "old", "Doc4": "old", "Doc5": "old", "Other": "kept"}
		PutText(props, "Doc", text)
		if got := Text(Entity{Properties: props}, "Doc"); got != text {
			t.Errorf("a text of %d bytes came back with %d", len(text), len(got))
		}
		parts := 0
		for name, v := range props {
			if name == "Other" {
				continue
			}
			parts++
			if _, err := valueSize(v); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		units := len(utf16.Encode([]rune(text)))
		if most := max(1, units/(maxTextUnits-1)+1); parts > most {
			t.Errorf("%d parts for %d units", parts, units)
		}
	})
}

// The size that a request is checked with is never below its final size, and upperSize is never below that.
func TestSizes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, want := utf16Len(s), len(utf16.Encode([]rune(s))); got != want {
			t.Errorf("utf16Len(%q) = %d, want %d", s, got, want)
		}
		op := Insert(Entity{Key: Key{Partition: "p", Row: "r"}, Properties: map[string]any{"S": s, "B": []byte(s), "I": int64(math.MinInt64), "F": math.SmallestNonzeroFloat64}})
		if exact, upper := RequestSize(op), upperSize(&op); upper < exact {
			t.Errorf("%q: the upper bound %d is below %d", s, upper, exact)
		}
	})
}

func FuzzContinuation(f *testing.F) {
	f.Add("p", (&Query{Partition: "p"}).Lookup().Next("1!8!x", "r"))
	f.Add("status", (&Scan{Row: "status"}).Lookup().Next("1!8!x", ""))
	f.Add("", "e30")
	f.Fuzz(func(t *testing.T, key, token string) {
		if token == "" {
			return // stop after the first page
		}
		query := &Query{Partition: key, Continuation: token}
		if c, err := query.Lookup().resume(); err == nil && (c.Query != key || c.Scan != "") {
			t.Errorf("token %q is of query %q or scan %q and was taken for query %q", token, c.Query, c.Scan, key)
		}
		scan := &Scan{Row: key, Continuation: token}
		if c, err := scan.Lookup().resume(); err == nil && (c.Scan != key || c.Query != "") {
			t.Errorf("token %q is of query %q or scan %q and was taken for scan %q", token, c.Query, c.Scan, key)
		}
	})
}

func BenchmarkMemory(b *testing.B) {
	ctx := b.Context()
	newStore := func(b *testing.B) *Memory {
		m := NewMemory()
		if err := m.CreateTable(ctx, "orchestrations"); err != nil {
			b.Fatal(err)
		}
		return m
	}
	props := map[string]any{"Events": make([]byte, 200), "Kind": "round", "At": time.Now()}
	b.Run("insert", func(b *testing.B) {
		m := newStore(b)
		for i := 0; b.Loop(); i++ {
			if err := m.Apply(ctx, "orchestrations", Insert(Entity{Key: Key{"p", fmt.Sprintf("r-%08d", i)}, Properties: props})); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("round", func(b *testing.B) {
		m := newStore(b)
		for i := 0; b.Loop(); i++ {
			if err := m.Apply(ctx, "orchestrations", Insert(Entity{Key: Key{"p", fmt.Sprintf("r-%08d", i)}, Properties: props}), Upsert(Entity{Key: Key{"p", "status"}, Properties: props})); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		m := newStore(b)
		for i := range 10000 {
			if err := m.Apply(ctx, "orchestrations", Insert(Entity{Key: Key{"p", fmt.Sprintf("r-%08d", i)}, Properties: props})); err != nil {
				b.Fatal(err)
			}
		}
		for i := 0; b.Loop(); i++ {
			if _, err := m.Get(ctx, "orchestrations", Key{"p", "r-00005000"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
