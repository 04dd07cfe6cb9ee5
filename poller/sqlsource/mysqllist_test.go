package sqlsource_test

import (
	"context"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// InnoDB caches its list of transactions while clients keep reading it. A look must not trust a list from before a
// transaction that is still open, even if that list contains the transaction of an earlier look.
func TestCachedListOfTransactions(t *testing.T) {
	t.Parallel()
	d := newMaria(t)
	db := d.open(t)
	run(t, db, "CREATE TABLE orders (id "+d.serial+", changed "+d.timestamp+" NOT NULL DEFAULT NOW(6), note int)")
	s := testenv.Must(sqlsource.Open(d.config(byTime)))(t)
	t.Cleanup(func() { _ = s.Close() })
	testenv.Until(t, "a look at a current list", func() bool {
		_, known, err := sqlsource.LookMySQL(t.Context(), s)
		testenv.OK(t, err)
		return known
	})

	ctx, stop := context.WithCancel(t.Context())
	readers := make(chan struct{})
	go func() {
		defer close(readers)
		for n := 0; ctx.Err() == nil; {
			_ = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.innodb_trx").Scan(&n)
			_, _ = db.ExecContext(ctx, "DO SLEEP(0.02)") // far below the 100 ms for which the server keeps its list
		}
	}()
	tx := testenv.Must(db.BeginTx(t.Context(), nil))(t)
	_, err := tx.ExecContext(t.Context(), "INSERT INTO orders (note) SELECT SLEEP(0.3)")
	testenv.OK(t, err)
	oldest, known, err := sqlsource.LookMySQL(t.Context(), s)
	testenv.OK(t, err)
	if known && oldest.IsZero() {
		t.Error("the look found no open transaction")
	}
	stop()
	<-readers
	testenv.OK(t, tx.Rollback())
}
