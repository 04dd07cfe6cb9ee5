package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A tenant with few messages does not wait for one with many: neither in a sweep nor when it arrives later.
func TestFairness(t *testing.T) {
	t.Parallel()
	const large, small, soon = 1_500, 10, 500
	fill := func(t *testing.T, p *process, tenant string, n int) {
		t.Helper()
		var list []Message
		for i := range n {
			list = append(list, message1(i))
			list[i].TenantID = tenant
		}
		testenv.Must(p.writer.AddMany(t.Context(), tenant, list))(t)
	}
	// last returns the position of the small tenant's last delivery.
	last := func(t *testing.T, w *world) (place int) {
		t.Helper()
		found := 0
		for i, e := range w.events() {
			if e.TenantID == "small" {
				place = i + 1
				found++
			}
		}
		if found != small {
			t.Errorf("%d of the small tenant's were delivered", found)
		}
		return place
	}
	t.Run("in a sweep", func(t *testing.T) {
		w, p := start(t)
		fill(t, p, "large", large)
		fill(t, p, "small", small)
		if r := p.sweep(t); r.Delivered != large+small {
			t.Errorf("%+v", r)
		}
		if place := last(t, w); place > soon {
			t.Errorf("the small tenant's last was delivery %d", place)
		}
	})
	t.Run("by a wake-up in between", func(t *testing.T) {
		w, p := start(t)
		fill(t, p, "large", large)
		fill(t, p, "small", small)
		var once sync.Once
		var wg sync.WaitGroup
		started := make(chan struct{})
		w.deliver = func(context.Context, Event) error { once.Do(func() { close(started) }); return nil }
		wg.Go(func() {
			if _, err := p.dispatcher.Dispatch(t.Context(), "large"); err != nil {
				t.Error(err)
			}
		})
		<-started
		before := len(w.events())
		if _, err := p.dispatcher.Dispatch(t.Context(), "small"); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if place := last(t, w); place-before > soon {
			t.Errorf("the small tenant's last was delivery %d, %d after its wake-up", place, place-before)
		}
	})
	t.Run("while many tenants wait in line", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.options.BatchSize = 10
		p := w.process(t, nil)
		for i := range 20 {
			fill(t, p, fmt.Sprint("large-", i), large/20)
		}
		fill(t, p, "small", small)
		p.sweep(t)
		if place := last(t, w); place > soon {
			t.Errorf("the small tenant's last was delivery %d", place)
		}
	})
}

// The cost of a message from its Add until it is processed, queue operations included: 4 at most in batches of 50.
func TestTransactionsPerMessage(t *testing.T) {
	t.Parallel()
	const messages = 500
	w := newWorld(t)
	plan := &faults.Plan{}
	p := w.process(t, plan)
	for i := range messages {
		p.add(t, message1(i))
	}
	w.pass(2 * time.Second)
	wakes := 0
	for {
		received := testenv.Must(w.queues.Receive(t.Context(), w.queue, 32, time.Minute))(t)
		if len(received) == 0 {
			break
		}
		for _, m := range received {
			wakes++
			wake := testenv.Must(DecodeWake(m.Text))(t)
			testenv.Must(p.dispatcher.Dispatch(t.Context(), wake.Tenant))(t)
			testenv.OK(t, w.queues.Delete(t.Context(), w.queue, m.ID, m.PopReceipt))
		}
	}
	if got := w.check(t, "acme")[StatusProcessed]; got != messages {
		t.Fatalf("%d are processed", got)
	}
	calls := 2 * wakes // the host receives and deletes
	for _, c := range plan.Calls() {
		if c.Service != "transport" {
			calls++
		}
	}
	perMessage := float64(calls) / messages
	t.Logf("%.3f transactions a message", perMessage)
	if perMessage > 1.5 {
		t.Errorf("%.3f transactions a message", perMessage)
	}
}

func TestAddManyTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plan := &faults.Plan{}
	p := w.process(t, plan)
	var list []Message
	for i := range 500 {
		list = append(list, message1(i))
	}
	testenv.Must(p.writer.AddMany(t.Context(), "acme", list))(t)
	if n := len(plan.Calls()); n > 18 {
		t.Errorf("%d transactions", n)
	}
}

// One message of a tenant that is not open: open, add, wake-up, scan, claim, settle.
func TestTransactionsOfOneMessage(t *testing.T) {
	w, p := start(t)
	p.add(t, message1(0))
	p.sweep(t)
	w.pass(time.Minute)
	plan := &faults.Plan{}
	q := w.process(t, plan)
	q.add(t, message1(1))
	testenv.Must(q.dispatcher.Dispatch(t.Context(), "acme"))(t)
	// The first is the look-up of the tenant, once per process.
	var got []string
	for _, c := range plan.Calls() {
		got = append(got, c.Service+"."+c.Operation)
	}
	want := "[tables.Get tables.Apply tables.Apply tables.Apply queues.Send tables.Query tables.Apply transport.Deliver tables.Apply]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// A failure of storage is reported and loses nothing.
func TestStorageFails(t *testing.T) {
	w, p := start(t)
	p.add(t, message1(1))
	refuse := &faults.Plan{Refuse: func(c faults.Call) bool { return c.Operation == "Query" }}
	if _, err := w.process(t, refuse).dispatcher.Sweep(t.Context()); err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.dispatcher.Sweep(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r := p.sweep(t); r.Delivered != 1 {
		t.Errorf("%+v", r)
	}
}
