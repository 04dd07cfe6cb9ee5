package hostlock_test

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// A held lock is listed with its holder until it is released or its lease ends.
func TestList(t *testing.T) {
	t.Parallel()
	c := newClock()
	node := nodes(t, tables.NewMemory(), c)
	list := func(want ...string) (held []hostlock.Held) {
		t.Helper()
		held, err := node("a").List(t.Context())
		if err != nil || len(held) != len(want) {
			t.Fatalf("%+v, %v; want %v", held, err, want)
		}
		for i, h := range held {
			if h.Job != want[i] {
				t.Errorf("%+v, want %s", h, want[i])
			}
		}
		return held
	}
	list()
	taken := c.now()
	mine, err := node("a").Acquire(t.Context(), "collect", lease)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Must(node("b").Acquire(t.Context(), "drain/1", 2*lease))(t)
	c.put(lease / 2)
	if mine, err = node("a").Renew(t.Context(), mine, lease); err != nil {
		t.Fatal(err)
	}
	held := list("collect", "drain/1")
	if !held[0].AcquiredAt.Equal(taken.UTC().Truncate(time.Microsecond)) || held[0].Node == held[1].Node {
		t.Errorf("%+v", held)
	}
	testenv.OK(t, node("a").Release(t.Context(), mine))
	list("drain/1")
	c.put(2 * lease)
	list()
}
