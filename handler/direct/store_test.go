package direct

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/queues/queuestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const queue = "served"

var errWork = errors.New("the work failed")

// world is a queue, with the handled messages and the requests.
type world struct {
	t      *testing.T
	memory *queues.Memory
	plan   faults.Plan
	began  time.Time

	mu   sync.Mutex
	done []string // bodies and times since the start
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, memory: queues.NewMemory(), began: time.Now()}
	testenv.OK(t, w.memory.CreateQueue(t.Context(), queue))
	return w
}

// open makes a store that serves the queue.
func (w *world) open(c Config, work Work) *Store {
	c.Queues = faults.Queues(w.memory, w.plan.Intercept)
	s := New(c)
	s.Serve(queue, work)
	w.t.Cleanup(s.Close)
	return s
}

func (w *world) send(s *Store, body string, delay time.Duration) {
	w.t.Helper()
	testenv.Must(s.Send(w.t.Context(), queue, []byte(body), delay))(w.t)
}

// note records a handled body.
func (w *world) note(d engine.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, fmt.Sprintf("%s after %v", engine.Original(d), time.Since(w.began)))
}

func (w *world) worked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.done...)
}

// shown returns the messages visible to a host.
func (w *world) shown() []queues.Message {
	w.t.Helper()
	found, err := w.memory.Receive(w.t.Context(), queue, queues.MaxReceive, time.Hour)
	testenv.OK(w.t, err)
	return found
}

// length returns the number of messages in the queue, hidden ones included.
func (w *world) length() int {
	w.t.Helper()
	n, err := w.memory.Length(w.t.Context(), queue)
	testenv.OK(w.t, err)
	return n
}

func (w *world) operations() (names []string) {
	for _, c := range w.plan.Calls() {
		names = append(names, c.Operation)
	}
	return names
}

type putBack = func(ctx context.Context, away time.Duration) error

// For receivers of other senders' messages, a serving store is like any other.
func TestStore(t *testing.T) {
	t.Parallel()
	queuestest.Run(t, func(t *testing.T) queues.Store {
		s := New(Config{Queues: queues.NewMemory()})
		t.Cleanup(s.Close)
		return s
	})
}

// A sent message is handled immediately or when it is due, with two requests, and with the same delivery as by a
// host.
func TestAtOnceAndWhenDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.open(Config{}, func(_ context.Context, d engine.Delivery, _ putBack) error {
			if d.Queue != queue || d.ID == "" || d.DequeueCount != 1 || !d.InsertedAt.Equal(w.began) && d.InsertedAt.Sub(w.began).Abs() > time.Second {
				t.Errorf("delivery %+v", d)
			}
			w.note(d)
			return nil
		})
		w.send(s, "now", 0)
		w.send(s, "soon", 1500*time.Millisecond)
		w.send(s, "later", DefaultNear)
		w.send(s, "too late", DefaultNear+1)
		if _, err := s.Send(t.Context(), queue, []byte("x"), -1); !errors.Is(err, queues.ErrInvalid) {
			t.Errorf("a negative delay: %v", err)
		}
		time.Sleep(time.Hour)
		testenv.Equal(t, "worked on", []string{"now after 0s", "soon after 1.5s", "later after 10m0s"}, w.worked())
		// In the order of their ends; the two Sends are the late message, and the refused one.
		want := "SendHidden SendHidden SendHidden Send Send Delete Delete Delete"
		got := w.operations()
		if strings.Count(strings.Join(got, " "), "Delete") != 3 || len(got) != len(strings.Fields(want)) {
			t.Errorf("requests %v, want those of %s", got, want)
		}
		if shown := w.shown(); len(shown) != 1 || string(queues.Decode(shown[0].Text)) != "too late" {
			t.Errorf("left: %+v", shown)
		}
	})
}

