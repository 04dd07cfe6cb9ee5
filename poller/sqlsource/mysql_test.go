package sqlsource_test

import (
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// A user that does not see other users' transactions is refused, and an open transaction holds rows back.
func TestMySQLBound(t *testing.T) {
	t.Parallel()
	d := newMaria(t)
	d.orders(t, 1)
	db := d.open(t)
	server := mariaServer(t)
	name := d.dsn[strings.LastIndex(d.dsn, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	run(t, db, "CREATE USER "+name+"@localhost IDENTIFIED BY 'geheim'", "GRANT SELECT ON "+name+".* TO "+name+"@localhost")
	c := d.config(byTime)
	c.DSN = server.DSNFor(name, "geheim", name)
	_, err := source(t, c).Check(t.Context())
	wants(t, err, sqlsource.ErrBound, "orders", "GRANT PROCESS")
	run(t, db, "GRANT PROCESS ON *.* TO "+name+"@localhost")
	if _, err := source(t, c).Check(t.Context()); err != nil {
		t.Error(err)
	}
	c.DSN = server.DSNFor(name, "not-the-password", name)
	_, err = source(t, c).Check(t.Context())
	wants(t, err, sqlsource.ErrLogin, "orders")
	if err != nil && strings.Contains(err.Error(), "not-the-password") {
		t.Errorf("the password is in %v", err)
	}

	tx := testenv.Must(db.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	testenv.Must(tx.ExecContext(t.Context(), "INSERT INTO orders (changed) VALUES (NOW(6))"))(t)
	run(t, db, "INSERT INTO orders (changed) VALUES (NOW(6))", "DO SLEEP(3)")
	s := source(t, d.config(byTime))
	// Other tests may be reading the list of transactions; that holds rows back as well.
	testenv.Until(t, "a row held back by the open transaction", func() bool {
		b := testenv.Must(s.Fetch(t.Context(), poller.Cursor{}, 10, 1<<20))(t)
		if len(b.Rows) > 1 {
			t.Fatalf("%d rows beside an open transaction", len(b.Rows))
		}
		return strings.Contains(b.HeldBack, "connection ")
	})
	testenv.OK(t, tx.Commit())
	if rows := drain(t, s, poller.Cursor{}, 1); len(rows) != 3 {
		t.Errorf("%d rows after the transaction", len(rows))
	}
}
