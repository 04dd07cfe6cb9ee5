package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/oklog/run"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/environ"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2
	exitSignaled = 128 // plus the signal's number
	exitRestart  = 200 // the host starts the program again and does not count the exit

	// defaultDrain bounds the wait for requests in flight when a signal stops the program. A live host starts the next
	// process only after that.
	defaultDrain = 5 * time.Second
)

// gcPercent is Go's GOGC, unless the environment sets it: the heap is small, and a collection takes a core from a round.
const gcPercent = 200

// Main is the custom handler of an app: the main function of a program calls it, and it does not return. It reads its
// settings from the environment (package settings), reports all invalid ones together, and logs in JSON to standard
// output.
//
// Its exit codes instruct the host; after 0 the host would not restart it, so it never exits with 0 when it serves:
//
//	0        manifest, replay, -version and -h only
//	1        the server failed, the host is gone, or a replay found a difference
//	2        bad settings or arguments
//	200      stopped by SIGTERM, after handing back its work and waiting for requests in flight: the host starts it again
//	128 + n  stopped by another signal n in the same way
//
// A signal, and the end of the host, close it: nothing new begins, running work is committed and requeued, so that
// other processes continue it immediately, and they are notified. That takes a moment, or a few seconds when
// activities ignore their contexts. A second signal ends it immediately.
//
// After three exits within half an hour the host ends, too, so no transient error ends the program: while storage or
// the vault is unavailable, it answers probes, refuses requests that need them, and retries. The reason of exit 1 or
// 2 is also on standard error, from which the host's record of a crash copies it.
func Main(a App) {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	r := runner{Stdout: os.Stdout, Stderr: os.Stderr, App: a, Environment: environ.Names(os.Environ())}
	os.Exit(r.Run(context.Background(), os.Args[1:], environ.Lookup(os.Environ())))
}

// runner runs an app, for tests and Main.
type runner struct {
	// Stdout receives the log, Stderr the error that ends the program; both are required.
	Stdout, Stderr io.Writer
	App            App
	// Wire builds the program; nil means App.wire.
	Wire func(r *settings.Reader, s settings.Settings, log *slog.Logger) (program, error)
	// Getppid returns the parent process; nil means os.Getppid.
	Getppid func() int
	// Drain bounds the wait for requests in flight when a signal stops the program; 0 means 5 s.
	Drain time.Duration
	// Environment has the names of all variables, to find mistyped ones.
	Environment []string
}

// Run runs the program until it is stopped and returns its exit code, which Main lists. The end of ctx counts as a
// failure: the program does not stop without a reason.
func (m runner) Run(ctx context.Context, args []string, lookup func(string) (string, bool)) int {
	if len(args) > 0 {
		return m.command(ctx, args, lookup)
	}
	reader := settings.NewReader(lookup)
	reader.Environment = m.Environment
	s, log, stop, err := m.load(reader)
	defer stop()
	if err != nil {
		return m.badSettings(err)
	}
	wire := m.Wire
	if wire == nil {
		wire = m.App.wire
	}
	a, err := wire(reader, s, log)
	switch {
	case reader.Err() != nil:
		return m.badSettings(reader.Err())
	case err != nil:
		log.ErrorContext(ctx, "wiring failed", "error", err.Error())
		m.complain("the program cannot be put together: " + err.Error())
		return exitFailure
	}
	if a.Close != nil {
		defer a.Close()
	}
	err = m.serve(ctx, a, s, log)
	code := exitCode(err)
	log.WarnContext(ctx, "stopped", "reason", err.Error(), "exitCode", code)
	if code == exitFailure && !errors.Is(err, errParentGone) { // else the host, which reads it, is gone
		m.complain("stopped: " + err.Error())
	}
	return code
}

// badSettings reports all missing and invalid settings.
func (m runner) badSettings(err error) int {
	m.complain("these app settings are missing or wrong: " + err.Error())
	return exitUsage
}

// complain writes the error that ends the program to standard error, in one line. The host detects errors by their
// words, and its record of a crash has only the few lines that it had read before the process ended.
func (m runner) complain(text string) {
	fmt.Fprintf(m.Stderr, "handler: error: %s\n", strings.ReplaceAll(strings.TrimSpace(redact.Text(text)), "\n", "; "))
}

