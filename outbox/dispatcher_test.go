package outbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func TestDispatcher(t *testing.T) {
	t.Parallel()
	integration(t, "Dispatcher_Marks_Processed", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		p.add(t, message1(1))
		w.pass(time.Second)
		r := testenv.Must(p.dispatcher.Dispatch(t.Context(), "acme"))(t)
		testenv.Equal(t, "", Result{Claimed: 1, Delivered: 1}, r)
		got := p.get(t, "acme", key(1).String())
		if got.Status != StatusProcessed || !got.IsProcessed || !got.ProcessedAt.Equal(noon().Add(time.Second)) || got.Destination != "sink" {
			t.Errorf("%+v", got)
		}
		if len(got.Attempts) != 1 || got.Attempts[0].Error != "" || got.Attempts[0].Node != "node-1" {
			t.Errorf("%+v", got.Attempts)
		}
		testenv.Equal(t, "", map[string]int{"m": 1, "x": 1}, w.rows(t, "acme"))
	})
	integration(t, "Dispatcher_Retry_OnFailure", func(t *testing.T, w *world) {
		w.deliver = func(context.Context, Event) error { return errors.New("no line") }
		p := w.process(t, nil)
		p.add(t, message1(1))
		p.sweep(t)
		got := p.get(t, "acme", key(1).String())
		// Half of 10 s * 2^1.
		if got.RetryCount != 1 || got.Error != "no line" || !got.ProcessedAt.IsZero() || !got.NextAttemptAt.Equal(noon().Add(10*time.Second)) {
			t.Errorf("%+v", got)
		}
		w.check(t, "acme")
		if r := p.sweep(t); r != (Result{}) {
			t.Errorf("before it is due: %+v", r)
		}
		w.pass(10 * time.Second)
		if r := p.sweep(t); r.Failed != 1 {
			t.Errorf("when it is due: %+v", r)
		}
		if got := p.get(t, "acme", key(1).String()); got.RetryCount != 2 || len(got.Attempts) != 2 {
			t.Errorf("%+v", got)
		}
	})
	integration(t, "Dispatcher_Clears_Error_OnSuccess", func(t *testing.T, w *world) {
		w.deliver = func(_ context.Context, e Event) error {
			if e.Attempt == 1 {
				return errors.New("no line")
			}
			return nil
		}
		p := w.process(t, nil)
		p.add(t, message1(1))
		p.sweep(t)
		w.pass(time.Minute)
		p.sweep(t)
		got := p.get(t, "acme", key(1).String())
		if got.Error != "" || got.RetryCount != 1 || got.Status != StatusProcessed || len(got.Attempts) != 2 || got.Attempts[0].Error != "no line" {
			t.Errorf("%+v", got)
		}
		testenv.Equal(t, "", map[string]int{"m": 1, "x": 1}, w.rows(t, "acme"))
	})
	integration(t, "Dispatcher_Skips_AlreadyProcessed", func(t *testing.T, w *world) {
		p := w.process(t, nil)
		p.add(t, message1(1))
		p.sweep(t)
		if r := p.sweep(t); r != (Result{}) || len(w.events()) != 1 {
			t.Errorf("%+v, %d deliveries", r, len(w.events()))
		}
		// A program from before idempotency keys delivers a message that is in line.
		w.legacy(t, "acme", "old-1", map[string]any{})
		testenv.Must(p.admin.Backfill(t.Context(), "acme", "", 0))(t)
		e := testenv.Must(w.tables.Get(t.Context(), w.table, tables.Key{Partition: "acme", Row: "m-old-1"}))(t)
		e.Properties["ProcessedAt"], e.Properties["IsProcessed"] = noon(), true
		testenv.OK(t, w.tables.Apply(t.Context(), w.table, tables.Replace(e)))
		if r := p.sweep(t); r != (Result{Claimed: 1, Skipped: 1}) || len(w.events()) != 1 {
			t.Errorf("%+v, %d deliveries", r, len(w.events()))
		}
		if !strings.Contains(w.log(), `OUTBOX_WORKER_SKIP_PROCESSED id=old-1`) {
			t.Error(w.log())
		}
		testenv.Equal(t, "", map[string]int{"m": 2, "x": 2}, w.rows(t, "acme"))
	})
	t.Run("Logs_On_Success_And_Failure", logsOnSuccessAndFailure)
	integration(t, "Error_Truncated_When_TooLong", func(t *testing.T, w *world) {
		w.deliver = func(context.Context, Event) error { return errors.New(strings.Repeat("é\x00\xff", 5000)) }
		p := w.process(t, nil)
		p.add(t, message1(1))
		p.sweep(t)
		got := p.get(t, "acme", key(1).String())
		if n := len([]rune(got.Error)); n != 2000 || !strings.HasPrefix(got.Error, "é") {
			t.Errorf("%d characters: %.20q", n, got.Error)
		}
		if n := len([]rune(got.Attempts[0].Error)); n != maxAttemptError {
			t.Errorf("%d characters in the attempt", n)
		}
	})
}

func logsOnSuccessAndFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver = func(_ context.Context, e Event) error {
		if e.Key == key(1) {
			return errors.New("no line")
		}
		return nil
	}
	p := w.process(t, nil)
	p.add(t, message1(1))
	p.add(t, message1(2))
	p.sweep(t)
	for _, want := range []string{
		`msg="OUTBOX_WORKER_FETCH count=2"`,
		fmt.Sprintf(`msg="OUTBOX_WORKER_DISPATCH_SUCCESS id=%s key=%s"`, key(2), key(2)),
		fmt.Sprintf(`msg="OUTBOX_WORKER_DISPATCH_FAIL id=%s key=%s retry=1 max=5"`, key(1), key(1)),
	} {
		if !strings.Contains(w.log(), want) {
			t.Errorf("no %s in\n%s", want, w.log())
		}
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	integration(t, "Retry_Stops_After_MaxRetries", func(t *testing.T, w *world) {
		attempts := 0
		w.deliver = func(context.Context, Event) error { attempts++; return errors.New("no line") }
		p := w.process(t, nil)
		p.add(t, message1(1))
		for range 20 {
			p.sweep(t)
			w.pass(time.Hour)
		}
		got := p.get(t, "acme", key(1).String())
		if attempts != 5 || got.RetryCount != 5 || got.Status != StatusDead || got.DeadAt.IsZero() || !got.ProcessedAt.IsZero() || got.IsProcessed {
			t.Errorf("%d attempts, %+v", attempts, got)
		}
		deaths := w.deaths()
		if len(deaths) != 1 {
			t.Fatalf("%d dead letters", len(deaths))
		}
		d := deaths[0]
		if d.Key != key(1) || d.Reason != ReasonExhausted || d.Error != "no line" || d.RetryCount != 5 || string(d.Payload) != `{"n":1}` ||
			!d.FirstFailureAt.Equal(noon()) || !d.LastFailureAt.Equal(noon().Add(4*time.Hour)) {
			t.Errorf("%+v", d)
		}
		testenv.Equal(t, "", map[string]int{"m": 1, "d": 1}, w.rows(t, "acme"))
	})
	t.Run("a permanent error is the end at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.deliver = func(context.Context, Event) error {
			return fmt.Errorf("send: %w", &DeliveryError{Permanent: true, Status: 404, Err: errors.New("not here")})
		}
		p := w.process(t, nil)
		p.add(t, message1(1))
		p.sweep(t)
		got := p.get(t, "acme", key(1).String())
		if got.Status != StatusDead || got.RetryCount != 1 || got.Attempts[0].Status != 404 || w.deaths()[0].Reason != ReasonPermanent {
			t.Errorf("%+v", got)
		}
	})
	t.Run("Retry-After is kept, within bounds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		asked := 10 * time.Minute
		w.deliver = func(context.Context, Event) error {
			return &DeliveryError{RetryAfter: asked, Status: 429, Err: errors.New("slow")}
		}
		p := w.process(t, nil)
		p.add(t, message1(1))
		p.sweep(t)
		if got := p.get(t, "acme", key(1).String()); !got.NextAttemptAt.Equal(noon().Add(asked)) {
			t.Errorf("next attempt at %v", got.NextAttemptAt)
		}
		w.pass(asked)
		asked = 1000 * time.Hour
		p.sweep(t)
		if got := p.get(t, "acme", key(1).String()); !got.NextAttemptAt.Equal(noon().Add(10*time.Minute + time.Hour)) {
			t.Errorf("next attempt at %v", got.NextAttemptAt)
		}
	})
	t.Run("letters are told until they take it, and nothing is delivered meanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		asked, attempts := 0, 0
		w.deliver = func(context.Context, Event) error {
			attempts++
			return &DeliveryError{Permanent: true, Err: errors.New("no")}
		}
		w.tellFails = func() error {
			if asked++; asked < 3 {
				return errors.New("no table")
			}
			return nil
		}
		p := w.process(t, nil)
		p.add(t, message1(1))
		for range 5 {
			p.sweep(t)
			w.check(t, "acme")
			w.pass(time.Hour)
		}
		if got := p.get(t, "acme", key(1).String()); got.Status != StatusDead || asked != 3 || attempts != 1 || len(w.deaths()) != 1 || got.DeadLetter == "" {
			t.Errorf("asked %d times, %d attempts, %+v", asked, attempts, got)
		}
	})
	t.Run("a transport that panics", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.deliver = func(context.Context, Event) error { panic("boo") }
		p := w.process(t, nil)
		p.add(t, message1(1))
		if r := p.sweep(t); r.Failed != 1 {
			t.Errorf("%+v", r)
		}
		if got := p.get(t, "acme", key(1).String()); !strings.HasPrefix(got.Error, "the transport panicked: boo") {
			t.Errorf("%+v", got)
		}
	})
}

