package tables

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"time"
)

// String returns a string property, "" when it is missing or of another type.
func (e Entity) String(name string) string {
	v, _ := e.Properties[name].(string)
	return v
}

// Int returns an int32 or int64 property, 0 when it is missing or of another type.
func (e Entity) Int(name string) int64 {
	if v, ok := e.Properties[name].(int32); ok {
		return int64(v)
	}
	v, _ := e.Properties[name].(int64)
	return v
}

// Bool returns a bool property, false when it is missing or of another type.
func (e Entity) Bool(name string) bool {
	v, _ := e.Properties[name].(bool)
	return v
}

// Float returns a float64 property, 0 when it is missing or of another type.
func (e Entity) Float(name string) float64 {
	v, _ := e.Properties[name].(float64)
	return v
}

// Time returns a time property in UTC, the zero time when it is missing or of another type.
func (e Entity) Time(name string) time.Time {
	v, _ := e.Properties[name].(time.Time)
	return v
}

// Bytes returns a binary property, nil when it is missing or of another type.
func (e Entity) Bytes(name string) []byte {
	v, _ := e.Properties[name].([]byte)
	return v
}

// All iterates over the entities of a query, over all its pages. It stops at the first error, which it yields with a
// zero Entity.
func All(ctx context.Context, store Store, table string, q Query) iter.Seq2[Entity, error] {
	return walk(q.Continuation, func(continuation string) (Page, error) {
		q := q
		q.Continuation = continuation
		return store.Query(ctx, table, q)
	})
}

// ScanAll iterates over the entities of a scan, as All does over those of a query.
func ScanAll(ctx context.Context, store Store, table string, s Scan) iter.Seq2[Entity, error] {
	return walk(s.Continuation, func(continuation string) (Page, error) {
		s := s
		s.Continuation = continuation
		return store.Scan(ctx, table, s)
	})
}

// walk iterates over the entities of pages, from the page of continuation on. The result can be used more than once.
func walk(continuation string, read func(continuation string) (Page, error)) iter.Seq2[Entity, error] {
	return func(yield func(Entity, error) bool) {
		next := continuation
		for {
			page, err := read(next)
			if err != nil {
				yield(Entity{}, err)
				return
			}
			for _, e := range page.Entities {
				if !yield(e, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			next = page.Next
		}
	}
}

// property is one property of a stored row. A slice of them takes less time and memory than a map.
type property struct {
	name  string
	value any
}

// stored appends a deep copy of properties to out, in the form of the service: without nils, with times in UTC at a
// precision of 100 ns.
func stored(out []property, props map[string]any) []property {
	for name, value := range props {
		switch v := value.(type) { // reuse the interface of a value that stays as it is, to save memory
		case nil:
		case []byte:
			out = append(out, property{name, append([]byte{}, v...)})
		case time.Time:
			if kept := storedTime(v); kept != v {
				value = kept
			}
			out = append(out, property{name, value})
		default:
			out = append(out, property{name, value})
		}
	}
	return out
}

func storedTime(t time.Time) time.Time { return t.UTC().Truncate(100 * time.Nanosecond) }

// copied returns a deep copy of the selected stored properties, of all when selected is empty.
func copied(props []property, selected []string) map[string]any {
	out := make(map[string]any, len(props))
	for _, p := range props {
		if len(selected) > 0 && !slices.Contains(selected, p.name) {
			continue
		}
		if b, ok := p.value.([]byte); ok {
			out[p.name] = bytes.Clone(b)
			continue
		}
		out[p.name] = p.value
	}
	return out
}
