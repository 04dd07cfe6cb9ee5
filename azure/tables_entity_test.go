package azure

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// An entity takes no more of a request than the tables package counts for it.
func TestRequestSize(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		e := tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}, Properties: map[string]any{"S": s, "B": []byte(s), "I": int64(math.MinInt64), "F": math.SmallestNonzeroFloat64}}
		body := testenv.Must(encodeEntity(&e))(t)
		if got := tables.RequestSize(tables.Insert(e)); got < len(body) {
			t.Errorf("%q: counted %d bytes of %d", s, got, len(body))
		}
	})
}

// A row that the tables package accepts has a form as the service's JSON, is no larger than counted, and is decoded
// unchanged.
func FuzzEntities(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		key := tables.Key{Partition: tables.EscapeKey(s.Name(100)), Row: tables.EscapeKey(s.Name(100))}
		e := tables.Entity{Key: key, Properties: anyProperties(s)}
		op := tables.Insert(e)
		if tables.CheckOps([]tables.Op{op}) != nil {
			return
		}
		body, err := encodeEntity(&e)
		if err != nil {
			t.Fatalf("it is accepted and cannot be written: %v", err)
		}
		if size := tables.RequestSize(op); size < len(body) {
			t.Errorf("counted %d bytes of %d", size, len(body))
		}
		memory := tables.NewMemory()
		testenv.OK(t, memory.CreateTable(t.Context(), "rows"))
		testenv.OK(t, memory.Apply(t.Context(), "rows", op))
		want := testenv.Must(memory.Get(t.Context(), "rows", key))(t)
		wire, err := decodeEntity(body)
		if diff := cmp.Diff(want.Properties, wire.Properties, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); err != nil || diff != "" || wire.Key != e.Key {
			t.Errorf("wire: %v, %v (-memory +wire)\n%s", wire.Key, err, diff)
		}
	})
}

// anyProperties returns properties of every type, with names and values that a store may refuse.
func anyProperties(s *fuzzvalue.Source) map[string]any {
	props := map[string]any{}
	values := []func() any{
		func() any { return s.Text(40_000) },
		func() any { return s.Bool() },
		func() any { return int32(s.Int64()) },
		func() any { return s.Int64() },
		func() any { return math.Float64frombits(uint64(s.Int64())) },
		func() any { return s.Time() },
		func() any { return s.Bytes(64) },
		func() any { return nil },
	}
	for i := range s.Int(12) {
		name := "P" + string(rune('A'+i))
		if s.Int(5) == 0 {
			name = s.Text(260)
		}
		props[name] = values[s.Int(len(values)-1)]()
	}
	return props
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
	want := tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}, ETag: "tag", Properties: map[string]any{"Whole": 5.0, "Exp": 1000.0, "Int": int32(5), "Big": 3e9,
		"G": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "D": 5.0, "Inf": math.Inf(-1)}}
	testenv.Equal(t, "", want, e)
}

func TestToASCII(t *testing.T) {
	t.Parallel()
	got := string(toASCII([]byte(`{"a":"é語𝄞\n"}`)))
	if want := `{"a":"\u00e9\u8a9e\ud834\udd1e\n"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