// A failing destination is left alone for a while: its messages keep their retries, and other messages leave.
func TestCircuit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.CircuitFailures, w.options.MaxPerDestination = 3, 1
	broken := true
	tried := 0
	var opened []bool
	bad := transport(func(ctx context.Context, e Event) error {
		if tried++; broken {
			return errors.New("down")
		}
		return w.Deliver(ctx, e)
	})
	p := w.routed(t, nil, []Route{{EventType: "bad.*", Destination: "bad"}, {EventType: "*", Destination: "good"}}, Destinations{"bad": bad, "good": w})
	p.o.observe.Circuit = func(_ string, open bool) { opened = append(opened, open) }
	for i := range 20 {
		m := message1(i)
		if i%2 == 0 {
			m.EventType = "bad.one"
		}
		p.add(t, m)
	}
	p.sweep(t)
	if tried != 3 || len(w.events()) != 10 {
		t.Errorf("%d tries, %d others delivered", tried, len(w.events()))
	}
	retries := 0
	for i := range 20 {
		retries += p.get(t, "acme", key(i).String()).RetryCount
	}
	if retries != 3 {
		t.Errorf("%d retries are burnt", retries)
	}
	// One message tries after the cooldown, and the pause doubles.
	w.pass(32 * time.Second)
	p.sweep(t)
	if tried != 4 {
		t.Errorf("%d tries after the cooldown", tried)
	}
	w.pass(32 * time.Second)
	p.sweep(t)
	if tried != 4 {
		t.Errorf("%d tries in the longer cooldown", tried)
	}
	broken = false
	for range 20 {
		w.pass(time.Minute)
		p.sweep(t)
	}
	if got := w.check(t, "acme")[StatusProcessed]; got != 20 || len(w.events()) != 20 {
		t.Errorf("%d are processed, %d delivered", got, len(w.events()))
	}
	testenv.Equal(t, "", []bool{true, false}, opened)
}