// A message beyond the limits is sent for the hosts, and room is free again when another has ended.
func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.open(Config{Limit: 2, Timers: 1}, func(_ context.Context, d engine.Delivery, _ putBack) error {
			time.Sleep(time.Second)
			w.note(d)
			return nil
		})
		for i := range 3 {
			w.send(s, fmt.Sprint("burst ", i), 0)
		}
		testenv.Equal(t, "messages of the burst that are left to hosts", 1, len(w.shown()))
		time.Sleep(2 * time.Second)
		w.send(s, "after", 0)
		w.send(s, "a timer", 10*time.Second)
		w.send(s, "a timer too many", 10*time.Second)
		time.Sleep(10*time.Second - 1)
		w.send(s, "full again", 0)
		w.send(s, "full again", 0)
		time.Sleep(time.Second + 1)
		if got := w.worked(); len(got) != 5 {
			t.Errorf("worked on %v", got)
		}
		if n := len(w.shown()); n != 1 { // the timer that had room to wait, but no slot to run
			t.Errorf("%d timers are left to hosts by now", n)
		}
		time.Sleep(DefaultLate)
		testenv.Equal(t, "messages that are left to hosts some seconds later", 1, len(w.shown()))
	})
}

// Long work keeps its message hidden, as long as storage allows it.
func TestLongWork(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]bool{"it is renewed": false, "it cannot be renewed": true} {
		testenv.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			w.plan.Refuse = func(c faults.Call) bool { return refuse && c.Operation == "Renew" }
			s := w.open(Config{}, func(_ context.Context, d engine.Delivery, _ putBack) error {
				time.Sleep(5*time.Minute + time.Second)
				w.note(d)
				return nil
			})
			w.send(s, "now", 0)
			w.send(s, "due", time.Minute)
			shown := 0
			for range 10 * 60 {
				time.Sleep(time.Second)
				shown += len(w.shown())
			}
			testenv.Equal(t, "what was worked on", 2, len(w.worked()))
			want := map[bool]int{true: 2}[refuse]
			if n := w.length(); n != want || shown != want { // its receivers have it
				t.Errorf("%d messages were shown, %d are left, want %d", shown, n, want)
			}
			renewals := strings.Count(strings.Join(w.operations(), " "), "Renew")
			if !refuse && renewals != 2*20 {
				t.Errorf("%d renewals", renewals)
			}
		})
	}
}

// A failed message is redelivered after a while, with the attempt counted; a requeued one after its delay, without.
func TestComesAgain(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", queues.MaxBody)
	for name, tt := range map[string]struct {
		body     string
		work     Work
		after    time.Duration
		attempts int // of the host's delivery, this one included
	}{
		"it failed": {"x", func(context.Context, engine.Delivery, putBack) error { return errWork }, DefaultRetry, 2},
		"it failed, and is too large for a number": {large, func(context.Context, engine.Delivery, putBack) error { return errWork }, DefaultRetry, 1},
		"it was put back": {"x", func(ctx context.Context, _ engine.Delivery, back putBack) error {
			return errors.Join(errWork, back(ctx, time.Minute))
		}, time.Minute, 1},
		"it was put back at once": {"x", func(ctx context.Context, _ engine.Delivery, back putBack) error { return back(ctx, 0) }, 0, 1},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			s := w.open(Config{}, tt.work)
			w.send(s, tt.body, 0)
			synctest.Wait()
			if tt.after > 0 {
				time.Sleep(tt.after - time.Second)
				testenv.Equal(t, "what is shown early", 0, len(w.shown()))
				time.Sleep(time.Second)
			}
			shown := w.shown()
			if len(shown) != 1 {
				t.Fatalf("%d messages are shown after %v", len(shown), tt.after)
			}
			d := engine.Delivery{ID: shown[0].ID, Body: queues.Decode(shown[0].Text), DequeueCount: int(shown[0].DequeueCount), InsertedAt: shown[0].InsertedAt}
			testenv.Equal(t, "its body", tt.body, string(engine.Original(d)))
			again, err := engine.Again(d)
			if err != nil || tt.attempts > 1 && !strings.Contains(string(again), fmt.Sprintf(`"attempts":%d`, tt.attempts-1)) ||
				tt.attempts == 1 && !strings.Contains(string(again), `"attempts":0`) {
				t.Errorf("it is not attempt %d: %.200s, %v", tt.attempts, again, err)
			}
		})
	}
}

