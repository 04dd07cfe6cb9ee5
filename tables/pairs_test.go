package tables

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// anyProperties returns properties of every type, with names and values that a store may refuse.
func anyProperties(s *fuzzvalue.Source) map[string]any {
	props := map[string]any{}
	for i := range s.Int(12) {
		name := fmt.Sprintf("P%d", i)
		if s.Int(5) == 0 {
			name = s.Text(260)
		}
		switch s.Int(8) {
		case 0:
			props[name] = s.Text(70_000)
		case 1:
			props[name] = s.Bool()
		case 2:
			props[name] = int32(s.Int64())
		case 3:
			props[name] = s.Int64()
		case 4:
			props[name] = math.Float64frombits(uint64(s.Int64()))
		case 5:
			props[name] = s.Time()
		case 6:
			props[name] = s.Bytes(64)
		case 7:
			PutText(props, "T"+fmt.Sprint(i)+"x", s.Text(200_000))
		default:
			props[name] = nil
		}
	}
	return props
}

// asStored returns properties as storage returns them: without nils, at its precision of time.
func asStored(props map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range props {
		if t, ok := v.(time.Time); ok {
			v = storedTime(t)
		}
		if v != nil {
			out[name] = v
		}
	}
	return out
}

// A store returns every row that it accepts.
func FuzzRows(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		e := Entity{Key: Key{EscapeKey(s.Name(100)), EscapeKey(s.Name(100))}, Properties: anyProperties(s)}
		op, store := Insert(e), NewMemory()
		testenv.OK(t, store.CreateTable(context.Background(), "rows"))
		err := store.Apply(context.Background(), "rows", op)
		if (err == nil) != (CheckOps([]Op{op}) == nil) {
			t.Fatalf("memory says %v, the check %v", err, CheckOps([]Op{op}))
		}
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		want := asStored(e.Properties)
		got, err := store.Get(context.Background(), "rows", e.Key)
		if diff := cmp.Diff(want, got.Properties, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("memory: %v\n%s", err, diff)
		}
		for name := range e.Properties {
			if len(name) > 2 && name[len(name)-1] == 'x' && Text(e, name) != Text(got, name) {
				t.Errorf("the text %s is another", name)
			}
		}
	})
}

// A text has one legal form in keys and one in names of blobs, and both lead back to the text.
func FuzzEscapes(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		text := s.Name(100)
		key, segment := EscapeKey(text), EscapeSegment(text)
		for form, unescaped := range map[string]func(string) (string, error){key: UnescapeKey, segment: UnescapeSegment} {
			if got, err := unescaped(form); err != nil || got != text {
				t.Errorf("%q is %q, and back %q, %v", text, form, got, err)
			}
		}
		store := blobs.NewMemory()
		err := store.CreateContainer(t.Context(), "names")
		if err == nil {
			err = store.Put(t.Context(), "names", segment+"/"+segment, nil)
		}
		if err != nil || checkKeyPart("key", key) != nil {
			t.Errorf("%q: %v, %v", text, err, checkKeyPart("key", key))
		}
	})
}

// A lookup accepts its own tokens, wherever the page begins.
func FuzzPlaces(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		key := func() string { return EscapeKey(s.Name(512)) }
		partition, row := key(), key()
		if CheckKey(Key{partition, row}) != nil {
			return
		}
		q := Query{Partition: partition}
		q.Continuation = q.Lookup().Next(partition, row)
		if c, err := q.Lookup().resume(); err != nil || c.Partition != partition || c.Row != row {
			t.Errorf("query of %q behind %q: %+v, %v", partition, row, c, err)
		}
		scan := Scan{Row: row}
		scan.Continuation = scan.Lookup().Next(partition, row)
		if c, err := scan.Lookup().resume(); err != nil || c.Partition != partition || c.Row != row {
			t.Errorf("scan of %q behind %q: %+v, %v", row, partition, c, err)
		}
	})
}
