package admin_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver that makes the tables

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
	"github.com/vibedata/roundhouse/poller/sources"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// shop returns a database with n orders.
func shop(t *testing.T, n int) (dsn string) {
	t.Helper()
	dsn = filepath.Join(t.TempDir(), "shop.db")
	db := testenv.Must(sql.Open("sqlite", dsn))(t)
	testenv.Must(db.ExecContext(t.Context(), "CREATE TABLE orders (id integer PRIMARY KEY)"))(t)
	for range n {
		testenv.Must(db.ExecContext(t.Context(), "INSERT INTO orders DEFAULT VALUES"))(t)
	}
	testenv.OK(t, db.Close())
	return dsn
}

// A poller of another database, or of a database that ends before its position, has no lag, plan or explanation, and
// has not caught up.
func TestQuestionsToAnotherDatabase(t *testing.T) {
	t.Parallel()
	a := newAdmin(t, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error { return next(ctx) })
	dsn := shop(t, 4)
	a.DSN = func(context.Context, poller.Setting) (string, error) { return dsn, nil }
	setting, _ := a.Setting("orders")
	source := testenv.Must(testenv.Must(sources.Decode(setting.Source))(t).Open(dsn))(t)
	r := testenv.Must(poller.NewRunner(poller.RunnerConfig{Name: "orders", Source: source, Store: a.Table, Handler: poller.HandlerFunc(func(context.Context, poller.Delivery) error { return nil })}))(t)
	testenv.Must(r.Tick(t.Context()))(t)
	testenv.OK(t, source.Close())
	if lag, err := a.Lag(t.Context(), "orders"); err != nil || !lag.CaughtUp {
		t.Fatalf("%+v, %v", lag, err)
	}
	for _, at := range []poller.Cursor{{Value: "1.5"}, {Kind: "timestamp", Value: "2026-04-07"}} {
		if _, err := a.Change(t.Context(), "orders", admin.Change{Kind: admin.ResetToCursor, Cursor: at}); !errors.Is(err, poller.ErrInvalid) || !errors.Is(err, sqlsource.ErrColumnType) {
			t.Errorf("%+v: %v", at, err)
		}
	}
	dsn = shop(t, 3)
	asks := func(want error) {
		t.Helper()
		lag, err := a.Lag(t.Context(), "orders")
		if !errors.Is(err, want) || lag.CaughtUp {
			t.Errorf("%+v, %v; want %v", lag, err, want)
		}
	}
	asks(poller.ErrFingerprint)
	if _, err := a.Plan(t.Context(), "orders", sqlsource.PlanOptions{}); !errors.Is(err, poller.ErrFingerprint) {
		t.Errorf("plan: %v", err)
	}
	if _, err := a.Explain(t.Context(), "orders", "1"); !errors.Is(err, poller.ErrFingerprint) {
		t.Errorf("explain: %v", err)
	}
	testenv.Must(a.Change(t.Context(), "orders", admin.Change{Kind: admin.AcceptFingerprint}))(t)
	asks(sqlsource.ErrWentBack)
	dsn += ".away" // the operations work without the database
	testenv.Must(a.Change(t.Context(), "orders", admin.Change{Kind: admin.ResetToCursor, Cursor: poller.Cursor{Value: "3"}}))(t)
}
