package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/vibedata/roundhouse/engine"
)

// terminal is an operator at a terminal.
type terminal struct {
	us, program *os.File
	signals     chan os.Signal
	ended       chan int
	seen        bytes.Buffer
}

// at runs the program at a terminal.
func (w *world) at(t *testing.T, settings map[string]string, args ...string) *terminal {
	t.Helper()
	us, program, err := pty.Open()
	must(t, err)
	must(t, pty.Setsize(program, &pty.Winsize{Rows: 24, Cols: 80}))
	m, _, _ := w.main(settings)
	term := &terminal{us: us, program: program, signals: make(chan os.Signal, 2), ended: make(chan int, 1)}
	m.Stdin, m.Stdout, m.Stderr, m.Signals = program, program, program, term.signals
	go func() { term.ended <- m.Run(context.WithoutCancel(t.Context()), args) }()
	t.Cleanup(func() {
		us.Close() // which ends an abandoned read
		program.Close()
	})
	return term
}

// sees reads the screen until it shows a text.
func (term *terminal) sees(t *testing.T, text string) {
	t.Helper()
	piece := make([]byte, 4096)
	for !strings.Contains(term.seen.String(), text) {
		n, err := term.us.Read(piece)
		term.seen.Write(piece[:n])
		if err != nil {
			t.Fatalf("%v: no %q in\n%s", err, text, term.seen.String())
		}
	}
}

func (term *terminal) types(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(term.us, line+"\n")
	must(t, err)
}

// ends waits for the exit code.
func (term *terminal) ends(t *testing.T, want int) {
	t.Helper()
	if code := <-term.ended; code != want {
		t.Errorf("exit code %d, want %d\n%s", code, want, term.seen.String())
	}
}

func (w *world) status(t *testing.T, id string) string {
	t.Helper()
	s, err := w.runtime.Get(t.Context(), id)
	must(t, err)
	return string(s.Status)
}

// At a terminal, a dangerous command shows its changes, and asks for the name.
func TestGuardAtTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "a1", "")
	const asks = `Type "a1" to go on: `
	for _, typed := range []string{"", "y", "a1 x", "A1"} {
		term := w.at(t, nil, "orchestration", "terminate", "a1")
		term.sees(t, asks)
		for _, shown := range []string{"This will terminate the orchestration a1:", "before: approval, Running, waits for Event", "after:  Terminated"} {
			term.sees(t, shown)
		}
		term.types(t, typed)
		term.sees(t, "not confirmed")
		term.ends(t, exitRefused)
	}
	term := w.at(t, nil, "orchestration", "terminate", "a1")
	term.sees(t, asks)
	term.signals <- os.Interrupt
	term.ends(t, exitInterrupted)
	if changes := w.changes(); len(changes) != 0 {
		t.Fatalf("not confirmed, and yet %v", changes)
	}
	term = w.at(t, nil, "orchestration", "terminate", "a1")
	term.sees(t, asks)
	term.types(t, "a1")
	term.ends(t, exitOK)
	w.drive(t)
	if got := w.status(t, "a1"); got != "Terminated" {
		t.Error(got)
	}
}

