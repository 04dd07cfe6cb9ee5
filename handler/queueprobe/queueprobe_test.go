package queueprobe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const queue = "orchestration-signals"

// world is an app with two processes: one has the timer, and the other listens.
type world struct {
	t         *testing.T
	queues    *queues.Memory
	plan      *faults.Plan
	timer     *Probe
	listener  *Probe
	handle    trigger.QueueHandler
	handled   int
	delivered int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, queues: queues.NewMemory(), plan: &faults.Plan{}}
	rows := tables.NewMemory()
	testenv.OK(t, errors.Join(rows.CreateTable(t.Context(), "hostLocks"), w.queues.CreateQueue(t.Context(), queue)))
	w.timer, w.listener = w.process(rows), w.process(rows)
	w.handle = w.listener.Listen(func(context.Context, engine.Delivery) error { w.handled++; return nil })
	return w
}

func (w *world) process(rows tables.Store) *Probe {
	w.t.Helper()
	p, err := New(Config{Tables: faults.Tables(rows, w.plan.Intercept), Table: "hostLocks", Queues: faults.Queues(w.queues, w.plan.Intercept), Queue: queue, Log: slog.New(slog.DiscardHandler)})
	testenv.OK(w.t, err)
	return p
}

// looks advances the time, with a check every five minutes. If the host listens, messages are delivered immediately.
func (w *world) looks(d time.Duration, listens bool) {
	w.t.Helper()
	for range d / lookEvery {
		time.Sleep(lookEvery)
		testenv.OK(w.t, w.timer.Look(w.t.Context()))
		if listens {
			w.deliver()
		}
	}
}

func (w *world) deliver() {
	w.t.Helper()
	received, err := w.queues.Receive(w.t.Context(), queue, queues.MaxReceive, time.Minute)
	for _, m := range received {
		w.delivered++
		err = errors.Join(err, w.handle(w.t.Context(), engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: 1}),
			w.queues.Delete(w.t.Context(), queue, m.ID, m.PopReceipt))
	}
	testenv.OK(w.t, err)
}

func (w *world) send(body string) {
	w.t.Helper()
	testenv.Must(w.queues.Send(w.t.Context(), queue, []byte(body), 0))(w.t)
}

func (w *world) state() State {
	w.t.Helper()
	s, err := w.listener.State(w.t.Context())
	testenv.OK(w.t, err)
	return s
}

// The queue is deaf if and only if no host listens to it.
func TestDeafness(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		pass func(w *world)
		deaf bool
	}{
		{"somebody listens", func(w *world) { w.looks(24*time.Hour, true) }, false},
		{"nobody ever listened", func(w *world) { w.looks(3*lookEvery, false) }, true},
		{"not known yet", func(w *world) { w.looks(2*lookEvery, false) }, false},
		{"nobody listens any more", func(w *world) { w.looks(3*time.Hour, true); w.looks(quiet+3*lookEvery, false) }, true},
		{"somebody listens again", func(w *world) { w.looks(3*time.Hour, false); w.deliver() }, false},
		{"the app was stopped for a night", func(w *world) {
			w.looks(time.Hour, true)
			w.looks(quiet, false) // a probe is in flight when it stops
			time.Sleep(12 * time.Hour)
			w.looks(lookEvery, true)
		}, false},
		{"the queue was cleared", func(w *world) {
			w.looks(lookEvery, false)
			_, err := w.queues.Receive(w.t.Context(), queue, 1, queues.MaxDelay)
			testenv.OK(w.t, err)
			w.looks(lookEvery, true)
			w.looks(time.Hour, true)
		}, false},
		{"the timer's function was run by hand, again and again", func(w *world) {
			for range 20 {
				time.Sleep(time.Second)
				testenv.OK(w.t, w.timer.Look(w.t.Context()))
			}
		}, false},
		{"the queue is so long that the probe does not come", func(w *world) {
			for range 20 {
				w.looks(lookEvery, false)
				testenv.OK(w.t, w.handle(w.t.Context(), engine.Delivery{Queue: queue, ID: "1", Body: []byte("a signal"), DequeueCount: 1}))
			}
		}, false},
	} {
		testenv.Bubble(t, tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.pass(w)
			if s := w.state(); s.Deaf() != tt.deaf {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The app gets messages, and no probes, in any form of delivery.
func TestProbesAreTakenOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.looks(lookEvery, true)
		w.send("a signal")
		w.deliver()
		if w.delivered != 2 || w.handled != 1 {
			t.Errorf("%d of %d deliveries were handled", w.handled, w.delivered)
		}
		poisoned := 0
		poison := w.listener.Poison(func(context.Context, engine.Delivery) error { poisoned++; return nil })
		probe := engine.Delivery{ID: "1", Body: []byte(`{"roundhouseQueueProbe":"2026-11-21T05:41:00Z"}`), DequeueCount: 3}
		again, err := engine.Again(probe)
		testenv.OK(t, err)
		back := probe
		back.Body = again
		for _, tt := range []struct {
			d    engine.Delivery
			want int
		}{{probe, 0}, {back, 0}, {engine.Delivery{ID: "2", Body: []byte("a signal"), DequeueCount: 1}, 1}, {engine.Delivery{ID: "3", Body: []byte(`{"roundhouseQueueProbe":7}`), DequeueCount: 1}, 1}} {
			w.handled, poisoned = 0, 0
			if err := errors.Join(w.handle(t.Context(), tt.d), poison(t.Context(), tt.d)); err != nil || w.handled != tt.want || poisoned != tt.want {
				t.Errorf("%s: %d handled, %d poisoned, %v", tt.d.Body, w.handled, poisoned, err)
			}
		}
	})
}

