// Command bench measures the cost of the runtime. It counts storage transactions on the memory store over the whole
// path of an engine message. It measures speed and memory on the memory store, which has no latency of its own, and
// the share of an Azurite's throughput that orchestrations reach. It measures the speed of pollers on a PostgreSQL.
// It measures the time until orchestrations continue after their hosts are killed, with the real host's leases on
// messages.
//
//	go run ./scripts/bench                  a table with the budget or the goal next to each figure
//	go run ./scripts/bench --json           one JSON object a line: {"name":"tx/sequence/3","value":8,"unit":"transactions"}
//	go run ./scripts/bench --only memory/   the figures whose names begin so
//
// The comparison with similar Go libraries (--only peers/) builds the program in the folder peers, a module of its
// own, and runs it in turns with this one, each sample in a new process. If their modules are unavailable, it
// compares with earlier results from another machine, and each line states that.
//
// The garbage collector is set as the handler sets it (GOGC=200, unless the environment says otherwise).
//
// A figure that misses its goal is no error. Azurite runs in memory on free ports, PostgreSQL in a temporary folder,
// local hosts are further processes of this program, and all end with the command; nothing else is started. If one of
// the first two is missing, npm installs it into the user's cache folder, where it stays.
//
// The time to the effect of a request (--only direct/) is measured under the local host, which polls idle queues
// every 14 s as with the deployed host.json. With ROUNDHOUSE_DIRECT=0 it measures the way through the host.
//
// The measurement of recovery (--only recovery/) takes a quarter of an hour, mostly waiting. -time does not change
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/vibedata/roundhouse/internal/hosts"
)

// options are the command line.
type options struct {
	json   bool
	only   string
	time   time.Duration
	sample string
}

// gcPercent is the handler's: the runtime is timed as deployed.
const gcPercent = 200

func main() {
	hosts.Main()
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command is main with an exit code: 1 for a failure, 2 for a wrong command line, 130 when it was interrupted.
func command(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	err = o.run(ctx, stdout)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "bench: interrupted; nothing is left running")
		return 130
	case err != nil:
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.BoolVar(&o.json, "json", false, "print one JSON object a line")
	flags.StringVar(&o.only, "only", "", "measure only what has a name that begins with `PREFIX`")
	flags.DurationVar(&o.time, "time", 2*time.Second, "for how long each timed figure is measured, over all its rounds")
	flags.StringVar(&o.sample, "sample", "", "take one sample of `NAME` in this process and print its values as JSON, as a comparison with peers does: "+sampleNames())
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.time <= 0:
		err = fmt.Errorf("-time %v: it has to be more than 0", o.time)
	case len(selected(scenarios(), o.only)) == 0:
		err = fmt.Errorf("-only %q: no figure has a name that begins so", o.only)
	}
	if err != nil {
		fmt.Fprintln(out, err)
		flags.Usage()
	}
	return o, err
}

// run takes the requested measurements and prints each figure as soon as it is available.
func (o options) run(ctx context.Context, out io.Writer) error {
	if o.sample != "" {
		return sample(ctx, o.sample, o.time, out)
	}
	show := table
	if o.json {
		show = jsonLine
	}
	for _, s := range selected(scenarios(), o.only) {
		figures, err := s.figures(ctx, o.time)
		if err != nil {
			return err
		}
		for _, f := range figures {
			if !strings.HasPrefix(f.Name, o.only) {
				continue
			}
			if err := show(out, f); err != nil {
				return fmt.Errorf("print %s: %w", f.Name, err)
			}
		}
	}
	return nil
}
