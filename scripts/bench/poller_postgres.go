package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the writers
	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/postgres"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

const (
	// postgresStart bounds the start of PostgreSQL.
	postgresStart = 2 * time.Minute
	// pollerRows is the number of rows in a tick that measures the speed.
	pollerRows = 100_000
	// lagRate is the number of rows written in a second for the lag, lagSamples the minimum number of rows.
	// lagWriters share them, each row in a transaction of its own.
	lagRate    = 1000
	lagSamples = 1000
	lagWriters = 4
	// lagInterval is the interval of the ticks then, lagPatience bounds the wait for the last rows.
	lagInterval = 100 * time.Millisecond
	lagPatience = 30 * time.Second
)

// ledger is a table of a PostgreSQL server for one measurement.
type ledger struct {
	db  *sql.DB
	dsn string
}

// withLedger runs a measurement on an empty table with an index for each cursor.
func withLedger(ctx context.Context, work func(l ledger) error) (err error) {
	startCtx, cancel := context.WithTimeout(ctx, postgresStart)
	defer cancel()
	server, err := postgres.Start(startCtx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	l := ledger{dsn: server.DSN(postgres.User)}
	if l.db, err = sql.Open("pgx", l.dsn); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.db.Close()) }()
	l.db.SetMaxIdleConns(lagWriters)
	if _, err := l.db.ExecContext(ctx, `CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'open', amount numeric NOT NULL DEFAULT 12.50,
		paid boolean NOT NULL DEFAULT true, changed timestamptz NOT NULL DEFAULT now(), xid xid8 NOT NULL DEFAULT pg_current_xact_id());
		CREATE INDEX ON orders (changed, id); CREATE INDEX ON orders (xid, id)`); err != nil {
		return err
	}
	return work(l)
}

// source reads the table by a cursor.
func (l ledger) source(cursor, bound string) (*sqlsource.Source, error) {
	return sqlsource.Open(sqlsource.Config{Dialect: sqlsource.Postgres, DSN: l.dsn, SourceID: "bench", Table: "orders", Cursor: cursor, Keys: []string{"id"}, Bound: bound})
}

// pollerThroughput measures the throughput of a poller, with the default options and the default bound for
// PostgreSQL, with rows behind its settle window. The handler does nothing.
func pollerThroughput() scenario {
	m := metric{"poller/postgres/rows_per_s", "rows/s", "goal 50000 or more: rows of 6 columns by time and key, a handler that does nothing, the state in memory"}
	return scenario{[]metric{m}, func(ctx context.Context, d time.Duration) (values []float64, err error) {
		err = withLedger(ctx, func(l ledger) error {
			for _, statement := range []string{
				fmt.Sprintf("INSERT INTO orders (id, changed) SELECT n, timestamptz '2026-01-01 00:00:00.123456Z' + n * interval '1 ms' FROM generate_series(1, %d) n", pollerRows),
				"VACUUM ANALYZE orders",
			} {
				if _, err := l.db.ExecContext(ctx, statement); err != nil {
					return err
				}
			}
			rates, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
				rate, err := saturate(ctx, 1, slice, l.readAll)
				return []float64{rate * pollerRows}, err
			})
			if err == nil {
				values = []float64{median(rates)}
			}
			return err
		})
		return values, err
	}}
}

// readAll runs one tick of a new poller, which opens its connection, too.
func (l ledger) readAll(ctx context.Context) (err error) {
	source, err := l.source("changed", sqlsource.BoundSettle)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	runner, _, err := newPoller(ctx, blobs.NewMemory(), poller.RunnerConfig{Source: source})
	if err != nil {
		return err
	}
	_, err = drained(ctx, runner, pollerRows)
	return err
}

// pollerLag measures the time of rows from their commit to the handler, while they are written at a steady rate. The
// schedule would dominate it, so the ticks are closer together than in any schedule, and the bound is the one without
// a settle window.
func pollerLag() scenario {
	m := metric{"poller/lag_ms/p99", "ms", fmt.Sprintf("goal 150 or less: at %d rows/s, ticks %v apart instead of the schedule's 10s, bound xid", lagRate, lagInterval)}
	return scenario{[]metric{m}, func(ctx context.Context, d time.Duration) (values []float64, err error) {
		err = withLedger(ctx, func(l ledger) error {
			lags, err := l.lags(ctx, max(lagSamples, int(d.Seconds()*lagRate)))
			if err == nil {
				values = []float64{percentile([][]float64{lags}, 99)}
			}
			return err
		})
		return values, err
	}}
}

// lags writes and polls so many rows in parallel, and returns the time of each, in milliseconds. A row counts as
// committed when the writer gets the answer; an earlier handler counts as 0.
func (l ledger) lags(ctx context.Context, rows int) ([]float64, error) {
	committed, delivered := make([]time.Time, rows), make([]time.Time, rows)
	source, err := l.source("xid", sqlsource.BoundXID)
	if err != nil {
		return nil, err
	}
	seen := 0
	runner, _, err := newPoller(ctx, blobs.NewMemory(), poller.RunnerConfig{Source: source,
		Handler: poller.HandlerFunc(func(_ context.Context, d poller.Delivery) error {
			now := time.Now()
			for _, row := range d.Rows {
				var key struct{ ID int }
				if err := json.Unmarshal(row.Key, &key); err != nil {
					return err
				}
				delivered[key.ID] = now
			}
			seen += len(d.Rows)
			return nil
		})})
	if err == nil {
		_, err = drained(ctx, runner, 0) // connects, and checks the table
	}
	if err == nil {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return l.write(ctx, committed) })
		group.Go(func() error { return follow(ctx, runner, rows, &seen) })
		err = group.Wait()
	}
	if err := errors.Join(err, source.Close()); err != nil {
		return nil, err
	}
	out := make([]float64, rows)
	for i := range out {
		out[i] = max(0, delivered[i].Sub(committed[i]).Seconds()*1000)
	}
	return out, nil
}

// write writes a row for each place of committed, at lagRate, and records the time.
func (l ledger) write(ctx context.Context, committed []time.Time) error {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for first := range lagWriters {
		group.Go(func() error {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for i := first; i < len(committed); i += lagWriters {
				timer.Reset(time.Until(began.Add(time.Duration(i) * time.Second / lagRate)))
				select {
				case <-timer.C:
				case <-ctx.Done():
					return ctx.Err()
				}
				if _, err := l.db.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", i); err != nil {
					return err
				}
				committed[i] = time.Now()
			}
			return nil
		})
	}
	err := group.Wait()
	if rate := float64(len(committed)) / time.Since(began).Seconds(); err == nil && rate < 0.8*lagRate {
		err = fmt.Errorf("this machine wrote %.0f rows a second, of %d that the figure is about", rate, lagRate)
	}
	return err
}

// follow ticks until all rows have been seen.
func follow(ctx context.Context, r *poller.Runner, rows int, seen *int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rows)*time.Second/lagRate+lagPatience)
	defer cancel()
	ticker := time.NewTicker(lagInterval)
	defer ticker.Stop()
	for *seen < rows {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%d rows of %d were delivered: %w", *seen, rows, ctx.Err())
		}
		if _, err := r.Tick(ctx); err != nil {
			return err
		}
	}
	return nil
}
