package logicalsource_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/postgres"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/logicalsource"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Check refuses a missing setup, with the remedy, and creates nothing.
func TestSetup(t *testing.T) {
	t.Parallel()
	good := "CREATE PUBLICATION changes FOR TABLE orders"
	slot := "SELECT pg_create_logical_replication_slot('%s', 'pgoutput')"
	for name, c := range map[string]struct {
		setup []string
		want  error
		text  string
	}{
		"all is well":            {[]string{good, slot}, nil, ""},
		"no slot":                {[]string{good}, logicalsource.ErrSetup, "pg_create_logical_replication_slot"},
		"no publication":         {[]string{slot}, logicalsource.ErrSetup, "CREATE PUBLICATION"},
		"no tables":              {[]string{"CREATE PUBLICATION changes", slot}, logicalsource.ErrSetup, "ADD TABLE"},
		"another plugin":         {[]string{good, "SELECT pg_create_logical_replication_slot('%s', 'test_decoding')"}, logicalsource.ErrSetup, "pgoutput"},
		"physical":               {[]string{good, "SELECT pg_create_physical_replication_slot('%s')"}, logicalsource.ErrSetup, "pgoutput"},
		"no identity":            {[]string{"CREATE TABLE bare (id int)", "CREATE PUBLICATION changes FOR TABLE orders, bare", slot}, logicalsource.ErrSetup, "nothing names the rows of public.bare"},
		"identity of nothing":    {[]string{"ALTER TABLE orders REPLICA IDENTITY NOTHING", good, slot}, logicalsource.ErrSetup, "nothing names the rows of public.orders"},
		"bare, but only inserts": {[]string{"CREATE TABLE bare (id int)", "CREATE PUBLICATION changes FOR TABLE bare WITH (publish = 'insert')", slot}, nil, ""},
		"our member":             {[]string{`ALTER TABLE orders ADD "$change" int`, good, slot}, logicalsource.ErrSetup, "rename the column"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			d.run("CREATE TABLE orders (id int PRIMARY KEY)")
			for _, statement := range c.setup {
				d.run(strings.ReplaceAll(statement, "%s", d.slot()))
			}
			_, err := d.source().Check(t.Context())
			if c.want == nil && err != nil || !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("want %v with %q, got %v", c.want, c.text, err)
			}
			if strings.Contains(fmt.Sprint(err), "%!") {
				t.Error(err)
			}
			var slots int
			if err := d.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()").Scan(&slots); err != nil || slots != strings.Count(strings.Join(c.setup, ""), "logical_replication_slot") {
				t.Errorf("%d slots, %v", slots, err)
			}
		})
	}
}

// The user needs REPLICATION, and no right to the tables.
func TestRights(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(1)
	user := "u" + d.name
	d.run("CREATE ROLE " + user + " LOGIN PASSWORD 'secret-of-the-user'")
	t.Cleanup(func() { _, _ = d.ExecContext(context.Background(), "DROP ROLE "+user) })
	s := server.Server(t)
	as := func(c *logicalsource.Config) { c.DSN = s.DSNFor(user, "secret-of-the-user", d.name) }
	if _, err := d.source(as).Check(t.Context()); !errors.Is(err, logicalsource.ErrSetup) || !strings.Contains(err.Error(), "REPLICATION") {
		t.Errorf("without REPLICATION: %v", err)
	}
	d.run("ALTER ROLE " + user + " REPLICATION")
	source := d.source(as)
	if _, err := source.Check(t.Context()); err != nil {
		t.Errorf("with REPLICATION: %v", err)
	}
	if rows := d.drain(source, poller.Cursor{}, 10, 1<<20); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
	bad := func(c *logicalsource.Config) { c.DSN = s.DSNFor(user, "another-secret", d.name) }
	if _, err := d.source(bad).Check(t.Context()); !errors.Is(err, sqlsource.ErrLogin) || strings.Contains(err.Error(), "another-secret") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// A slot that was dropped, or recreated at a later position, is an error for a poller with a position. So is a
// publication that is younger than the slot.
func TestSlotIsGone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(4)
	rows := d.drain(d.source(), poller.Cursor{}, 3, 1<<20)
	place := rows[len(rows)-1].Cursor
	d.run("SELECT pg_drop_replication_slot('"+d.slot()+"')", "INSERT INTO orders (n) VALUES (42)")
	if _, err := d.source().Fetch(t.Context(), place, 1, 1<<20); !errors.Is(err, logicalsource.ErrSlotLost) {
		t.Errorf("without the slot: %v", err)
	}
	d.run("SELECT pg_create_logical_replication_slot('" + d.slot() + "', 'pgoutput')")
	if _, err := d.source().Fetch(t.Context(), place, 1, 1<<20); !errors.Is(err, logicalsource.ErrSlotLost) {
		t.Errorf("with a new slot: %v", err)
	}
	d.run("INSERT INTO orders (n) VALUES (43)", "CREATE PUBLICATION later FOR TABLE orders")
	later := d.source(func(c *logicalsource.Config) { c.Publications = []string{"later"} })
	if _, err := later.Fetch(t.Context(), poller.Cursor{}, 1, 1<<20); !errors.Is(err, logicalsource.ErrSetup) || !strings.Contains(err.Error(), "made after the slot") {
		t.Errorf("with a publication that is younger than the slot: %v", err)
	}
}