// In production, a dangerous command is a dry run until --execute; without a terminal, it needs --yes.
func TestGuards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "a1", "")
	w.begin(t, "done", "fail")
	w.deadLetter(t, "m1", "vault said no", time.Now().Add(-48*time.Hour))
	dead := w.add(t, "acme", `{"n":"bad"}`)
	must(t, w.sweep(t.Context()))
	prod := map[string]string{"ROUNDHOUSE_ENVIRONMENT": "Production"}
	for _, command := range []string{
		"orchestration terminate a1", "orchestration purge done", "orchestration purge --all --older-than-days 0",
		"dlq retry --all --engine hmac", "dlq expire --all --older-than-days 1", "outbox replay --all --status dead",
	} {
		args := strings.Fields(command)
		check(t, w.runWith(t, prod, args...), exitOK, []string{"This will ", "Dry run: nothing was changed. This is production: add --execute."}, args...)
		check(t, w.runWith(t, prod, append(args, "--yes")...), exitOK, []string{"Dry run"}, args...)
		check(t, w.runWith(t, prod, append(args, "--execute")...), exitRefused, []string{"add --yes"}, args...)
		check(t, w.runWith(t, nil, append(args, "--dry-run", "--yes")...), exitOK, []string{"Dry run: nothing was changed."}, args...)
		check(t, w.runWith(t, nil, append(args, "--dry-run", "--execute")...), exitUsage, nil, args...)
		check(t, w.runWith(t, nil, args...), exitRefused, []string{"add --yes"}, args...)
		r := w.runWith(t, prod, append(args, "-o", "json")...)
		var p plan
		if err := json.Unmarshal([]byte(r.out), &p); err != nil || !p.DryRun || len(p.Effect) == 0 || r.code != exitOK {
			t.Errorf("%s: %v %s%s", command, err, r.out, r.err)
		}
	}
	if changes := w.changes(); len(changes) != 0 {
		t.Fatalf("nothing was confirmed, and yet %v", changes)
	}
	check(t, w.runWith(t, prod, "outbox", "replay", "--all", "--status", "dead", "--execute", "--yes"), exitOK, []string{"before: 1 message, dead\n", "1/1", "Succeeded"})
	if w.want(t, 0, []string{"pending"}, "outbox", "show", "acme", dead); len(w.changes()) != 1 {
		t.Error(w.changes())
	}
}

// An address that is not this machine's is production unless stated otherwise.
func TestProduction(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings map[string]string
		flags    globals
		storage  bool
		want     bool
	}{
		{want: false},
		{storage: true, want: false},
		{flags: globals{url: "https://app.example.org"}, want: true},
		{settings: map[string]string{"ROUNDHOUSE_URL": "https://app.example.org"}, want: true},
		{settings: map[string]string{"ROUNDHOUSE_URL": "https://app.example.org", "ROUNDHOUSE_ENVIRONMENT": "test"}, want: false},
		{settings: map[string]string{"ROUNDHOUSE_ENVIRONMENT": "production"}, want: true},
		{settings: map[string]string{storageSetting: "UseDevelopmentStorage=true"}, storage: true, want: false},
		{settings: map[string]string{storageSetting + "__accountName": "acct1"}, storage: true, want: true},
		{settings: map[string]string{storageSetting: "AccountName=acct1;AccountKey=c2VjcmV0"}, storage: true, want: true},
		{flags: globals{storage: "AccountName=acct1;AccountKey=c2VjcmV0"}, storage: true, want: true},
		{flags: globals{url: "https://app.example.org"}, storage: true, want: true},
	} {
		a := &app{Main: Main{Lookup: environment(tt.settings)}, flags: tt.flags}
		if got := a.production(tt.storage); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// The selection of an operation is shown, then its progress, and then its result.
func TestBulk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 30 {
		w.deadLetter(t, fmt.Sprint("m", i), "vault said no", time.Now().Add(-time.Duration(i)*24*time.Hour))
	}
	w.want(t, 2, []string{"ratePerSecond"}, "dlq", "retry", "--all", "--engine", "hmac", "--rate", "-1", "--yes")
	w.want(t, 0, []string{"30 dead letters, now:", "    30  vault said no", "30/30", "Succeeded"}, "dlq", "retry", "--all", "--engine", "hmac", "--rate", "100", "--yes")
	if n, err := w.queues.Length(t.Context(), "hmac-rotation-queue"); err != nil || n != 30 {
		t.Errorf("%d messages, %v", n, err)
	}
	w.want(t, 0, []string{"there is nothing to retry"}, "dlq", "retry", "--all", "--engine", "hmac", "--yes")
	w.deadLetter(t, "new", "now", time.Now())
	for i := range 3 {
		w.deadLetter(t, fmt.Sprint("old", i), "then", time.Now().Add(-100*24*time.Hour))
	}
	w.want(t, 0, []string{"3 dead letters, now:", "operation show"}, "dlq", "expire", "--all", "--older-than-days", "50", "--no-wait", "-y")
	w.drive(t)
	page, err := w.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, Status: engine.StatusPending})
	if must(t, err); len(page.DeadLetters) != 1 || page.DeadLetters[0].CorrelationID != "run-new" {
		t.Errorf("%+v", page.DeadLetters)
	}
	for i := range 4 {
		w.begin(t, fmt.Sprint("f", i), "fail")
	}
	w.begin(t, "waits", "")
	w.want(t, 0, []string{"before: 4 orchestrations that ended", "4/4"}, "orchestration", "purge", "--all", "--older-than-days", "0", "--status", "failed", "--yes")
	w.want(t, 0, []string{"nothing to delete"}, "orchestration", "purge", "--all", "--older-than-days", "0", "--status", "failed", "--yes")
}

