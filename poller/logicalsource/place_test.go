package logicalsource_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/logicalsource"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// confirmed returns the start of the slot.
func (d database) confirmed() (at string) {
	d.t.Helper()
	testenv.OK(d.t, d.QueryRowContext(d.t.Context(), "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", d.slot()).Scan(&at))
	return at
}

// history makes transactions of one to five changes each, among others that roll back or change unpublished tables.
func (d database) history(transactions int) {
	d.t.Helper()
	d.run("CREATE TABLE orders (id serial PRIMARY KEY, n int)", "CREATE TABLE other (id int)")
	d.publish("orders")
	for i := range transactions {
		d.run(fmt.Sprintf("INSERT INTO orders (n) SELECT g FROM generate_series(1, %d) g", 1+i%5), "INSERT INTO other VALUES (1)", "BEGIN; INSERT INTO orders (n) VALUES (1); ROLLBACK")
	}
}

// From every position of a poller, a new process reads everything after it and nothing before it, the same rows at the
// same positions, with any batch size. A position that the slot has forgotten is refused.
func TestEveryPlace(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(12)
	all := d.drain(d.source(), poller.Cursor{}, 1000, 1<<20)
	if len(all) != 33 {
		t.Fatalf("%d rows", len(all))
	}
	for i := range all {
		after := poller.Cursor{}
		if i > 0 {
			after = all[i-1].Cursor
		}
		s := d.source()
		testenv.Equal(t, fmt.Sprintf("behind %s", after), all[i:], d.drain(s, after, 1+i%7, 1<<20))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	// The last call requested the rows after the last one.
	for _, i := range []int{0, len(all) / 2} {
		if _, err := d.source().Fetch(t.Context(), all[i].Cursor, 1, 1<<20); !errors.Is(err, logicalsource.ErrSlotLost) {
			t.Errorf("behind row %d, which the slot has forgotten: %v", i, err)
		}
	}
}

// The slot forgets the changes before the position of a fetch, but nothing after it, not even within a transaction.
func TestSlotFollowsPlace(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(5)
	s, before := d.source(), d.confirmed()
	rows := d.drain(s, poller.Cursor{}, 1000, 1<<20)
	if at := d.confirmed(); at != before {
		t.Errorf("it went from %s to %s although nobody has asked for what is behind a row", before, at)
	}
	for i, midst := range map[int]bool{4: true, 9: false, 11: true} {
		if (parse(t, rows[i].Cursor.Value).Change > 0) != midst {
			t.Fatalf("row %d is at %s", i, rows[i].Cursor)
		}
	}
	for _, i := range []int{4, 9, 11} {
		place := rows[i].Cursor
		testenv.Must(s.Fetch(t.Context(), place, 1, 1<<20))(t)
		if at := parse(t, d.confirmed()); at.LSN != parse(t, place.Value).LSN {
			t.Errorf("behind %s it begins at %s", place, at)
		}
	}
}

func parse(t testing.TB, text string) poller.LogPosition {
	t.Helper()
	p, ok := poller.ParseLogPosition(text)
	if !ok {
		t.Fatalf("%q is no place", text)
	}
	return p
}

// Positions outside the log of this server are refused.
func TestBadPlaces(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(1)
	for _, c := range []struct {
		cursor poller.Cursor
		want   error
	}{
		{poller.Cursor{Kind: "lsn", Value: "FFFFFF/0"}, sqlsource.ErrWentBack},
		{poller.Cursor{Kind: "lsn", Value: "0/1"}, logicalsource.ErrSlotLost},
		{poller.Cursor{Kind: "lsn", Value: "x"}, sqlsource.ErrColumnType},
		{poller.Cursor{Kind: "integer", Value: "42"}, sqlsource.ErrColumnType},
	} {
		before := d.confirmed()
		if _, err := d.source().Fetch(t.Context(), c.cursor, 1, 1<<20); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.cursor, err)
		}
		if after := d.confirmed(); after != before {
			t.Errorf("%s: the slot went from %s to %s", c.cursor, before, after)
		}
	}
}

// A transaction that is larger than any limit is read in parts, by one decoding, and by another one in another process.
func TestLargeTransaction(t *testing.T) {
	t.Parallel()
	const n = 20_000
	d := newDatabase(t)
	d.run("CREATE TABLE orders (id int PRIMARY KEY, doc text)")
	d.publish("orders")
	d.run(fmt.Sprintf("INSERT INTO orders SELECT g, repeat('x', 200) FROM generate_series(1, %d) g", n), "INSERT INTO orders VALUES (0)")
	var after poller.Cursor
	s, rows := d.source(), 0
	for more := true; more; {
		b := testenv.Must(s.Fetch(t.Context(), after, 1500, 100_000))(t)
		size := 0
		for _, row := range b.Rows {
			rows++
			size += len(row.Data)
			if want := fmt.Sprintf(`{"id":%d}`, rows%(n+1)); string(row.Key) != want {
				t.Fatalf("row %d is %s", rows, row.Key)
			}
		}
		if size > 100_000 {
			t.Fatalf("%d bytes", size)
		}
		if more = b.More; len(b.Rows) > 0 {
			after = b.Rows[len(b.Rows)-1].Cursor
		}
		if rows%7 == 0 { // another process continues
			s = d.source()
		}
	}
	if rows != n+1 {
		t.Errorf("%d rows", rows)
	}
}