// While another session reads the slot, a fetch waits for it, and finally returns that it is busy.
func TestSlotIsBusy(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(1)
	conn := testenv.Must(pgconn.Connect(t.Context(), d.dsn+"&replication=database"))(t)
	defer func() { _ = conn.Close(context.Background()) }()
	testenv.OK(t, pglogrepl.StartReplication(t.Context(), conn, d.slot(), 0, pglogrepl.StartReplicationOptions{PluginArgs: []string{"proto_version '1'", "publication_names 'changes'"}}))
	short := d.source(func(c *logicalsource.Config) { c.Timeout = 3 * time.Second })
	testenv.Until(t, "a fetch says that the slot is busy", func() bool {
		err := fetch(t, short, poller.Cursor{})
		if !errors.Is(err, context.DeadlineExceeded) { // on an overloaded machine, the time may end before it gets to the slot
			t.Fatalf("a fetch while it is busy: %v", err)
		}
		return errors.Is(err, logicalsource.ErrSlotBusy)
	})
	waits := make(chan error)
	s := d.source()
	go func() { waits <- fetch(t, s, poller.Cursor{}) }()
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-waits; err != nil {
		t.Errorf("a fetch that waits for it: %v", err)
	}
}

// A slot with too much retained log causes a warning, and after the server has invalidated it, a specific error.
func TestSlotIsInvalidated(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	own := testenv.Must(postgres.Start(testenv.Context(t)))(t) // the test's settings affect all slots of a server
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	d := databaseAt(t, own.DSN(postgres.User))
	d.history(3)
	s := d.source(func(c *logicalsource.Config) { c.WarnBytes = 16 << 20 })
	b, err := s.Fetch(t.Context(), poller.Cursor{}, 2, 1<<20)
	if err != nil || b.Advice != "" {
		t.Fatalf("%q, %v", b.Advice, err)
	}
	place := b.Rows[1].Cursor
	d.run("CREATE TABLE noise AS SELECT repeat('x', 1000) FROM generate_series(1, 40000)")
	if b, err = s.Fetch(t.Context(), b.Rows[0].Cursor, 2, 1<<20); err != nil || !strings.Contains(b.Advice, "MiB of log") {
		t.Errorf("advice %q, %v", b.Advice, err)
	}
	d.run("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()", "INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 40000)", "SELECT pg_switch_wal()", "CHECKPOINT", "CHECKPOINT")
	for what, err := range map[string]error{"check": check(t, d.source()), "fetch": fetch(t, d.source(), place)} {
		if !errors.Is(err, logicalsource.ErrSlotLost) || !strings.Contains(err.Error(), "max_slot_wal_keep_size") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func check(t testing.TB, s *logicalsource.Source) error {
	_, err := s.Check(t.Context())
	return err
}

func fetch(t testing.TB, s *logicalsource.Source, after poller.Cursor) error {
	_, err := s.Fetch(t.Context(), after, 1, 1<<20)
	return err
}

// later is a store whose clock advances by a second with each read.
type later struct {
	poller.Store
	ahead time.Duration
}

func (l *later) Load(ctx context.Context, name string) (poller.State, error) {
	state, err := l.Store.Load(ctx, name)
	l.ahead += time.Second
	state.Time = state.Time.Add(l.ahead)
	return state, err
}

// While only unpublished tables change, the poller moves its position, so that the slot does not keep the log.
func TestQuietTable(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.history(1)
	store := &later{Store: poller.BlobStore{Blobs: blobs.NewMemory()}}
	testenv.OK(t, store.Create(t.Context()))
	source := d.source()
	delivered := 0
	runner, err := poller.NewRunner(poller.RunnerConfig{Name: "orders", Source: source, Store: store, Options: poller.Options{IdleHeartbeat: 1},
		Handler: poller.HandlerFunc(func(_ context.Context, d poller.Delivery) error { delivered += len(d.Rows); return nil })})
	if err != nil {
		t.Fatal(err)
	}
	before := parse(t, d.confirmed())
	for i := range 4 {
		d.run("INSERT INTO other SELECT generate_series(1, 1000)")
		testenv.Must(runner.Tick(t.Context()))(t)
		now := parse(t, d.confirmed())
		if i >= 2 && now.Compare(before) <= 0 {
			t.Errorf("after %d ticks it is still at %s", i+1, now)
		}
		before = now
	}
	d.run("INSERT INTO orders (n) VALUES (42)")
	if result, err := runner.Tick(t.Context()); err != nil || result.Rows != 1 || delivered != 2 {
		t.Errorf("%+v, %v, %d delivered", result, err, delivered)
	}
}
