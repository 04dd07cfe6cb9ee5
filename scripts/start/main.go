// Command start runs the whole platform on this machine: it stages dist/, starts Azurite or uses one that runs, starts
// the local Functions host over dist/, sends a sample message, shows what becomes of it and keeps running until Ctrl-C.
// With -once it stops after the first result; with -func it leaves the running to Azure Functions Core Tools.
//
// Progress goes to standard error. Standard output gets the result: for people, or with -once one line of JSON.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vibedata/roundhouse/internal/localhost"
)

// onceLimit bounds a run with -once. Installing Azurite and the first build are in it.
const onceLimit = 10 * time.Minute

// options are the command line.
type options struct {
	once     bool
	coreTool bool
	verbose  bool
	port     int
	storage  storagePorts
	state    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	err = o.run(ctx)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "\nstart: %v\n", err)
		stop()
		os.Exit(1)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\nStopped; nothing is left running that this command has started.")
		if o.once {
			os.Exit(130) // there is no result
		}
	}
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{storage: storagePorts{10000, 10001, 10002}}
	flags := flag.NewFlagSet("start", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.BoolVar(&o.once, "once", false, "stop after the first result; its history entry is the last line of standard output, as JSON")
	flags.BoolVar(&o.coreTool, "func", false, "run `func start` of Azure Functions Core Tools, not the local host")
	flags.BoolVar(&o.verbose, "verbose", false, "show what the handler logs")
	flags.IntVar(&o.port, "port", localhost.DefaultPort, "the port of the Functions host")
	flags.Var(&o.storage, "storage-ports", "Azurite's ports: blob,queue,table")
	flags.StringVar(&o.state, "state", ".run", "the folder of Azurite's data and the handler's log, in the repository")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(out, err)
		flags.Usage()
		return o, err
	}
	return o, nil
}

func (o options) run(ctx context.Context) error {
	if o.once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, onceLimit, fmt.Errorf("no result within %v", onceLimit))
		defer cancel()
	}
	root, err := repository()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(o.state) {
		o.state = filepath.Join(root, o.state)
	}
	p := &platform{options: o, root: root, out: newProgress(os.Stderr)}
	defer p.close()
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if o.coreTool {
		return p.runCoreTools(ctx)
	}
	return p.runLocalHost(ctx)
}

// repository is the folder with go.mod, the current one or above.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run it inside the repository: there is no go.mod here or above")
		}
		dir = parent
	}
}