func TestAbout(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 messages": about(0, false, "message"), "1 message": about(1, false, "message"), "2 messages": about(2, false, "message"), "1 or more messages": about(1, true, "message"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Ctrl-C leaves an operation running, or cancels it if the operator at the terminal confirms that.
func TestInterruptedBulk(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"n": "The operation goes on", "y": "It ends a little later"} {
		w := newWorld(t)
		w.leave()
		w.deadLetter(t, "m1", "vault said no", time.Now())
		term := w.at(t, nil, "dlq", "retry", "--all", "--engine", "hmac", "--yes")
		term.sees(t, "NotStarted")
		term.signals <- os.Interrupt
		term.sees(t, "Cancel the operation?")
		term.types(t, answer)
		term.sees(t, want)
		term.ends(t, exitInterrupted)
		canceled := slices.ContainsFunc(w.changes(), func(r string) bool { return strings.HasSuffix(r, "/cancel") })
		if canceled != (answer == "y") {
			t.Errorf("%s: %v", answer, w.changes())
		}
	}
	// Without a terminal, no question is asked, and the operation continues.
	w := newWorld(t)
	w.leave()
	w.deadLetter(t, "m1", "vault said no", time.Now())
	m, _, errs := w.main(nil)
	signals := make(chan os.Signal, 1)
	m.Signals = signals
	reader, writer := io.Pipe()
	m.Stderr = writer
	go func() {
		piece := make([]byte, 4096)
		for {
			n, err := reader.Read(piece)
			errs.Write(piece[:n])
			if strings.Contains(errs.String(), "NotStarted") && len(signals) == 0 {
				select {
				case signals <- syscall.SIGTERM:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	code := m.Run(t.Context(), []string{"dlq", "retry", "--all", "--engine", "hmac", "--yes"})
	writer.Close()
	if code != exitInterrupted || len(w.changes()) != 1 {
		t.Errorf("%d %v", code, w.changes())
	}
}

// A wait survives a temporary outage of the app, but not an unknown operation.
func TestWaitThroughTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deadLetter(t, "m1", "vault said no", time.Now())
	r := w.want(t, 0, nil, "dlq", "retry", "--all", "--engine", "hmac", "--yes", "--no-wait", "-o", "json")
	var o struct{ ID string }
	must(t, json.Unmarshal([]byte(r.out), &o))
	var away atomic.Int32
	away.Store(3)
	w.refusing(func(rw http.ResponseWriter, _ *http.Request) {
		if away.Add(-1) == 0 {
			w.refusing(nil)
		}
		rw.WriteHeader(http.StatusBadGateway)
	})
	w.want(t, 0, []string{"Succeeded"}, "operation", "wait", o.ID)
	w.refusing(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	w.want(t, exitUnreachable, []string{"goes on unseen"}, "operation", "wait", o.ID)
}
