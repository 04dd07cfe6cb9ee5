package pollers

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// nodeEnv makes a process of this test binary a node; it holds a nodeConfig as JSON.
const nodeEnv = "ROUNDHOUSE_TEST_POLLER_NODE"

const (
	// lease is the shortest possible.
	lease = 10 * time.Second
	// every is the time between two ticks.
	every = 200 * time.Millisecond
	// batch is the size of a full batch.
	batch = 20
)

var storage azuritetest.Shared

func TestMain(m *testing.M) {
	if document, ok := os.LookupEnv(nodeEnv); ok {
		if err := beNode(document); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testenv.Main(m, func() error { return errors.Join(storage.Close(), server.Close()) })
}

// nodeConfig is the configuration of a node.
type nodeConfig struct {
	Name, Poller, Connection, DSN string
	// HoldAt is a row whose batch the handler delivers without returning, until a line arrives; 0 is none.
	HoldAt int64
}

// said is a line that a node writes: its handler holds a batch, or the result of a tick.
type said struct {
	// Token and Rows are those of the held batch.
	Token int64   `json:",omitempty"`
	Rows  []int64 `json:",omitempty"`
	// Committed counts the rows of the tick. Held means that another process has the lease, Lost that the lease was lost.
	Committed  int    `json:",omitempty"`
	Held, Lost bool   `json:",omitempty"`
	Error      string `json:",omitempty"`
}

// node is a process that runs a poller.
type node struct {
	config nodeConfig
	db     *sql.DB
	// goOn receives the lines of the standard input, ended closes at its end.
	goOn  chan struct{}
	ended context.Context

	mu  sync.Mutex
	out *json.Encoder
}

// beNode runs a node until its standard input ends.
func beNode(document string) (err error) {
	n := &node{goOn: make(chan struct{}, 1), out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(document), &n.config); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	n.ended = ctx
	go func() {
		defer stop()
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			n.goOn <- struct{}{}
		}
	}()
	if n.db, err = sql.Open("pgx", n.config.DSN); err != nil {
		return err
	}
	source, err := sqlsource.Open(sqlsource.Config{Dialect: sqlsource.Postgres, DSN: n.config.DSN, SourceID: "shop", Table: "orders",
		Cursor: "change", Keys: []string{"id"}, Bound: sqlsource.BoundXID})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close(), n.db.Close()) }()
	runner, err := n.runner(source)
	if err != nil {
		return err
	}
	n.run(ctx, runner)
	return nil
}

func (n *node) runner(source poller.Source) (*poller.Runner, error) {
	a, err := azure.FromConnectionString(n.config.Connection)
	if err != nil {
		return nil, err
	}
	b, err := azure.NewBlobs(a)
	if err != nil {
		return nil, err
	}
	return poller.NewRunner(poller.RunnerConfig{Name: n.config.Poller, Owner: n.config.Name, Source: source, Store: poller.BlobStore{Blobs: b},
		Handler: poller.HandlerFunc(n.deliver), Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
		Options: poller.Options{LeaseTTL: lease, BatchSize: batch, MinBatch: batch, MaxBatch: batch}})
}

// run ticks, and reports a result that is neither empty nor the same as before.
func (n *node) run(ctx context.Context, runner *poller.Runner) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := ""
	for ctx.Err() == nil {
		result, err := runner.Tick(ctx)
		now := said{Committed: result.Rows, Held: errors.Is(result.Skipped, poller.ErrHeld), Lost: errors.Is(err, poller.ErrLost)}
		if err != nil {
			now.Error = err.Error()
		}
		if key := fmt.Sprint(now); now.Committed > 0 || key != last {
			n.say(now)
			last = key
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (n *node) say(line said) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.out.Encode(line); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		fmt.Fprintln(os.Stderr, err)
	}
}

// deliver stores all rows or none. Then it holds the batch that it has to hold and ignores its context, as if it had
// finished just before the process was suspended.
func (n *node) deliver(ctx context.Context, d poller.Delivery) error {
	tx, err := n.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // returns an error after the commit
	held := said{Token: d.Token}
	hold := false
	for i, row := range d.Rows {
		var key struct{ ID int64 }
		if err := json.Unmarshal(row.Key, &key); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO effects (node, token, row, event) VALUES ($1, $2, $3, $4)",
			n.config.Name, d.Token, key.ID, d.EventIDs[i]); err != nil {
			return err
		}
		held.Rows, hold = append(held.Rows, key.ID), hold || key.ID == n.config.HoldAt
	}
	if err := tx.Commit(); err != nil || !hold {
		return err
	}
	n.say(held)
	select {
	case <-n.goOn:
	case <-n.ended.Done():
	}
	return nil
}
