// Command peers takes one sample of one figure of a Go library similar to the runtime, for go run ./scripts/bench
// --only peers/, which builds and runs it. It is a module of its own, so that the peers' dependencies are no
// dependencies of the project.
//
//	peers -config dbos-memory -figure sequence3/1 -time 1s -dir FOLDER
//
// It prints the values of the figure as a JSON array. The figures, their units and warm-ups are those of the bench's
// own samples.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

// library is a peer in one configuration.
type library interface {
	// run runs a new orchestration of n activities to its end: "sequence" or "fanout".
	run(ctx context.Context, shape string, n int) error
	// replay returns the durations, repeatedly for d, until an orchestration with so many activities in its history
	// was where it had been, in microseconds.
	replay(ctx context.Context, activities int, d time.Duration) ([]float64, error)
}

// gcPercent is the one of the bench.
const gcPercent = 200

func main() {
	if err := command(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %v\n", err)
		os.Exit(1)
	}
}

func command(ctx context.Context) error {
	config := flag.String("config", "", "dbos-memory, dbos-wal, durabletask-memory or durabletask-wal")
	figure := flag.String("figure", "", "the figure's name")
	d := flag.Duration("time", time.Second, "for how long to measure")
	dir := flag.String("dir", "", "a new folder for the database of the wal configurations")
	flag.Parse()
	debug.SetGCPercent(gcPercent)
	lib, err := open(ctx, *config, filepath.Join(*dir, "peer.db"))
	if err != nil {
		return fmt.Errorf("open %s: %w", *config, err)
	}
	values, err := sample(ctx, lib, *figure, *d)
	if err != nil {
		return fmt.Errorf("measure %s of %s: %w", *figure, *config, err)
	}
	return json.NewEncoder(os.Stdout).Encode(values)
}

func open(ctx context.Context, config, file string) (library, error) {
	switch config {
	case "dbos-memory":
		return newDBOSInMemory(ctx)
	case "dbos-wal":
		return newDBOS(ctx, file)
	case "durabletask-memory":
		return newDurableTask(ctx, "")
	case "durabletask-wal":
		return newDurableTask(ctx, file)
	}
	return nil, fmt.Errorf("there is no such configuration")
}