// A process that ends cancels its work, and begins no more; the queue shows the messages that wait for their time.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.open(Config{}, func(ctx context.Context, d engine.Delivery, back putBack) error {
			w.note(d)
			<-ctx.Done()
			return back(ctx, 0)
		})
		w.send(s, "running", 0)
		w.send(s, "waiting", time.Minute)
		synctest.Wait()
		s.Close()
		testenv.Equal(t, "messages that are shown at once", 1, len(w.shown()))
		w.send(s, "afterwards", 0)
		testenv.Equal(t, "messages that were sent afterwards and are shown", 1, len(w.shown()))
		time.Sleep(time.Minute + DefaultLate)
		testenv.Equal(t, "messages that waited for their time and are shown", 1, len(w.shown()))
		testenv.Equal(t, "what was worked on", 1, len(w.worked()))
	})
}

// With any fault at any request, an accepted message is handled by the process, or shown to a host in time, and a
// finished one is shown only after a fault.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	faultstest.UpTo(t, faults.Faults(), 6, faulty)
}

func faulty(t *testing.T, plan *faults.Plan) {
	w := newWorld(t)
	w.plan.At, w.plan.Fault = plan.At, plan.Fault
	work := map[string]time.Duration{"quick": 0, "slow": 40 * time.Second, "due": 0} // its duration
	failed := map[string]bool{}
	s := w.open(Config{}, func(_ context.Context, d engine.Delivery, _ putBack) error {
		original := engine.Original(d)
		time.Sleep(work[string(original)])
		if w.plan.Crashed() {
			return errWork // the process is dead, with its work
		}
		w.note(d)
		return nil
	})
	for _, body := range []string{"quick", "slow", "due"} {
		delay := map[bool]time.Duration{true: time.Minute}[body == "due"]
		if _, err := s.Send(t.Context(), queue, []byte(body), delay); err != nil {
			failed[body] = true // its sender knows
		}
	}
	seen := map[string]bool{}
	for range 5 * 60 { // a host, which polls every second
		time.Sleep(time.Second)
		for _, m := range w.shown() {
			body := string(engine.Original(engine.Delivery{ID: m.ID, Body: queues.Decode(m.Text)}))
			if passed := time.Since(w.began); !seen[body] && passed > 2*time.Minute+faults.Slowness {
				t.Errorf("%s is shown after %v only", body, passed)
			}
			seen[body] = true
		}
	}
	w.plan.Wait()
	for _, one := range w.worked() {
		body, _, _ := strings.Cut(one, " ")
		seen[body] = true
	}
	for body := range work {
		if !seen[body] && !failed[body] {
			t.Errorf("%q is lost", body)
		}
	}
	if w.plan.Done() && plan.Fault == faults.Throttled && len(failed) > 0 {
		t.Errorf("%v were refused, although the queue was busy once only", failed)
	}
}

// A message with an unknown outcome exists at most twice, and once in a context that allows a single try.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ctx    func(context.Context) context.Context
		copies int
	}{
		"any":        {func(ctx context.Context) context.Context { return ctx }, 2},
		"single try": {queues.WithSingleTry, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := New(Config{Queues: outage.Queues(faults.Queues(w.memory, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
					if err := next(ctx); err != nil || c.Target != queue || !strings.HasPrefix(c.Operation, "Send") {
						return err
					}
					return queues.ErrOutcomeUnknown
				}), outage.Config{})})
				defer s.Close()
				s.Serve(queue, func(context.Context, engine.Delivery, putBack) error { return nil })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := s.Send(tt.ctx(outage.Wait(ctx)), queue, []byte("x"), time.Minute)
				if n := w.length(); !errors.Is(err, queues.ErrOutcomeUnknown) || n != tt.copies {
					t.Errorf("%d copies and %v, want %d and %v", n, err, tt.copies, queues.ErrOutcomeUnknown)
				}
			})
		})
	}
}
