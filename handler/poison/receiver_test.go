package poison_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/poison"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errRefused = errors.New("no")

// world is storage with poison queues, and the handled messages.
type world struct {
	t     *testing.T
	store *queues.Memory
	names []string

	mu sync.Mutex
	// letters are the results of messages: handling one again changes nothing.
	letters map[string]string
	// fails reports whether a message cannot be handled.
	fails func(body string) bool
}

func newWorld(t *testing.T, names ...string) *world {
	w := &world{t: t, store: queues.NewMemory(), names: names, letters: map[string]string{}}
	for _, name := range names {
		testenv.OK(t, w.store.CreateQueue(t.Context(), name))
	}
	return w
}

// send sends texts to a queue as the host does, and returns their results.
func (w *world) send(queue string, texts ...string) map[string]string {
	w.t.Helper()
	sent := map[string]string{}
	for _, text := range texts {
		id, err := w.store.SendText(w.t.Context(), queue, text, 0)
		testenv.OK(w.t, err)
		sent[queue+"/"+id] = string(queues.Decode(text))
	}
	return sent
}

// process returns a receiver over a store of its own.
func (w *world) process(store queues.Store, limit int) *poison.Receiver {
	c := poison.Config{Queues: store, Limit: limit}
	for _, name := range w.names {
		c.From = append(c.From, poison.Queue{Name: name, Handle: w.handle})
	}
	return poison.New(c)
}

func (w *world) handle(_ context.Context, d engine.Delivery) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails != nil && w.fails(string(d.Body)) {
		return errRefused
	}
	w.letters[d.Queue+"/"+d.ID] = string(d.Body)
	return nil
}

func (w *world) left() (n int) {
	w.t.Helper()
	for _, name := range w.names {
		length, err := w.store.Length(w.t.Context(), name)
		if err != nil && !errors.Is(err, queues.ErrNotFound) {
			w.t.Fatal(err)
		}
		n += length
	}
	return n
}

// kept checks the results, and how many messages stay.
func (w *world) kept(want map[string]string, left int) {
	w.t.Helper()
	testenv.Equal(w.t, "kept", want, w.letters)
	if n := w.left(); n != left {
		w.t.Errorf("%d messages stay, want %d", n, left)
	}
}

// Each message in any queue is handled once, with its bytes, and none stays, with one process or two in parallel.
func TestRandomMessages(t *testing.T) {
	t.Parallel()
	sample.Repeat(t)
	for _, seed := range sample.Seeds(t, 40) {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		w := newWorld(t, "a-poison", "b-poison", "c-poison")
		want := map[string]string{}
		for range random.IntN(200) {
			text := []string{`{"engine":"x"}`, "eyJhIjoxfQ==", "not JSON", " ", strings.Repeat("y", 64<<10), fmt.Sprint("n", random.IntN(5))}[random.IntN(6)]
			maps.Copy(want, w.send(w.names[random.IntN(3)], text))
		}
		var group sync.WaitGroup
		for range 1 + random.IntN(2) {
			group.Go(func() {
				if _, err := w.process(w.store, 0).Receive(t.Context()); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			})
		}
		group.Wait()
		w.kept(want, 0)
	}
}

// A process that fails at any storage call loses nothing: another one handles the rest, at most ten minutes later.
func TestFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	faultstest.EachCall(t, faults.Faults(), 5, func(t *testing.T, plan *faults.Plan) {
		w := newWorld(t, "a-poison", "b-poison")
		want := w.send("a-poison", "one", "two")
		maps.Copy(want, w.send("b-poison", "one"))
		_, _ = w.process(faults.Queues(w.store, plan.Intercept), 0).Receive(t.Context())
		plan.Wait()
		time.Sleep(poison.Hidden)
		testenv.Must(w.process(w.store, 0).Receive(t.Context()))(t)
		w.kept(want, 0)
	})
}

// A failing queue does not block the others, a missing one is empty and is not created, and the error names
// unreadable queues.
func TestQueuesThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a-poison", "b-poison", "c-poison")
	w.names = append(w.names, "absent-poison")
	want := w.send("a-poison", "one")
	w.send("b-poison", "two")
	maps.Copy(want, w.send("c-poison", "three"))
	plan := faults.Plan{Refuse: func(c faults.Call) bool { return c.Target == "b-poison" }}
	taken, err := w.process(faults.Queues(w.store, plan.Intercept), 0).Receive(t.Context())
	if taken != 2 || err == nil || !strings.Contains(err.Error(), "b-poison") || strings.Contains(err.Error(), "absent") {
		t.Errorf("%d taken, %v", taken, err)
	}
	w.kept(want, 1)
	if _, err := w.store.Length(t.Context(), "absent-poison"); !errors.Is(err, queues.ErrNotFound) {
		t.Errorf("the queue that was not there: %v", err)
	}
	for _, c := range plan.Calls() {
		if c.Operation != "Receive" && c.Operation != "Delete" {
			t.Errorf("call %+v", c)
		}
	}
}

// A failing message stays without a limit, is reported, and does not block the others; when it can be handled, it is.
func TestMessagesThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a-poison")
		w.fails = func(body string) bool { return strings.HasPrefix(body, "bad") }
		bad := w.send("a-poison", slices.Repeat([]string{"bad"}, 2*queues.MaxReceive)...)
		good := w.send("a-poison", "good")
		r := w.process(w.store, queues.MaxReceive)
		for range 20 { // more often than any limit of deliveries
			_, _ = r.Receive(t.Context())
			time.Sleep(5 * time.Minute)
		}
		w.kept(good, len(bad))
		time.Sleep(poison.Hidden)
		_, err := r.Receive(t.Context())
		if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), fmt.Sprint(queues.MaxReceive, " messages stay")) {
			t.Errorf("it is told as %v", err)
		}
		w.fails = nil
		time.Sleep(poison.Hidden)
		for range 2 {
			if _, err := r.Receive(t.Context()); err != nil {
				t.Error(err)
			}
		}
		maps.Copy(good, bad)
		w.kept(good, 0)
	})
}

// A run receives at most its limit of a queue, and nothing after its timeout.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a-poison", "b-poison")
	w.send("a-poison", slices.Repeat([]string{"x"}, 3*queues.MaxReceive)...)
	w.send("b-poison", "y")
	if taken, err := w.process(w.store, 2*queues.MaxReceive).Receive(t.Context()); taken != 2*queues.MaxReceive+1 || err != nil {
		t.Errorf("%d taken, %v", taken, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.fails = func(string) bool { cancel(); return false } // the context ends while the first is handled
	taken, err := w.process(w.store, 0).Receive(ctx)
	if taken != 1 || !errors.Is(err, context.Canceled) || w.left() != queues.MaxReceive-1 {
		t.Errorf("%d taken, %d left, %v", taken, w.left(), err)
	}
}
