package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/handler/drain"
)

// drains runs drain with a clock that advances by a second at each reading.
func (w *world) drains(t *testing.T, connection string, args ...string) result {
	t.Helper()
	m, out, errs := w.main(map[string]string{storageSetting: connection})
	var seconds atomic.Int64
	began := time.Now()
	m.Now = func() time.Time { return began.Add(time.Duration(seconds.Add(1)) * time.Second) }
	m.Poll = time.Millisecond
	code := m.Run(t.Context(), append([]string{"drain"}, args...))
	return result{code, out.String(), errs.String()}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	connection := storage.Account(t).ConnectionString()
	account, err := azure.FromConnectionString(connection)
	must(t, err)
	t.Cleanup(account.CloseIdleConnections)
	rows, err := azure.NewTables(account)
	must(t, err)
	store := drain.Store{Tables: rows}
	set := func() bool {
		flag, err := store.Flag(t.Context())
		must(t, err)
		return flag.Set(time.Now())
	}

	// Without a confirmation, nothing is done.
	check(t, w.drains(t, connection), exitRefused, []string{"not confirmed", "--yes"})
	check(t, w.drains(t, connection, "--dry-run"), exitOK, []string{"Dry run"})
	check(t, w.drains(t, connection, "--environment", "production", "--yes"), exitOK, []string{"This is production: add --execute"})
	check(t, w.drains(t, connection, "--yes", "--for", "0s"), exitUsage, []string{"--for"})
	check(t, w.drains(t, connection, "--yes", "--wait", "1s"), exitUsage, []string{"--wait"})
	check(t, w.drains(t, connection, "--end"), exitOK, []string{"works again"})
	if set() {
		t.Error("the app is drained")
	}

	// Running processes are listed, and waited for.
	gate := drain.NewGate(store, "busy/1", errors.New("drained"), slog.New(slog.DiscardHandler))
	work, leave, _ := gate.Enter(t.Context())
	m, out, errs := w.main(map[string]string{storageSetting: connection})
	m.Poll = time.Millisecond
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() { done <- m.Run(ctx, []string{"drain", "--yes"}) }()
	<-work.Done() // it has noticed
	flag, err := store.Flag(t.Context())
	must(t, err)
	for { // and reports itself
		nodes, err := store.Look(t.Context(), flag)
		must(t, err)
		if len(nodes) == 1 && nodes[0].Name == "busy/1" && nodes[0].Running == 1 {
			break
		}
	}
	interrupt()
	if code := <-done; code == exitOK || !strings.Contains(errs.String(), "The app stays drained") || strings.Contains(out.String(), "nothing runs") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	w.want(t, exitOK, []string{"warn  drain", "drain --end"}, "doctor", "--storage", connection)
	leave()

	// An idle app is reported as drained.
	r := w.drains(t, connection, "--yes", "-o", "json")
	var told struct{ Drained bool }
	if err := json.Unmarshal([]byte(r.out), &told); err != nil || !told.Drained || r.code != exitOK {
		t.Errorf("%v: exit code %d\n%s%s", err, r.code, r.out, r.err)
	}
	if !set() {
		t.Error("the app is not drained")
	}
	check(t, w.drains(t, connection, "--end"), exitOK, []string{"works again"})
	if set() {
		t.Error("the app is drained still")
	}
	w.want(t, exitOK, []string{"ok    drain"}, "doctor", "--storage", connection)
}

// After the wait, running processes are listed, with exit code 1.
func TestDrainGivesUp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{Main: Main{Stdout: &out, Stderr: &out, Lookup: environment(nil), Now: time.Now, Poll: time.Millisecond}, flags: globals{output: "table", timeout: time.Second}}
	w := newWorld(t)
	store := drain.Store{Tables: w.tables}
	var seconds atomic.Int64
	began := time.Now()
	a.Now = func() time.Time { return began.Add(time.Duration(seconds.Add(1)) * time.Second) }
	gate := drain.NewGate(store, "busy/1", errors.New("drained"), slog.New(slog.DiscardHandler))
	work, leave, _ := gate.Enter(t.Context())
	defer leave()
	flag, err := store.Begin(t.Context(), "ann", time.Hour)
	must(t, err)
	<-work.Done()
	for nodes := []drain.Node(nil); len(nodes) == 0; { // until it has sent its heartbeat
		nodes, err = store.Look(t.Context(), flag)
		must(t, err)
	}
	err = a.awaitDrained(t.Context(), store, flag, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "busy/1: 1, seen") || exitCode(&failure{err}) != exitFailed {
		t.Errorf("%v", err)
	}
}
