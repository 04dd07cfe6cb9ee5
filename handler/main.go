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

	// defaultDrain bounds the wait for what is in flight when a signal stops the program. Container platforms follow
	// a SIGTERM with a SIGKILL after 30 s.
	defaultDrain = 20 * time.Second
)

// gcPercent is Go's GOGC, unless the environment sets it: the heap is small, and a collection takes a core from a round.
const gcPercent = 200

// Main is the custom handler of an app: the main function of a program calls it, and it does not return. It reads its
// settings from the environment (package settings), reports bad ones all at once, and logs in JSON to standard output.
//
// Its exit codes tell the host what to do; after 0 the host would not start it again, so it never exits with 0 once it is
// meant to serve:
//
//	0        manifest, replay, -version and -h only
//	1        the server failed, the host is gone, or a replay found a difference
//	2        bad settings or arguments
//	128 + n  stopped by signal n, after handing back its work and waiting for requests in flight
//
// A signal, and the end of the host, close it: nothing begins any more, what runs is committed and put back, so that other processes
// go on with it at once, and they are told. That takes a moment, and a few seconds when activities do not look at their contexts.
// A second signal ends it at once.
//
// After three exits within half an hour the host ends, too, so nothing that may pass ends the program: while storage or the
// vault cannot be used, it answers probes, refuses what needs them, and tries again. Why it ended at 1 or 2 is on standard
// error, too, where the host's record of a crash takes it from.
func Main(a App) {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	r := runner{Stdout: os.Stdout, Stderr: os.Stderr, App: a, Environment: environ.Names(os.Environ())}
	os.Exit(r.Run(context.Background(), os.Args[1:], environ.Lookup(os.Environ())))
}

// runner runs an app, as tests and Main start it.
type runner struct {
	// Stdout takes the log, Stderr what ends the program; both are required.
	Stdout, Stderr io.Writer
	App            App
	// Wire builds the program; nil means App.wire.
	Wire func(r *settings.Reader, s settings.Settings, log *slog.Logger) (program, error)
	// Getppid tells the parent process; nil means os.Getppid.
	Getppid func() int
	// Drain bounds the wait for what is in flight when a signal stops the program; 0 means 20 s.
	Drain time.Duration
	// Environment are the names of all variables, for the search for mistyped ones.
	Environment []string
}

// Run runs the program until it is stopped and returns its exit code, which Main lists. The end of ctx counts as a failure:
// the program has no reason of its own to stop.
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
	if code == exitFailure && !errors.Is(err, errParentGone) { // else nobody reads it
		m.complain("stopped: " + err.Error())
	}
	return code
}

// badSettings tells of all settings that are missing or wrong.
func (m runner) badSettings(err error) int {
	m.complain("these app settings are missing or wrong: " + err.Error())
	return exitUsage
}

// complain writes to standard error what ends the program, in one line: the host knows an error by its words, and its record of a
// crash has few lines, those that it had read when the process was gone.
func (m runner) complain(text string) {
	fmt.Fprintf(m.Stderr, "handler: error: %s\n", strings.ReplaceAll(strings.TrimSpace(redact.Text(text)), "\n", "; "))
}

// load reads the settings. When some are wrong, the engines are asked for theirs as well, so that all are told at once.
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
	if definitions, err := m.App.Engines(&inMemory); err == nil { // what it cannot build for want of settings is not the news
		_ = readSchedules(r, definitions)
	}
	return s, log, stop, errors.Join(err, r.Err())
}

// serve starts the program and runs its server until that fails, a signal comes, the parent is gone, or ctx ends. It
// always returns an error, which says what it was.
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
	// Its end comes first: nobody waits then for what is not going to be there.
	group.Add(func() error { return prepare(ctx, a.Preparation) }, stop)
	group.Add(srv.serve, func(reason error) {
		log.InfoContext(ctx, "stopping", "reason", reason.Error())
		m.stop(a, srv, reason, log)
	})
	group.Add(func() error { return awaitSignal(ctx, signals) }, stop)
	group.Add(func() error { return watchParent(ctx, parent, getppid) }, stop)
	return group.Run()
}

// stop hands the work back while the server still answers: the host has to be told that messages were put back, and sends more. Then
// the server ends, when the other requests have.
func (m runner) stop(a program, srv *server, reason error, log *slog.Logger) {
	began, wait := time.Now(), m.Drain
	if wait == 0 {
		wait = defaultDrain
	}
	if err := a.handBack(context.Background(), log); err != nil {
		log.Error("not all work is handed back: others take it over in time", "error", err.Error())
	}
	if errors.Is(reason, errParentGone) {
		wait = 0 // nobody is left to take an answer
	} else if a.Gate != nil {
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
