package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// direct makes the process deliver its own messages.
func (p *process) direct() *process {
	p.writer = p.dispatcher.Writer()
	return p
}

// close waits until all started deliveries are settled.
func (p *process) close(t testing.TB) {
	t.Helper()
	testenv.OK(t, p.dispatcher.Close(t.Context()))
}

// The cost of a message that its process delivers directly.
func TestDirectTransactions(t *testing.T) {
	t.Parallel()
	ordered := func(n int) Message { m := message1(n); m.OrderKey = fmt.Sprint(n); return m }
	for name, tt := range map[string]struct {
		before []Message // added before the count starts
		rest   time.Duration
		add    []Message
		want   string
	}{
		"busy":          {[]Message{message1(0)}, 0, []Message{message1(1)}, "tables.Apply transport.Deliver tables.Apply"},
		"alone":         {[]Message{message1(0)}, time.Hour, []Message{message1(1)}, "tables.Apply tables.Apply tables.Apply transport.Deliver tables.Apply"},
		"new":           {nil, 0, []Message{message1(1)}, "tables.Get tables.Query tables.Apply tables.Apply tables.Apply tables.Apply transport.Deliver tables.Apply"},
		"ordered":       {[]Message{message1(0)}, 0, []Message{ordered(1)}, "tables.Apply transport.Deliver tables.Get tables.Apply"},
		"ordered twice": {[]Message{message1(0)}, 0, []Message{ordered(1), ordered(2)}, "tables.Apply tables.Apply transport.Deliver transport.Deliver tables.Query tables.Apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, plan := newWorld(t), &faults.Plan{}
				w.deliver = func(context.Context, Event) error { time.Sleep(time.Millisecond); return nil } // in the bubble
				p := w.process(t, plan).direct()
				for _, m := range tt.before {
					p.add(t, m)
					time.Sleep(time.Second)
				}
				w.pass(tt.rest)
				before := len(plan.Calls())
				for _, m := range tt.add {
					p.add(t, m)
				}
				time.Sleep(time.Second)
				var got []string
				for _, c := range plan.Calls()[before:] {
					got = append(got, c.Service+"."+c.Operation)
				}
				if got := strings.Join(got, " "); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				if s := w.check(t, "acme"); s[StatusProcessed] != len(tt.before)+len(tt.add) {
					t.Errorf("%v", s)
				}
				p.close(t)
			})
		})
	}
}

// A wake-up is sent only for messages that the process cannot deliver itself.
func TestDirectLeavesToOthers(t *testing.T) {
	t.Parallel()
	open := func(p *process) {
		to := p.dispatcher.destination("sink")
		for range p.o.options.CircuitFailures {
			to.circuit.end(p.o.now(), false, "")
		}
	}
	full := func(p *process) {
		p.dispatcher.destination("sink").depth.TryAcquire(int64(depthFactor * p.o.options.BatchSize))
	}
	closed := func(p *process) { _ = p.dispatcher.Close(context.Background()) } // no delivery is in flight
	behind := func(p *process) {
		m := message1(9)
		m.OrderKey = "k"
		_, _ = NewWriter(p.o).Add(context.Background(), m) // counted by its remaining rows
	}
	for name, tt := range map[string]struct {
		before func(*process)
		wakes  int
		sent   int // without a dispatcher to wake
	}{
		"room":       {func(*process) {}, 0, 1},
		"circuit":    {open, 1, 0},
		"full":       {full, 1, 0},
		"closed":     {closed, 1, 0},
		"order key":  {behind, 2, 0},
		"not routed": {func(p *process) { p.dispatcher.router = &Router{} }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.process(t, nil).direct()
				tt.before(p)
				m := message1(1)
				m.OrderKey = "k"
				p.add(t, m)
				time.Sleep(time.Second) // a bubble's
				p.close(t)
				n, err := w.queues.Length(t.Context(), w.queue)
				if err != nil || n != tt.wakes || len(w.events()) != tt.sent {
					t.Errorf("%d wake-ups, %d sent, %v", n, len(w.events()), err)
				}
				w.pass(time.Hour)
				w.process(t, nil).sweep(t)
				if s := w.check(t, "acme"); s[StatusPending] != 0 {
					t.Errorf("%v", s)
				}
			})
		})
	}
}

// Add does not wait for the delivery, and Close waits for started ones: a message that waits for a slot is returned to
// other dispatchers.
func TestDirectClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.options.MaxPerDestination = 2
		answer := make(chan struct{})
		w.deliver = func(context.Context, Event) error { <-answer; return nil }
		p := w.process(t, nil).direct()
		for i := range 5 {
			p.add(t, message1(i))
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.dispatcher.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if len(w.events()) != 0 {
			t.Errorf("%d sent", len(w.events()))
		}
		close(answer)
		p.close(t)
		if s := w.check(t, "acme"); s[StatusProcessed] != 2 || s[StatusPending] != 3 {
			t.Errorf("%v", s)
		}
		if r := w.process(t, nil).sweep(t); r.Delivered != 3 {
			t.Errorf("%+v", r)
		}
	})
}

// A message that a process has claimed with its addition and not delivered is found when the claim ends, or when its
// node is taken over.
func TestDirectClaimIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]bool{"claim ends": false, "taken over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				dies := &faults.Plan{}
				p := w.process(t, dies).direct()
				p.add(t, message1(0))
				time.Sleep(time.Second)                                       // a bubble's
				dies.At, dies.Fault = len(dies.Calls())+2, faults.CrashBefore // the delivery
				p.add(t, message1(1))
				time.Sleep(time.Second)
				p.close(t)
				q := w.process(t, nil)
				if r := q.sweep(t); r != (Result{}) {
					t.Errorf("%+v", r)
				}
				if release {
					if n, err := q.dispatcher.Release(t.Context(), "node-1", true); n != 1 || err != nil {
						t.Errorf("%d, %v", n, err)
					}
				} else {
					w.pass(w.options.ClaimDuration + claimGrace)
				}
				if r, err := q.dispatcher.sweepOpen(t.Context()); err != nil || r.Delivered != 1 {
					t.Errorf("%+v, %v", r, err)
				}
				w.check(t, "acme")
			})
		})
	}
}

// Messages of an order key leave in their order, with any writers and dispatchers.
func TestDirectOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deliver = func(_ context.Context, e Event) error {
			time.Sleep(time.Duration(10-e.Attempt) * 100 * time.Millisecond)
			return nil
		}
		var all []*process
		for range 3 {
			all = append(all, w.process(t, nil).direct())
		}
		for i := range 12 {
			m := message1(i)
			m.OrderKey = "k"
			all[i%3].add(t, m)
		}
		time.Sleep(time.Minute)
		for _, p := range all {
			p.close(t)
		}
		sent := w.events()
		for i, e := range sent {
			if numberOf(e) != i {
				t.Errorf("%d is the %dth", numberOf(e), i)
			}
		}
		if s := w.check(t, "acme"); s[StatusProcessed] != 12 {
			t.Errorf("%v", s)
		}
	})
}