// The next attempt of a message that an open circuit delays is not before the test of the circuit. This holds in
// every list and by id, for messages with and without attempts, and however often the circuit opens again.
func TestNextAttemptBehindACircuit(t *testing.T) {
	t.Parallel()
	integration(t, "", func(t *testing.T, w *world) {
		w.options.CircuitFailures, w.options.MaxPerDestination, w.options.MaxRetries = 3, 1, 100
		w.deliver = func(context.Context, Event) error { return errors.New("down") }
		p := w.process(t, nil)
		for i := range 40 {
			p.add(t, message1(i))
		}
		for round := range 6 {
			p.sweep(t)
			for i := range 40 {
				if r := p.get(t, "acme", key(i).String()); !r.NextAttemptAt.After(w.now()) {
					t.Errorf("round %d: message %d (%d failures) is next tried at %v; it is %v", round, i, r.RetryCount, r.NextAttemptAt, w.now())
				}
			}
			for _, status := range []Status{StatusPending, StatusFailed} {
				for _, r := range p.all(t, Filter{Status: status}) {
					if !r.NextAttemptAt.After(w.now()) {
						t.Errorf("round %d: %s list: %d failures, next tried at %v; it is %v", round, status, r.RetryCount, r.NextAttemptAt, w.now())
					}
				}
			}
			w.pass(35 * time.Second)
		}
		if w.check(t, "acme")[StatusPending] != 40 {
			t.Error("messages are lost")
		}
	})
}

// What no route takes is tried again, so that the route can still be made, and dies with an error that says so.
func TestUnroutable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.routed(t, nil, []Route{{EventType: "known", Destination: "sink"}}, Destinations{"sink": w})
	p.add(t, message1(1))
	m := message1(2)
	m.EventType = "known"
	p.add(t, m)
	if r := p.sweep(t); r.Failed != 1 || r.Delivered != 1 {
		t.Errorf("%+v", r)
	}
	if got := p.get(t, "acme", key(1).String()); !strings.Contains(got.Error, `event type "order.created" of tenant "acme": add a route`) {
		t.Errorf("%+v", got)
	}
	w.pass(time.Hour)
	if r := w.process(t, nil).sweep(t); r.Delivered != 1 {
		t.Errorf("after the route was made: %+v", r)
	}
}

// A hanging destination slows no other one down, not even for the same tenant with thousands of its messages in front.
func TestHangingDestination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.clock = time.Time{}
		start := time.Now()
		var last time.Duration
		var mu sync.Mutex
		hang := transport(func(ctx context.Context, _ Event) error {
			<-ctx.Done()
			return ctx.Err()
		})
		good := transport(func(context.Context, Event) error {
			mu.Lock()
			defer mu.Unlock()
			last = time.Since(start)
			return nil
		})
		p := w.routed(t, nil, []Route{{EventType: "hang", Destination: "hang"}, {EventType: "*", Destination: "good"}}, Destinations{"hang": hang, "good": good})
		var list []Message
		for i := range 2200 {
			m := message1(i)
			if i < 2000 {
				m.EventType = "hang"
			}
			list = append(list, m)
		}
		w.clock = start.Add(-time.Minute) // the hanging messages are older, and so in front
		_, errOld := p.writer.AddMany(t.Context(), "acme", list[:2000])
		w.clock = time.Time{}
		_, errNew := p.writer.AddMany(t.Context(), "acme", list[2000:])
		testenv.OK(t, errors.Join(errOld, errNew))
		r := p.sweep(t)
		if r.Delivered != 200 || last > 2*time.Second {
			t.Errorf("the last was delivered after %v: %+v", last, r)
		}
		if r.Failed > 100 || r.PutOff < 1900 {
			t.Errorf("the circuit did not open: %+v", r)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("the sweep took %v", took)
		}
		w.check(t, "acme")
	})
}

