package outage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Work that has to be completed has the rest of the time of its waiting caller, and then its own time.
func TestFinish(t *testing.T) {
	t.Parallel()
	const d = 30 * time.Second
	waiting := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithTimeout(ctx, budget)
		return outage.Wait(ctx), cancel
	}
	for name, tt := range map[string]struct {
		ctx  func(ctx context.Context) (context.Context, context.CancelFunc)
		ends time.Duration // when the caller's context ends; 0 is never
		want time.Duration
	}{
		"unmarked":               {context.WithCancel, 0, d},
		"unmarked, ends":         {context.WithCancel, 10 * time.Second, d},
		"waits":                  {waiting, 0, budget + d},
		"waits, and is stopped":  {waiting, time.Minute, time.Minute + d},
		"waits, ended before":    {waiting, -1, d},
		"waits without deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) { return outage.Wait(ctx), func() {} }, 0, d},
		"hurries": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := waiting(ctx)
			return outage.Hurry(ctx), cancel
		}, 0, d},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, stop := tt.ctx(t.Context())
				defer stop()
				if tt.ends < 0 {
					stop()
				}
				work, cancel := outage.Finish(ctx, d)
				defer cancel()
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, stop)
				}
				if <-work.Done(); time.Since(began) != tt.want {
					t.Errorf("it ended after %v, want %v", time.Since(began), tt.want)
				}
			})
		})
	}
}

// once is a table with these answers to its first calls.
func once(inner tables.Store, answers ...error) tables.Store {
	return faults.Tables(inner, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Target != table || len(answers) == 0 {
			return next(ctx)
		}
		answer := answers[0]
		answers = answers[1:]
		return answer
	})
}

// A call without an answer is repeated while its service is up, but not for ever; a call that storage refuses is not
// repeated.
func TestTroubleThatIsNoOutage(t *testing.T) {
	t.Parallel()
	unknown := make([]error, 8)
	for n := range unknown {
		unknown[n] = tables.ErrOutcomeUnknown
	}
	for name, tt := range map[string]struct {
		mark    func(context.Context) context.Context
		answers []error
		want    error // nil is success
		after   time.Duration
	}{
		"unmarked":             {func(ctx context.Context) context.Context { return ctx }, []error{tables.ErrThrottled}, tables.ErrThrottled, 0},
		"hurries":              {outage.Hurry, []error{tables.ErrThrottled}, tables.ErrThrottled, 0},
		"busy":                 {outage.Wait, []error{tables.ErrThrottled, tables.ErrThrottled}, nil, time.Second},
		"unknown":              {outage.Wait, unknown[:7], nil, 30 * time.Second},
		"unknown for too long": {outage.Wait, unknown, tables.ErrOutcomeUnknown, 30 * time.Second},
		"denied":               {outage.Wait, []error{tables.ErrDenied}, tables.ErrDenied, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				err := outage.Tables(once(w.inTables, tt.answers...), outage.Config{}).Apply(tt.mark(ctx), table, tables.Insert(row("a")))
				if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || time.Since(began) > tt.after {
					t.Errorf("%v after %v, want %v", err, time.Since(began), tt.want)
				}
			})
		})
	}
}

// The outcome is unknown once a try has left it open, regardless of the last answer.
func TestWhatIsNotKnownStaysUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first error
		want  error
		not   error
	}{
		"nothing was sent": {nil, tables.ErrThrottled, tables.ErrOutcomeUnknown},
		"refused":          {tables.ErrThrottled, tables.ErrThrottled, tables.ErrOutcomeUnknown},
		"lost":             {tables.ErrOutcomeUnknown, tables.ErrOutcomeUnknown, tables.ErrThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				s := outage.Tables(faults.Tables(tables.NewMemory(), func(_ context.Context, c faults.Call, _ func(context.Context) error) error {
					if c.Target == table {
						if calls++; calls == 1 && tt.first != nil {
							return tt.first
						}
					}
					return tables.ErrThrottled
				}), outage.Config{})
				if tt.first == nil { // another process has read the outcome
					_, _ = s.Get(outage.Hurry(t.Context()), "others", row("a").Key)
					synctest.Wait()
				}
				err := s.Apply(invocation(t, budget), table, tables.Insert(row("a")))
				if !errors.Is(err, tt.want) || errors.Is(err, tt.not) || !errors.Is(err, context.DeadlineExceeded) && tt.first == nil {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// The last try of many was refused, and the first was lost.
func TestALostTryIsNotForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		answers := []error{tables.ErrOutcomeUnknown}
		for range 1000 {
			answers = append(answers, tables.ErrThrottled)
		}
		began := time.Now()
		err := outage.Tables(once(w.inTables, answers...), outage.Config{}).Apply(invocation(t, time.Minute), table, tables.Insert(row("a")))
		if !errors.Is(err, tables.ErrOutcomeUnknown) || errors.Is(err, tables.ErrThrottled) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A message that its sender keeps hidden is not sent twice: if its answer is lost, the sender gets the error once
// storage is back. Any other message is repeated.
func TestAHiddenMessageIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hidden   bool
		want     error
		messages int
	}{"hidden": {true, queues.ErrOutcomeUnknown, 1}, "other": {false, nil, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, lost := time.Now(), false
				inner := newWorld(t, 1).inQueues
				s := outage.Queues(faults.Queues(inner, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
					if time.Since(began) > 12*time.Second {
						return next(ctx)
					}
					if !lost {
						lost = true
						if err := next(ctx); err != nil {
							return err
						}
					}
					return queues.ErrOutcomeUnknown
				}), outage.Config{})
				var err error
				if ctx := invocation(t, budget); tt.hidden {
					_, err = s.SendHidden(ctx, queue, []byte("sign"), time.Minute)
				} else {
					_, err = s.Send(ctx, queue, []byte("sign"), time.Minute)
				}
				if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || time.Since(began) < 12*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if n, err := inner.Length(t.Context(), queue); err != nil || n != tt.messages {
					t.Errorf("%d messages, want %d: %v", n, tt.messages, err)
				}
			})
		})
	}
}
