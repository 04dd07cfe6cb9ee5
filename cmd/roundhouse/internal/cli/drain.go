package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/tables"
)

// drained is the output of drain.
type drained struct {
	Drained bool         `json:"drained"`
	Until   time.Time    `json:"until"`
	Running []drain.Node `json:"running,omitempty"`
}

// draining describes the requested action.
type draining struct {
	length, wait time.Duration
	end          bool
	guards       guards
}

func (a *app) drainCommand() *cobra.Command {
	var d draining
	c := a.command(spec{
		use: "drain [flags]", short: "Stop the work of an app before an update",
		long: `Stop the work of an app, in all of its processes, and wait until nothing runs:
messages that come are put back without using up attempts, and orchestrations
park at their last round. When it is done, processes may be killed, as some
plans do for an update, without holding anything up. It goes straight to
storage, so it needs no address.

The app works again after --for, or when --end says so; what was put back
comes within a minute. Exit code 1 says that something still ran after --wait:
which processes, and how much. They stay drained then.

Requests over HTTP are answered meanwhile; what they start begins afterwards.`,
		example: "  roundhouse drain --execute --yes\n  roundhouse drain --for 1h --wait 10m\n  roundhouse drain --end",
		run:     func(ctx context.Context, _ []string) error { return a.drain(ctx, d) },
	})
	f := c.Flags()
	f.DurationVar(&d.length, "for", drain.DefaultLength, "how long the app stays so unless somebody ends it")
	f.DurationVar(&d.wait, "wait", 10*time.Minute, "how long to wait until nothing runs")
	f.BoolVar(&d.end, "end", false, "let the app work again")
	d.guards.register(f)
	return c
}

func (a *app) drain(ctx context.Context, d draining) error {
	if d.wait < drain.Notice {
		return Mark(ErrUsage, fmt.Errorf("--wait: use %v or more: that is how long processes take to notice", drain.Notice))
	}
	s, err := a.stores()
	if err != nil {
		return err
	}
	store := drain.Store{Tables: s.Tables, Now: a.Now}
	if d.end {
		return a.endDrain(ctx, s, store)
	}
	effect := []string{"messages are put back, and orchestrations park, for " + d.length.String() + " or until drain --end", "storage: " + s.Account.String()}
	return a.guarded(ctx, d.guards, danger{what: "drain the app", name: "drain", effect: effect, storage: true}, func(ctx context.Context) error {
		var flag drain.Flag
		err := a.recorded(ctx, s, audit.Entry{Action: "drain for " + d.length.String(), Target: "drain"}, func() (string, error) {
			ctx, cancel := a.bounded(ctx)
			defer cancel()
			var err error
			flag, err = store.Begin(ctx, a.operator(), d.length)
			return "drained until " + flag.Until.Format(time.RFC3339), err
		})
		if errors.Is(err, drain.ErrLength) {
			err = Mark(ErrUsage, fmt.Errorf("--for: %w", err))
		}
		if err != nil {
			return err
		}
		a.note("The app is drained until %s. Waiting until nothing runs, %v at least.", flag.Until.Format(time.RFC3339), drain.Notice)
		return a.awaitDrained(ctx, store, flag, d.wait)
	})
}

// endDrain ends the drain. It is not dangerous, so no confirmation is needed.
func (a *app) endDrain(ctx context.Context, s Storage, store drain.Store) error {
	return a.recorded(ctx, s, audit.Entry{Action: "end the drain", Target: "drain"}, func() (string, error) {
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		err := store.End(ctx)
		if err == nil || errors.Is(err, tables.ErrNotFound) {
			a.note("The app works again: what was put back comes within a minute.")
			return "it works", nil
		}
		return "", err
	})
}

// awaitDrained polls until nothing runs. It tolerates a missing answer.
func (a *app) awaitDrained(ctx context.Context, store drain.Store, flag drain.Flag, wait time.Duration) error {
	began := a.Now() // flag has storage's time
	noticed, deadline := began.Add(drain.Notice), began.Add(wait)
	var running []drain.Node
	for {
		pause := time.NewTimer(a.Poll)
		select {
		case <-ctx.Done():
			pause.Stop()
			a.note("The app stays drained until %s: roundhouse drain --end lets it work again.", flag.Until.Format(time.RFC3339))
			return context.Cause(ctx)
		case <-pause.C:
		}
		now := a.Now()
		var found []drain.Node
		err := a.probe(ctx, func(ctx context.Context) (err error) { found, err = store.Look(ctx, flag); return err })
		if err == nil {
			running = found
		}
		switch {
		case err == nil && len(found) == 0 && !now.Before(noticed):
			return a.printDrained(drained{Drained: true, Until: flag.Until})
		case !now.Before(deadline) && err != nil:
			return err
		case !now.Before(deadline):
			return errors.Join(a.printDrained(drained{Until: flag.Until, Running: running}), stillRunning(running, wait))
		}
	}
}

func stillRunning(nodes []drain.Node, wait time.Duration) error {
	var texts []string
	for _, n := range nodes {
		texts = append(texts, fmt.Sprintf("%s: %d, seen %s", n.Name, n.Running, n.Seen.Format(time.RFC3339)))
	}
	return fmt.Errorf("something still runs after %v (%s): wait longer, or see whether these processes are still there", wait, strings.Join(texts, "; "))
}

func (a *app) printDrained(d drained) error {
	if a.asJSON() {
		return a.printValue(d)
	}
	if d.Drained {
		fmt.Fprintf(a.Stdout, "Drained: nothing runs. The app works again at %s, or after roundhouse drain --end.\n", d.Until.Format(time.RFC3339))
	}
	return nil
}
