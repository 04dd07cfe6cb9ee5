// Command handler is the custom handler that the Azure Functions host starts: it serves the platform's queue and timer
// functions and its HTTP API to that host, on the loopback interface.
//
// It reads its settings from the environment (see [Settings]), reports bad ones all at once, and logs in JSON to
// standard output. Its exit codes tell the host what to do; after 0 the host would not start it again, so it never
// exits with 0 once it is meant to serve:
//
//	0        -version or -h only
//	1        the server failed, or the host is gone
//	2        bad settings or arguments
//	128 + n  stopped by signal n, after waiting for what was in flight
//
// It owns no storage keys itself; the packages below it do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/oklog/run"
)

const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2
	exitSignaled = 128 // plus the signal's number

	// startLimit bounds app.Start: the host waits 30 s for the server to answer.
	startLimit = 20 * time.Second

	// defaultDrain bounds the wait for what is in flight when a signal stops the program. Container platforms follow
	// a SIGTERM with a SIGKILL after 30 s.
	defaultDrain = 20 * time.Second
)

const usage = `handler is started by the Azure Functions host, not by hand.

The host reads host.json, starts this program with FUNCTIONS_CUSTOMHANDLER_PORT set, and sends it the messages,
timers and HTTP requests of its functions. To run it: scripts/stage --local, then func start --script-root dist.

  -version  print what this binary was built from
  -h        print this text
`

// Main is the program, as tests and main start it.
type Main struct {
	// Stdout takes the log, Stderr what goes wrong before there is one; both are required.
	Stdout, Stderr io.Writer
	// Wire builds the program out of its settings; required.
	Wire func(ctx context.Context, s Settings, log *slog.Logger) (app, error)
	// Getppid tells the parent process; nil means os.Getppid.
	Getppid func() int
	// Drain bounds the wait for what is in flight when a signal stops the program; 0 means 20 s.
	Drain time.Duration
}

// gcPercent is Go's GOGC, unless the environment sets it: the heap is small, and a collection takes a core from a round.
const gcPercent = 200

func main() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	m := Main{Stdout: os.Stdout, Stderr: os.Stderr, Wire: wire}
	os.Exit(m.Run(context.Background(), os.Args[1:], os.LookupEnv))
}

// Run runs the program until it is stopped and returns its exit code, which the comment of the package lists. The end
// of ctx counts as a failure: the program has no reason of its own to stop.
func (m Main) Run(ctx context.Context, args []string, lookup func(string) (string, bool)) int {
	if code, done := m.arguments(args); done {
		return code
	}
	settings, err := LoadSettings(lookup)
	if err != nil {
		fmt.Fprintf(m.Stderr, "handler: these app settings are missing or wrong:\n%v\n", err)
		return exitUsage
	}
	log := slog.New(slog.NewJSONHandler(m.Stdout, &slog.HandlerOptions{Level: settings.LogLevel}))

	a, err := m.Wire(ctx, settings, log)
	if err != nil {
		log.Error("wiring failed", "reason", err.Error())
		return exitFailure
	}
	if a.Close != nil {
		defer a.Close()
	}
	err = m.serve(ctx, a, settings, log)
	code := exitCode(err)
	log.Warn("stopped", "reason", err.Error(), "exitCode", code)
	return code
}

// arguments handles the command line. done says that nothing is left to do.
func (m Main) arguments(args []string) (code int, done bool) {
	flags := flag.NewFlagSet("handler", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	version := flags.Bool("version", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(m.Stdout, usage)
		return exitOK, true
	case err != nil:
		fmt.Fprintf(m.Stderr, "handler: %v\n\n%s", err, usage)
		return exitUsage, true
	case flags.NArg() > 0:
		fmt.Fprintf(m.Stderr, "handler: unexpected argument %q\n\n%s", flags.Arg(0), usage)
		return exitUsage, true
	case *version:
		info, _ := debug.ReadBuildInfo()
		fmt.Fprint(m.Stdout, info)
		return exitOK, true
	default:
		return exitOK, false
	}
}

// serve starts the program and runs its server until that fails, a signal comes, the parent is gone, or ctx ends. It
// always returns an error, which says what it was.
func (m Main) serve(ctx context.Context, a app, s Settings, log *slog.Logger) error {
	getppid := m.Getppid
	if getppid == nil {
		getppid = os.Getppid
	}
	parent := getppid()
	drain := m.Drain
	if drain == 0 {
		drain = defaultDrain
	}
	router, err := newRouter(a, s, log)
	if err != nil {
		return err
	}
	if err := start(ctx, a); err != nil {
		return err
	}
	srv, err := listen(s, router, log)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	log.Info("listening", "address", srv.listener.Addr().String(), "context", string(s.Context), "budget", s.Budget.String())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group run.Group
	group.Add(srv.serve, func(reason error) {
		log.Info("stopping", "reason", reason.Error())
		wait := drain
		if errors.Is(reason, errParentGone) {
			wait = 0 // nobody is left to take an answer
		}
		srv.shutdown(wait)
	})
	group.Add(func() error { return awaitSignal(ctx, signals) }, func(error) { cancel() })
	group.Add(func() error { return watchParent(ctx, parent, getppid) }, func(error) { cancel() })
	return group.Run()
}

func start(ctx context.Context, a app) error {
	if a.Start == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := a.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// signalError says which signal stopped the program.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "received signal " + e.signal.String() }

// awaitSignal returns a signalError for the first signal; from then on a second one ends the process at once. When ctx
// ends it returns the reason.
func awaitSignal(ctx context.Context, signals chan os.Signal) error {
	defer signal.Stop(signals)
	select {
	case sig := <-signals:
		number, _ := sig.(syscall.Signal) // all that Notify was asked for are of this type
		return signalError{number}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func exitCode(err error) int {
	var stopped signalError
	if errors.As(err, &stopped) {
		return exitSignaled + int(stopped.signal)
	}
	return exitFailure
}
