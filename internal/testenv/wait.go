package testenv

import (
	"context"
	"testing"
	"time"
)

const (
	// pollEvery is the polling interval of Until.
	pollEvery = 20 * time.Millisecond
	// reportBefore is the time before the end of the test binary in which a test reports the awaited state.
	reportBefore = 20 * time.Second
)

// Long skips a test in a -short run, which has stores in memory and virtual time only: no other process, no real clock.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs another process or a real clock; run it without -short")
	}
}

// Context returns a context that ends with the test, and shortly before the test binary's own limit (-timeout). It is
// the only deadline of a test that waits for another process: slowness on an overloaded machine is no failure.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := t.Context(), func() {}
	if end, ok := deadline(t); ok {
		ctx, cancel = context.WithDeadline(ctx, end)
	}
	t.Cleanup(cancel)
	return ctx
}

// deadline returns the time until which t may wait: shortly before the test binary's limit, if it has one.
func deadline(t testing.TB) (end time.Time, ok bool) {
	if limited, has := t.(interface{ Deadline() (time.Time, bool) }); has {
		end, ok = limited.Deadline()
	}
	return end.Add(-reportBefore), ok
}

// end returns a channel that is closed when t may wait no longer, or nil. Unlike Context it outlives the test's own
// context, so that cleanup functions can wait.
func end(t testing.TB) (over <-chan struct{}, stop func()) {
	limit, ok := deadline(t)
	if !ok {
		return nil, func() {}
	}
	ctx, cancel := context.WithDeadline(context.Background(), limit)
	return ctx.Done(), cancel
}

// Until polls done until it returns true. It fails the test, with the text what, when Context ends before.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	Await(t, what, func() (state string, ok bool) { return "not yet", done() })
}

// Await polls read until it reports the awaited state, and returns that state. It fails the test, with the text what
// and the last state, when Context ends before.
func Await[T any](t testing.TB, what string, read func() (state T, ok bool)) T {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	over, stop := end(t)
	defer stop()
	for {
		state, ok := read()
		if ok {
			return state
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%s: still awaited when the test's time was nearly over; last state: %v", what, state)
		}
	}
}

// Receive returns the next value of c, or the zero value when c is closed. It fails the test, with the text what, when
// Context ends before.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	over, stop := end(t)
	defer stop()
	select {
	case v := <-c:
		return v
	case <-over:
		t.Fatalf("%s: still awaited when the test's time was nearly over", what)
		panic("unreachable")
	}
}
