package handler

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/keys"
)

// replayPage is how many orchestrations are looked up at a time.
const replayPage = 100

// replays are what the command replay is to look at, and what it found.
type replays struct {
	orchestrator string
	limit        int

	good, bad, broken int
}

// replay runs the code of this program over the orchestrations that are under way in storage, and says which of them it would
// stall. It changes nothing.
func (m runner) replay(ctx context.Context, args []string, lookup func(string) (string, bool)) int {
	var r replays
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(m.Stderr)
	flags.StringVar(&r.orchestrator, "orchestrator", "", "only those of this name; an engine's orchestrator has the engine's name")
	flags.IntVar(&r.limit, "limit", 10_000, "how many at most")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil || flags.NArg() > 0 || r.limit < 1:
		fmt.Fprintln(m.Stderr, "handler: replay takes -orchestrator NAME and -limit N, 1 or more")
		return exitUsage
	}
	h, err := m.App.overStorage(lookup)
	if err != nil {
		fmt.Fprintf(m.Stderr, "handler: replay: %v\n", err)
		return exitUsage
	}
	defer h.Close()
	if err := r.run(ctx, h.program.Runtime, m.Stdout); err != nil {
		fmt.Fprintf(m.Stderr, "handler: replay: %v\n", err)
		return exitFailure
	}
	fmt.Fprintf(m.Stdout, "%d orchestrations are under way: %d go on with this code, %d would stall, %d could not be read.\n",
		r.good+r.bad+r.broken, r.good, r.bad, r.broken)
	if r.bad+r.broken > 0 {
		return exitFailure
	}
	return exitOK
}

// overStorage is the app over the storage account of the settings. Of these it needs no other: nothing of what they are for is
// done.
func (a App) overStorage(lookup func(string) (string, bool)) (*Handler, error) {
	account, err := azure.FromEnvironment(lookup, settings.Storage)
	if err != nil {
		return nil, err
	}
	c := Config{Lookup: offline(lookup)}
	var errs [3]error
	c.Tables, errs[0] = azure.NewTables(account)
	c.Queues, errs[1] = azure.NewQueues(account)
	c.Blobs, errs[2] = azure.NewBlobs(account)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if c.Keys, err = payloadKeys(account, lookup); err != nil {
		return nil, err
	}
	return New(a, c)
}

// payloadKeys decrypts payloads, if a key vault is set; nil without one. Nothing is encrypted here, so no key is named.
func payloadKeys(account azure.Account, lookup func(string) (string, bool)) (codec.Keys, error) {
	vault := settings.NewReader(lookup).Text(settings.KeyVault)
	if vault == "" {
		return nil, nil
	}
	credential, err := account.Identity()
	if err != nil {
		return nil, err
	}
	return keys.NewKeyVault(vault, "", credential, nil)
}

// run replays page by page and prints what does not go on.
func (r *replays) run(ctx context.Context, rt *orchestrator.Runtime, w io.Writer) error {
	filter := orchestrator.Filter{Orchestrator: r.orchestrator,
		Statuses: []orchestrator.Status{orchestrator.Running, orchestrator.Retrying, orchestrator.Suspended, orchestrator.Stalled}}
	for next, more := "", true; more; more = next != "" {
		left := r.limit - r.good - r.bad - r.broken
		if left == 0 {
			return nil
		}
		var found []orchestrator.Summary
		var err error
		if found, next, err = rt.List(ctx, filter, min(replayPage, left), next); err != nil {
			return fmt.Errorf("list what is under way: %w", err)
		}
		for _, s := range found {
			if err := r.one(ctx, rt, s, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// one replays one orchestration. One that is gone meanwhile is nobody's.
func (r *replays) one(ctx context.Context, rt *orchestrator.Runtime, s orchestrator.Summary, w io.Writer) error {
	err := rt.CheckReplay(ctx, s.ID)
	_, differs := errors.AsType[*orchestrator.DeterminismError](err)
	switch {
	case err == nil:
		r.good++
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, orchestrator.ErrNotFound):
	case differs || errors.Is(err, orchestrator.ErrUnknownOrchestrator):
		r.bad++
		fmt.Fprintf(w, "would stall: %s (%s): %v\n", s.ID, s.Status, err)
	default:
		r.broken++
		fmt.Fprintf(w, "not read: %s (%s): %v\n", s.ID, s.Status, err)
	}
	return nil
}
