package preparation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet discards the log.
var quiet = slog.New(slog.DiscardHandler)

// step returns a step that succeeds at its n-th call, and a counter of calls.
func step(succeedsAt int, err error) (Step, *atomic.Int32) {
	calls := &atomic.Int32{}
	return func(context.Context) error {
		if int(calls.Add(1)) < succeedsAt {
			return err
		}
		return nil
	}, calls
}

// A successful step is not repeated, and a stage waits for all steps of the previous one.
func TestOnlyWhatFailedIsRepeated(t *testing.T) {
	t.Parallel()
	good, goodCalls := step(1, nil)
	late, lateCalls := step(3, tables.ErrThrottled)
	next, nextCalls := step(1, nil)
	p := New(quiet, []Step{good, late}, []Step{next})
	for round, want := range []struct {
		fails              bool
		good, late, second int32
	}{{true, 1, 1, 0}, {true, 1, 2, 0}, {false, 1, 3, 1}, {false, 1, 3, 1}} {
		err := p.Try(t.Context())
		if (err != nil) != want.fails || goodCalls.Load() != want.good || lateCalls.Load() != want.late || nextCalls.Load() != want.second {
			t.Errorf("round %d: %v, %d, %d and %d calls, want %+v", round, err, goodCalls.Load(), lateCalls.Load(), nextCalls.Load(), want)
		}
		if got := p.Err(); (got != nil) != want.fails || got != nil && !(errors.Is(got, ErrUnprepared) && errors.Is(got, tables.ErrThrottled)) {
			t.Errorf("round %d: %v", round, got)
		}
	}
}

// Storage that becomes available after an hour is found within 15 s, and waiting callers continue.
func TestStorageThatComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var log bytes.Buffer
		var rounds int
		p := New(slog.New(slog.NewJSONHandler(&log, nil)), []Step{func(context.Context) error {
			rounds++
			if time.Since(began) < time.Hour {
				return fmt.Errorf("create table orders: %w: connection refused", tables.ErrOutcomeUnknown)
			}
			return nil
		}})
		waited := make(chan time.Duration)
		go func() {
			if err := p.Await(context.Background()); err != nil {
				t.Error(err)
			}
			waited <- time.Since(began)
		}()
		testenv.OK(t, p.Run(t.Context()))
		if took := <-waited; took < time.Hour || took > time.Hour+maxDelay {
			t.Errorf("waited for %v", took)
		}
		// 1 + 2 + 4 + 8 s, and then every 15 s.
		if want := 4 + (3600-15)/15 + 1 + 1; rounds != want && rounds != want-1 {
			t.Errorf("%d rounds, want about %d", rounds, want)
		}
		testenv.Equal(t, "lines about failed rounds", rounds-1, strings.Count(log.String(), `"level":"ERROR"`))
		if !strings.Contains(log.String(), `"msg":"storage is prepared","rounds":`) {
			t.Error("the log does not say when it was over")
		}
	})
}

func TestNobodyWaitsLongerThanItsContextOrTheProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(quiet, []Step{func(context.Context) error { return tables.ErrDenied }})
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Await(hurried); !errors.Is(err, ErrUnprepared) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before the first round: %v", err)
		}
		running, stop := context.WithCancelCause(t.Context())
		ended, waited := make(chan error), make(chan error)
		go func() { ended <- p.Run(running) }()
		go func() { waited <- p.Await(context.Background()) }()
		synctest.Wait()
		stopped := errors.New("stopped")
		stop(stopped)
		if err := <-ended; !errors.Is(err, stopped) {
			t.Errorf("run: %v", err)
		}
		if err := <-waited; !errors.Is(err, ErrUnprepared) || !errors.Is(err, tables.ErrDenied) || !errors.Is(err, errEnded) {
			t.Errorf("await: %v", err)
		}
	})
}

// Steps run in parallel, up to the limit, and a round ends although storage hangs.
func TestRoundsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		slow := func(ctx context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(10 * time.Millisecond)
			return nil
		}
		steps := make([]Step, 40)
		for i := range steps {
			steps[i] = slow
		}
		began := time.Now()
		if err := New(quiet, steps).Try(t.Context()); err != nil || time.Since(began) != 30*time.Millisecond || most.Load() != parallel {
			t.Errorf("%v after %v, %d at the same time", err, time.Since(began), most.Load())
		}
		for i := range steps {
			steps[i] = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}
		began = time.Now()
		if err := New(quiet, steps).Try(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != roundLimit {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A step that panics is a failed one: others succeed, and the process continues.
func TestAStepThatPanics(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	good, calls := step(1, nil)
	p := New(slog.New(slog.NewJSONHandler(&log, nil)), []Step{func(context.Context) error { panic("oh") }, good})
	if err := p.Try(t.Context()); err == nil || !strings.Contains(err.Error(), "1 of 2 steps failed: 1 panic: oh") || calls.Load() != 1 {
		t.Errorf("%v, %d calls", err, calls.Load())
	}
	if !strings.Contains(log.String(), "preparation_test.go") {
		t.Errorf("no stack in the log: %s", &log)
	}
}

func TestNothingToPrepare(t *testing.T) {
	t.Parallel()
	var p *Preparation
	if err := errors.Join(p.Try(t.Context()), p.Run(t.Context()), p.Await(t.Context()), p.Err()); err != nil {
		t.Error(err)
	}
}

// Many failures are one line, which names each cause once, with an example.
func TestFailuresAreGrouped(t *testing.T) {
	t.Parallel()
	refused := func(table string) error {
		return fmt.Errorf("create table %s: %w: dial tcp 127.0.0.1:1: connect: connection refused", table, tables.ErrOutcomeUnknown)
	}
	several := []error{refused("a"), fmt.Errorf("create queue b: %w", tables.ErrDenied), refused("c"), errors.New("odd\nthing"), errors.New("odd\nthing")}
	for name, tt := range map[string]struct {
		failures []error
		want     string
	}{
		"one cause": {[]error{refused("a"), refused("b")}, "2 of 36 steps failed: 2 without an answer: is the storage account there, and can this app reach it? " +
			"(" + refused("a").Error() + ")"},
		"several": {several, "5 of 36 steps failed: 2 without an answer: is the storage account there, and can this app reach it? (" + refused("a").Error() + "); " +
			"1 refused: the app's identity needs the roles that docs/settings.md lists, and may get them while the app runs (" + several[1].Error() + "); 2 odd thing"},
		"long": {[]error{errors.New(strings.Repeat("x", 1000))}, "1 of 36 steps failed: 1 " + strings.Repeat("x", maxText) + "..."},
		"many": {[]error{errors.New("a"), errors.New("b"), errors.New("c"), errors.New("d"), errors.New("e"), errors.New("f")},
			"6 of 36 steps failed: 1 a; 1 b; 1 c; 1 d; 2 other causes"},
	} {
		testenv.Equal(t, name, tt.want, (&RoundError{Tried: 36, Failures: tt.failures}).Error())
	}
}