// An hour costs one request for each check and three more for each of two probes; an hour with messages costs one in
// five minutes.
func TestCost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		messages bool
		want     int
	}{"idle": {false, 12 + 2*3}, "busy": {true, 12 + 12}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.looks(time.Hour, true)
			before := len(w.plan.Calls())
			for range 60 {
				time.Sleep(time.Minute)
				if tt.messages {
					w.send("a signal")
					w.deliver()
				}
				if time.Now().Minute()%5 == 0 {
					testenv.OK(t, w.timer.Look(t.Context()))
					w.deliver()
				}
			}
			testenv.Equal(t, fmt.Sprintf("%s: requests: %v", name, w.plan.Calls()[before:]), tt.want, len(w.plan.Calls())-before)
		})
	}
}

// Without a listener, one probe is added in an hour, not one in each check.
func TestProbesDoNotPileUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.looks(24*time.Hour, false)
		if n, err := w.queues.Length(t.Context(), queue); err != nil || n != 25 {
			t.Errorf("%d messages, %v", n, err)
		}
	})
}

// A storage failure delays no message, and an unsent probe is sent with the next check.
func TestTroubleWithStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		refused := true
		w.plan.Refuse = func(c faults.Call) bool { return refused && c.Operation != "Query" }
		if err := w.timer.Look(t.Context()); !errors.Is(err, tables.ErrThrottled) {
			t.Errorf("look: %v", err)
		}
		if err := w.handle(t.Context(), engine.Delivery{ID: "1", Body: []byte("a signal"), DequeueCount: 1}); err != nil || w.handled != 1 {
			t.Errorf("%d handled, %v", w.handled, err)
		}
		refused = false
		w.plan.Refuse = func(c faults.Call) bool { return c.Operation == "Send" && !refused }
		if err := w.timer.Look(t.Context()); !errors.Is(err, queues.ErrThrottled) {
			t.Errorf("send: %v", err)
		}
		w.plan.Refuse = nil
		time.Sleep(rest - time.Second) // a probe is recorded even by a process that has just tried
		testenv.OK(t, w.timer.Look(t.Context()))
		w.deliver()
		if s := w.state(); w.delivered != 1 || s.Missing != 1 || s.Deaf() || s.outstanding() {
			t.Errorf("%d delivered, %+v", w.delivered, s)
		}
	})
}

func TestSilence(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	long, short := now.Add(-silentAfter), now.Add(-silentAfter+time.Second)
	for name, tt := range map[string]struct {
		started time.Time
		s       State
		want    bool
	}{
		"nobody looks":         {long, State{LookedAt: long, HeardAt: long}, true},
		"nobody ever looked":   {long, State{}, true},
		"the process is new":   {short, State{LookedAt: long, HeardAt: long}, false},
		"somebody looks":       {long, State{LookedAt: short}, false},
		"messages come anyway": {long, State{LookedAt: long, HeardAt: short}, false},
	} {
		testenv.Equal(t, name, tt.want, tt.s.Silent(now, tt.started))
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration was taken")
	}
}

// A message that no host receives is stuck for as long as it is checked; one that is received, or redelivered, is
// not.
func TestHeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := queues.NewMemory()
		testenv.OK(t, store.CreateQueue(t.Context(), "work"))
		h := &Heads{Queues: store, Names: []string{"missing", "work"}}
		look := func(messages int, age, stuck time.Duration) {
			t.Helper()
			heads, err := h.Look(t.Context())
			want := Head{Queue: "work", Messages: messages, Age: age, Stuck: stuck}
			if err != nil || len(heads) != 2 || heads[0] != (Head{Queue: "missing"}) || heads[1] != want {
				t.Errorf("%+v, %v; want %+v", heads, err, want)
			}
		}
		look(0, 0, 0)
		for _, delay := range []time.Duration{0, 0, time.Hour} {
			testenv.Must(store.Send(t.Context(), "work", []byte("x"), delay))(t)
		}
		look(3, 0, 0)
		time.Sleep(10 * time.Minute)
		look(3, 10*time.Minute, 10*time.Minute)
		time.Sleep(time.Minute)
		look(3, 11*time.Minute, 11*time.Minute)
		received, err := store.Receive(t.Context(), "work", 1, time.Minute)
		testenv.OK(t, err)
		look(3, 11*time.Minute, 0) // the next one
		testenv.OK(t, store.Delete(t.Context(), "work", received[0].ID, received[0].PopReceipt))
		time.Sleep(time.Minute)
		look(2, 12*time.Minute, time.Minute)
		_, err = store.Receive(t.Context(), "work", 1, time.Minute)
		testenv.OK(t, err)
		look(2, 0, 0)
		time.Sleep(2 * time.Minute) // redelivered: a host has received it meanwhile
		look(2, 14*time.Minute, 0)
		time.Sleep(time.Minute)
		look(2, 15*time.Minute, time.Minute)
		if _, err = store.Receive(t.Context(), "work", 1, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		look(2, 16*time.Minute, 0) // it was received between two checks, and is redelivered
	})
}