// Messages of one order key leave in sequence; a failing head blocks its own key only.
func TestOrder(t *testing.T) {
	t.Parallel()
	integration(t, "per key", func(t *testing.T, w *world) {
		failing := true
		w.deliver = func(_ context.Context, e Event) error {
			if e.Key == key(0) && failing {
				return errors.New("not yet")
			}
			return nil
		}
		p := w.process(t, nil)
		for i := range 12 {
			m := message1(i)
			m.OrderKey = fmt.Sprint("k/", i%2) // 0, 2, 4... behind 0
			p.add(t, m)
		}
		m := message1(99)
		p.add(t, m)
		p.sweep(t)
		w.check(t, "acme")
		testenv.Equal(t, "", []int{1, 3, 5, 7, 9, 11}, numbersOf(w, "k/1"))
		if got := numbersOf(w, ""); len(got) != 1 {
			t.Errorf("without a key: %v", got)
		}
		if got := numbersOf(w, "k/0"); got != nil {
			t.Errorf("behind a blocked head: %v", got)
		}
		// Later messages do not overtake a blocked head.
		late := message1(12)
		late.OrderKey = "k/0"
		p.add(t, late)
		failing = false
		w.pass(time.Minute)
		p.sweep(t)
		testenv.Equal(t, "", []int{0, 2, 4, 6, 8, 10, 12}, numbersOf(w, "k/0"))
		testenv.Equal(t, "", map[string]int{"m": 14, "x": 14}, w.rows(t, "acme"))
	})
	t.Run("a dead head lets the others go", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.deliver = func(_ context.Context, e Event) error {
			if e.Key == key(0) {
				return &DeliveryError{Permanent: true, Err: errors.New("never")}
			}
			return nil
		}
		p := w.process(t, nil)
		for i := range 4 {
			m := message1(i)
			m.OrderKey = "k"
			p.add(t, m)
		}
		if r := p.sweep(t); r.Dead != 1 || r.Delivered != 3 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("writers and dispatchers at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.clock = time.Time{}
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				p := w.process(t, nil)
				for i := range 25 {
					m := message1(100*n + i)
					m.OrderKey = "k"
					if _, err := p.writer.Add(t.Context(), m); err != nil {
						t.Error(err)
					}
					if _, err := p.dispatcher.Dispatch(t.Context(), "acme"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		w.process(t, nil).sweep(t)
		next := map[int]int{}
		got := numbersOf(w, "k")
		for _, n := range got {
			if n%100 != next[n/100] {
				t.Errorf("writer %d: %d before %d", n/100, n%100, next[n/100])
			}
			next[n/100]++
		}
		if len(got) != 100 {
			t.Errorf("%d deliveries", len(got))
		}
		w.check(t, "acme")
	})
}

// numbersOf returns the deliveries of an order key, by the numbers of message1.
func numbersOf(w *world, orderKey string) (numbers []int) {
	digits := regexp.MustCompile(`\d+`)
	for _, e := range w.events() {
		if e.OrderKey == orderKey {
			n := 0
			fmt.Sscan(digits.FindString(string(e.Payload)), &n)
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func TestManyDispatchers(t *testing.T) {
	t.Parallel()
	integration(t, "Parallel_Dispatch_SingleProcessPerMessage", func(t *testing.T, w *world) {
		const messages = 400
		first := w.process(t, nil)
		var list []Message
		for i := range messages {
			list = append(list, message1(i))
		}
		testenv.Must(first.writer.AddMany(t.Context(), "acme", list))(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := w.process(t, nil).dispatcher.Sweep(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		first.sweep(t)
		times := map[uuid.UUID]int{}
		for _, e := range w.events() {
			times[e.Key]++
		}
		for k, n := range times {
			if n != 1 {
				t.Errorf("%s was delivered %d times", k, n)
			}
		}
		if got := w.check(t, "acme")[StatusProcessed]; got != messages || len(times) != messages {
			t.Errorf("%d are processed, %d delivered", got, len(times))
		}
	})
}

// A dying process leaves at most as many unsettled deliveries to a destination as it has slots.
func TestDeliveriesInDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.MaxPerDestination = 4
	var doubtful, most atomic.Int32
	w.deliver = func(context.Context, Event) error {
		most.Store(max(most.Load(), doubtful.Add(1)))
		return nil
	}
	p := w.process(t, nil)
	p.o.observe.Settled = func(Status, time.Duration) { doubtful.Add(-1) }
	for i := range 200 {
		m := message1(i)
		m.TenantID = fmt.Sprint("tenant-", i%3)
		p.add(t, m)
	}
	if r := p.sweep(t); r.Delivered != 200 || most.Load() > 4 || doubtful.Load() != 0 {
		t.Errorf("%+v, at most %d in doubt, %d at the end", r, most.Load(), doubtful.Load())
	}
}

// The end of ctx ends the work soon: running deliveries are settled, the rest is returned immediately.
func TestDispatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.MaxPerDestination = 2
	ctx, cancel := context.WithCancel(t.Context())
	w.deliver = func(ctx context.Context, _ Event) error {
		cancel()
		return ctx.Err()
	}
	p := w.process(t, nil)
	for i := range 100 {
		p.add(t, message1(i))
	}
	r, err := p.dispatcher.Dispatch(ctx, "acme")
	if err != nil || r.Claimed != 50 || r.Delivered < 1 || r.Delivered > 2 || r.PutOff != 50-r.Delivered {
		t.Errorf("%+v, %v", r, err)
	}
	w.deliver = nil
	if r := w.process(t, nil).sweep(t); r.Delivered != 100-len(w.events())+r.Delivered {
		t.Errorf("%+v", r)
	}
	if got := w.check(t, "acme")[StatusProcessed]; got != 100 {
		t.Errorf("%d are processed", got)
	}
}

// Another dispatcher takes over a claim that is not settled in time; the first settlement is refused.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.process(t, nil), w.process(t, nil)
	first.add(t, message1(1))
	calls := 0
	w.deliver = func(context.Context, Event) error {
		if calls++; calls == 1 {
			if r := second.sweep(t); r != (Result{}) {
				t.Errorf("while it is claimed: %+v", r)
			}
			if err := second.admin.Skip(t.Context(), "acme", key(1).String(), "me"); !errors.Is(err, ErrClaimed) {
				t.Errorf("skip while it is claimed: %v", err)
			}
			w.pass(w.options.ClaimDuration + claimGrace)
			if r := second.sweep(t); r.Delivered != 1 {
				t.Errorf("after the claim: %+v", r)
			}
		}
		return nil
	}
	if r := first.sweep(t); r != (Result{Claimed: 1, Lost: 1}) {
		t.Errorf("%+v", r)
	}
	sent := w.events()
	if len(sent) != 2 || sent[0].Key != sent[1].Key {
		t.Errorf("%+v", sent)
	}
	if got := first.get(t, "acme", key(1).String()); len(got.Attempts) != 1 || got.RetryCount != 0 {
		t.Errorf("%+v", got)
	}
	w.check(t, "acme")
}

// A damaged row is left as it is, and does not block the others.
func TestDamagedRow(t *testing.T) {
	w, p := start(t)
	p.add(t, message1(1))
	for e, err := range tables.All(t.Context(), w.tables, w.table, tables.Query{Partition: "acme"}) {
		if err != nil {
			t.Fatal(err)
		}
		e.Properties["IdempotencyKey"] = "none"
		testenv.OK(t, w.tables.Apply(t.Context(), w.table, tables.Replace(e)))
	}
	p.add(t, message1(2))
	plan := &faults.Plan{}
	if r, err := w.process(t, plan).dispatcher.Sweep(t.Context()); err != nil || r != (Result{Claimed: 1, Delivered: 1}) || len(plan.Calls()) > 9 {
		t.Errorf("%+v, %v, %d calls", r, err, len(plan.Calls()))
	}
	if _, err := p.admin.Get(t.Context(), "acme", key(1).String()); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	if !strings.Contains(w.log(), "row is damaged") {
		t.Error(w.log())
	}
}

// A row of a newer program is left as it is, and does not block the others.
func TestNewerSchema(t *testing.T) {
	w, p := start(t)
	for i := range 60 {
		p.add(t, message1(i))
	}
	newer := 0
	for e, err := range tables.All(t.Context(), w.tables, w.table, tables.Query{Partition: "acme"}) {
		if err != nil {
			t.Fatal(err)
		}
		if id := e.String("Id"); id < "8" {
			e.Properties["SchemaVersion"] = int32(schemaVersion + 1)
			newer++
			testenv.OK(t, w.tables.Apply(t.Context(), w.table, tables.Replace(e)))
		}
	}
	newer /= 2
	if r := p.sweep(t); r.Delivered != 60-newer || newer < 10 {
		t.Errorf("%+v with %d newer ones", r, newer)
	}
	for i := range 60 {
		id := key(i).String()
		_, err := p.admin.Get(t.Context(), "acme", id)
		var told *VersionError
		if id < "8" && (!errors.As(err, &told) || !errors.Is(err, ErrSchemaVersion) || told.Version != schemaVersion+1) || id >= "8" && err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}
