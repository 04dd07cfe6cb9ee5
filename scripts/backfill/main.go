// Command backfill adds the columns of new rows to outbox rows from before idempotency keys (docs/outbox.md). It
// works in slices, in parallel to the app, and prints its progress after each; an interrupted one continues with
// -continuation, or from the beginning, which does no harm.
//
//	AzureWebJobsStorage=... go run ./scripts/backfill -tenant contoso
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/outbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, open); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

// admin is the part of an outbox that the command uses.
type admin interface {
	Backfill(ctx context.Context, tenant, continuation string, limit int) (outbox.BackfillProgress, error)
}

// open connects to the handler's storage account.
func open() (admin, error) {
	a, err := azure.FromEnvironment(os.LookupEnv, "AzureWebJobsStorage")
	if err != nil {
		return nil, err
	}
	t, tablesErr := azure.NewTables(a)
	q, queuesErr := azure.NewQueues(a)
	b, blobsErr := azure.NewBlobs(a)
	if err := errors.Join(tablesErr, queuesErr, blobsErr); err != nil {
		return nil, err
	}
	o, err := outbox.New(outbox.Config{Tables: t, Queues: q, Blobs: b})
	if err != nil {
		return nil, err
	}
	return outbox.NewAdmin(o), nil
}

// progress is a line of the output: the finished work, and where to continue.
type progress struct {
	Tenant       string `json:"tenant"`
	Scanned      int    `json:"scanned"`
	Assigned     int    `json:"assigned"`
	Indexed      int    `json:"indexed"`
	Continuation string `json:"continuation,omitempty"`
	Done         bool   `json:"done"`
}

func run(ctx context.Context, args []string, out io.Writer, open func() (admin, error)) error {
	flags := flag.NewFlagSet("backfill", flag.ContinueOnError)
	tenant := flags.String("tenant", "", "the tenant whose rows get keys; required")
	limit := flags.Int("slice", outbox.MaxLimit, "rows of a slice")
	continuation := flags.String("continuation", "", "where an interrupted run was, as it said")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *tenant == "" || flags.NArg() > 0 {
		return errors.New("say whose rows: backfill -tenant ID [-slice N] [-continuation TOKEN]")
	}
	box, err := open()
	if err != nil {
		return err
	}
	total := progress{Tenant: *tenant, Continuation: *continuation}
	for !total.Done {
		slice, err := box.Backfill(ctx, *tenant, total.Continuation, *limit)
		if err != nil {
			return fmt.Errorf("after %d rows, go on with -continuation %q: %w", total.Scanned, total.Continuation, err)
		}
		total.Scanned += slice.Scanned
		total.Assigned += slice.Assigned
		total.Indexed += slice.Indexed
		total.Continuation, total.Done = slice.Continuation, slice.Continuation == ""
		if err := json.NewEncoder(out).Encode(total); err != nil {
			return err
		}
	}
	return nil
}
