package testenv

import (
	"context"
	"testing"
	"time"
)

const (
	// pollEvery is how often Until asks.
	pollEvery = 20 * time.Millisecond
	// reportBefore is the time that a test keeps, before the test binary ends, to report what it waited for.
	reportBefore = 20 * time.Second
)

// Long skips a test in a -short run, which has stores in memory and virtual time only: no other process, no real clock.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs another process or a real clock; run it without -short")
	}
}

// Context returns a context that ends with the test, and shortly before the test binary's own limit (-timeout). It is the only
// deadline of a test that waits for another process: how long something takes on a busy machine is no failure.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx := t.Context()
	limited, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return ctx
	}
	end, ok := limited.Deadline()
	if !ok {
		return ctx
	}
	ctx, cancel := context.WithDeadline(ctx, end.Add(-reportBefore))
	t.Cleanup(cancel)
	return ctx
}

// Until polls done until it returns true. It fails the test, naming what was awaited, when Context ends before.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx := Context(t)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: still awaited when the test binary's time was nearly over", what)
		}
	}
}

// Receive returns the next value of c, or the zero value when c is closed. It fails the test, naming what was awaited, when Context
// ends before.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-Context(t).Done():
		t.Fatalf("%s: still awaited when the test binary's time was nearly over", what)
		panic("unreachable")
	}
}
