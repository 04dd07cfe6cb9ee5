package logicalsource_test

import (
	"errors"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/logicalsource"
)

// A look at the slot that ends before the log reports that more follows, and a look that finds only changes before the
// position continues.
func TestWindow(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(6)
	all := d.drain(d.source(), poller.Cursor{}, 1000, 1<<20)
	for _, window := range []int{1, 2, 3, 7} {
		for _, limit := range []int{1, 3, 1000} {
			s := d.source()
			s.SetWindow(window)
			// The slot does not move, because every fetch starts at the beginning.
			b, err := s.Fetch(t.Context(), poller.Cursor{}, limit, 1<<20)
			if err != nil || len(b.Rows) == 0 || !b.More {
				t.Errorf("window %d, limit %d: %d rows, more %v, %v", window, limit, len(b.Rows), b.More, err)
			}
		}
	}
	s := d.source()
	s.SetWindow(1)
	testenv.Equal(t, "rows", all, d.drain(s, poller.Cursor{}, 2, 1<<20))
}

// A position after all changes of a transaction, as operators write it, is before the next transaction.
func TestPlaceBehindTransaction(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(5)
	all := d.drain(d.source(), poller.Cursor{}, 1000, 1<<20)
	place := parse(t, all[6].Cursor.Value) // the fourth transaction has the rows 6 to 9
	place.Change = 99
	s := d.source()
	s.SetWindow(1)
	testenv.Equal(t, "rows", all[10:], d.drain(s, poller.Cursor{Kind: "lsn", Value: place.String()}, 2, 1<<20))
}

// A truncated message is an error and no panic.
func TestMessagesThatAreCutOff(t *testing.T) {
	t.Parallel()
	for _, whole := range []string{
		"B\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x03",
		"R\x00\x00\x00\x01public\x00orders\x00d\x00\x01\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff",
		"I\x00\x00\x00\x01N\x00\x01t\x00\x00\x00\x0242",
		"D\x00\x00\x00\x01K\x00\x01t\x00\x00\x00\x0242",
	} {
		if err := logicalsource.Parse([]byte(whole)); err != nil {
			t.Errorf("%q: %v", whole, err)
		}
		for n := range len(whole) {
			if err := logicalsource.Parse([]byte(whole[:n])); !errors.Is(err, logicalsource.ErrMessage) {
				t.Errorf("%q: %v", whole[:n], err)
			}
		}
	}
}
