package pollertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/vibedata/roundhouse/poller"
)

// Source is a source in memory whose rows are numbered from 1. It is safe for concurrent use.
type Source struct {
	mu   sync.Mutex
	rows int
	// err is the answer to all calls while it is set; held hides rows from this number on, 0 none.
	err  error
	held int
}

var _ poller.Source = (*Source)(nil)

// Append adds rows, and returns their new number.
func (s *Source) Append(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows += n
	return s.rows
}

// Fail makes all calls return an error; nil makes them work again.
func (s *Source) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Hold hides rows from a number on, as an open transaction does; 0 hides none.
func (s *Source) Hold(from int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = from
}

// Definition returns that of a table.
func (s *Source) Definition() poller.Definition {
	return poller.Definition{Dialect: "memory", SourceID: "test", Object: "rows", Cursor: "id", Keys: []string{"id"}, Bound: "single-writer"}
}

// Check returns no error.
func (s *Source) Check(context.Context) ([]string, error) { return nil, nil }

// Close does nothing.
func (s *Source) Close() error { return nil }

// Row returns a row by its number.
func Row(n int) poller.Row {
	key := json.RawMessage(fmt.Sprintf(`{"id":%d}`, n))
	return poller.Row{Cursor: poller.Cursor{Kind: "integer", Value: strconv.Itoa(n)}, Key: key, Data: key}
}

// Number returns the number of a row.
func Number(c poller.Cursor) int {
	n, err := strconv.Atoi(c.Value)
	if err != nil {
		return 0
	}
	return n
}

// Fetch returns rows after a position.
func (s *Source) Fetch(ctx context.Context, after poller.Cursor, limit, _ int) (poller.Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return poller.Batch{}, s.err
	}
	if err := ctx.Err(); err != nil {
		return poller.Batch{}, err
	}
	var b poller.Batch
	last := s.rows
	if s.held > 0 && s.held <= last {
		last, b.HeldBack = s.held-1, "a transaction is open"
	}
	for n := Number(after) + 1; n <= last && len(b.Rows) < limit; n++ {
		b.Rows = append(b.Rows, Row(n))
	}
	b.More = Number(after)+len(b.Rows) < last
	return b, nil
}

// End returns the last row.
func (s *Source) End(context.Context) (poller.Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.rows == 0 {
		return poller.Cursor{}, s.err
	}
	return Row(s.rows).Cursor, nil
}