// load reads the settings. If some are invalid, the engines read theirs as well, so that all errors are reported
// together.
func (m runner) load(r *settings.Reader) (s settings.Settings, log *slog.Logger, stop func(), err error) {
	s, err = settings.Load(r)
	log, stop = newLog(m.Stdout, s.LogLevel)
	if err == nil || m.App.Engines == nil {
		return s, log, stop, err
	}
	inMemory, _, platformErr := Platform{Settings: r, Log: slog.New(slog.DiscardHandler), identity: azure.EmulatorAccount(1, 1, 1).Identity}.over(tables.NewMemory(), queues.NewMemory(), blobs.NewMemory(), "", nil)
	events, outboxErr := outbox.New(outbox.Config{Tables: inMemory.Tables, Queues: inMemory.Queues, Blobs: inMemory.Blobs, Options: outbox.DefaultOptions(), Logger: log})
	if platformErr != nil || outboxErr != nil {
		return s, log, stop, errors.Join(err, platformErr, outboxErr)
	}
	inMemory.Outbox = outbox.NewWriter(events)
	inMemory.Events = Events{outbox.NewAdmin(events), inMemory.Outbox, s.Outbox.Retention}
	if definitions, err := m.App.Engines(&inMemory); err == nil { // report the missing settings, not their consequences
		_ = readSchedules(r, definitions)
	}
	return s, log, stop, errors.Join(err, r.Err())
}

// serve starts the program and runs its server until that fails, a signal arrives, the parent is gone, or ctx ends.
// It always returns an error with the reason.
func (m runner) serve(ctx context.Context, a program, s settings.Settings, log *slog.Logger) error {
	getppid := m.Getppid
	if getppid == nil {
		getppid = os.Getppid
	}
	parent := getppid()
	router, err := newRouter(a, s, log)
	if err != nil {
		return err
	}
	if err := a.begin(ctx); err != nil {
		return err
	}
	srv, err := listen(s, router, log)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	log.InfoContext(ctx, "listening", "address", srv.listener.Addr().String(), "budgetMs", s.Budget.Milliseconds())

	ctx, cancel := context.WithCancelCause(ctx)
	stop := func(error) { cancel(trigger.ErrStopping) }
	defer stop(nil)
	var group run.Group
	// It ends first: no request waits then for a preparation that never finishes.
	group.Add(func() error { return prepare(ctx, a.Preparation) }, stop)
	group.Add(srv.serve, func(reason error) {
		log.InfoContext(ctx, "stopping", "reason", reason.Error())
		m.stop(a, srv, reason, log)
	})
	group.Add(func() error { return awaitSignal(ctx, signals) }, stop)
	group.Add(func() error { return watchParent(ctx, parent, getppid) }, stop)
	return group.Run()
}

// stop hands the work back while the server still answers: the host needs the answers about requeued messages, and
// sends more. Then the server ends, after the other requests.
func (m runner) stop(a program, srv *server, reason error, log *slog.Logger) {
	began, wait := time.Now(), m.Drain
	if wait == 0 {
		wait = defaultDrain
	}
	err := a.handBack(context.Background(), log)
	if err != nil {
		log.Error("not all work is handed back: others take it over in time", "error", err.Error())
	}
	switch {
	case errors.Is(reason, errParentGone):
		wait = 0 // no client is left for an answer
	case errors.Is(err, errStillRunning):
		wait = 0 // the next process continues that work
	case a.Gate != nil:
		<-time.After(linger)
	}
	srv.shutdown(max(0, wait-time.Since(began)))
}

// prepare makes the program ready, and returns when ctx ends.
func prepare(ctx context.Context, p *preparation.Preparation) error {
	if err := p.Run(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// signalError is the signal that stopped the program.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "received signal " + e.signal.String() }

// awaitSignal returns a signalError for the first signal; from then on a second one ends the process immediately.
// When ctx ends it returns the reason.
func awaitSignal(ctx context.Context, signals chan os.Signal) error {
	defer signal.Stop(signals)
	select {
	case sig := <-signals:
		number, _ := sig.(syscall.Signal) // Notify was only called for this type
		return signalError{number}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func exitCode(err error) int {
	var stopped signalError
	switch {
	case errors.As(err, &stopped) && stopped.signal == syscall.SIGTERM:
		return exitRestart
	case errors.As(err, &stopped):
		return exitSignaled + int(stopped.signal)
	}
	return exitFailure
}
