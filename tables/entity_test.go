package tables

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGetters(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := Entity{Properties: map[string]any{"S": "s", "I": int32(-1), "L": int64(1) << 40, "B": true, "F": 1.5, "T": at, "X": []byte{1}}}
	got := []any{e.String("S"), e.Int("I"), e.Int("L"), e.Bool("B"), e.Float("F"), e.Time("T"), e.Bytes("X")}
	if diff := cmp.Diff([]any{"s", int64(-1), int64(1) << 40, true, 1.5, at, []byte{1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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

func TestSizes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, want := utf16Len(s), len(utf16.Encode([]rune(s))); got != want {
			t.Errorf("utf16Len(%q) = %d, want %d", s, got, want)
		}
		e := Entity{Key: Key{Partition: "p", Row: "r"}, Properties: map[string]any{"S": s, "B": []byte(s), "I": int64(math.MinInt64), "F": math.SmallestNonzeroFloat64}}
		body, err := encodeEntity(&e)
		if err != nil {
			t.Fatal(err)
		}
		op := Insert(e)
		if got := requestSize(&op); got < len(body) {
			t.Errorf("%q: counted %d bytes of %d", s, got, len(body))
		}
		if exact, upper := requestSize(&op), upperSize(&op); upper < exact {
			t.Errorf("%q: the upper bound %d is below %d", s, upper, exact)
		}
	})
}

func FuzzDecodeEntity(f *testing.F) {
	for _, s := range []string{
		`{"odata.etag":"W/\"x\"","PartitionKey":"p","RowKey":"r","Timestamp":"2026-01-01T00:00:00Z","A":"1","B@odata.type":"Edm.Int64","B":"5","C":5.0,"D":5}`,
		`{"T@odata.type":"Edm.DateTime","T":"2026-01-01T00:00:00.1234567Z","X@odata.type":"Edm.Binary","X":"AQ==","N":null,"F@odata.type":"Edm.Double","F":"NaN"}`,
		`{"A":{}}`, `{"A":[1]}`, `[]`, `{"A@odata.type":5,"A":true}`, `{"A":99999999999}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := decodeEntity(body)
		if err != nil {
			return
		}
		for name, v := range e.Properties {
			switch v.(type) {
			case string, bool, int32, int64, float64, time.Time, []byte:
			default:
				t.Errorf("%s is a %T", name, v)
			}
		}
	})
}

func TestDecodeValue(t *testing.T) {
	t.Parallel()
	e, err := decodeEntity([]byte(`{"odata.metadata":"m","odata.etag":"tag","PartitionKey":"p","RowKey":"r","Timestamp":"t","Whole":5.0,"Exp":1E3,"Int":5,
		"Big":3000000000,"G@odata.type":"Edm.Guid","G":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","D@odata.type":"Edm.Double","D":5,"N":null,"Inf@odata.type":"Edm.Double","Inf":"-Infinity"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Entity{Key: Key{"p", "r"}, ETag: "tag", Properties: map[string]any{"Whole": 5.0, "Exp": 1000.0, "Int": int32(5), "Big": 3e9,
		"G": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "D": 5.0, "Inf": math.Inf(-1)}}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzContinuation(f *testing.F) {
	f.Add("p", (&Query{Partition: "p"}).lookup().next("1!8!x", "r"))
	f.Add("status", (&Scan{Row: "status"}).lookup().next("1!8!x", ""))
	f.Add("", "e30")
	f.Fuzz(func(t *testing.T, key, token string) {
		if token == "" {
			return // the first page
		}
		query := &Query{Partition: key, Continuation: token}
		if c, err := query.lookup().resume(); err == nil && (c.Query != key || c.Scan != "") {
			t.Errorf("token %q is of query %q or scan %q and was taken for query %q", token, c.Query, c.Scan, key)
		}
		scan := &Scan{Row: key, Continuation: token}
		if c, err := scan.lookup().resume(); err == nil && (c.Scan != key || c.Query != "") {
			t.Errorf("token %q is of query %q or scan %q and was taken for scan %q", token, c.Query, c.Scan, key)
		}
	})
}

func TestToASCII(t *testing.T) {
	t.Parallel()
	got := string(toASCII([]byte(`{"a":"é語𝄞\n"}`)))
	if want := `{"a":"\u00e9\u8a9e\ud834\udd1e\n"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
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
