package direct

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/storage"
	"github.com/vibedata/roundhouse/queues"
)

// The defaults of a Config.
const (
	DefaultInsurance = 30 * time.Second
	DefaultLimit     = 64
	DefaultNear      = 10 * time.Minute
	DefaultLate      = 5 * time.Second
	DefaultTimers    = 10_000
	DefaultRetry     = 30 * time.Second
)

// closeTime is how long Close waits for what runs. It has been told to end, and its messages become visible in any case.
const closeTime = 5 * time.Second

// Work works on a delivery as if a host had sent it. nil says that its message may be deleted; an error leaves the message for another
// attempt. putBack, which may be called once before it returns, makes the message visible after a while, and its
// attempt does not count: then what Work returns is not looked at. The end of ctx says that the program ends.
type Work func(ctx context.Context, d engine.Delivery, putBack func(ctx context.Context, away time.Duration) error) error

// Config configures a Store. Queues is required.
type Config struct {
	Queues queues.Store
	// Insurance is how long a message is hidden for the process that has sent it. It is renewed while the work lasts.
	Insurance time.Duration
	// Limit is how many messages of one queue are worked on at once.
	Limit int
	// Near is how soon a message has to be due that the process waits for, Late how much later than that the queue shows it, and Timers
	// how many of these there may be.
	Near, Late time.Duration
	Timers     int
	// Retry is after what time the queue shows a message whose work has failed, as the host's visibilityTimeout is.
	Retry time.Duration
	// Log takes what becomes of messages beside their work; nil means no log.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	for value, usual := range map[*time.Duration]time.Duration{&c.Insurance: DefaultInsurance, &c.Near: DefaultNear, &c.Late: DefaultLate, &c.Retry: DefaultRetry} {
		if *value <= 0 {
			*value = usual
		}
	}
	if c.Limit <= 0 {
		c.Limit = DefaultLimit
	}
	if c.Timers <= 0 {
		c.Timers = DefaultTimers
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Store is a queues.Store whose Send has the process work on what it sends. Make it with New; it is safe for concurrent use.
type Store struct {
	queues.Store
	config Config
	works  map[string]Work // by queue

	base context.Context // of all work; ends with Close
	stop context.CancelFunc
	runs sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running map[string]int // by queue
	waiting map[*message]*time.Timer
	sending int // messages that are due later and on their way into the queue
}

// New makes a Store that serves no queue.
func New(c Config) *Store {
	c = c.withDefaults()
	s := &Store{Store: c.Queues, config: c, works: map[string]Work{}, running: map[string]int{}, waiting: map[*message]*time.Timer{}}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve has the process work on what it sends to a queue. It belongs to the wiring: nothing is sent yet.
func (s *Store) Serve(queue string, w Work) { s.works[queue] = w }

// Send sends a message, and has the process work on it when it is due, if the queue is served and there is room.
func (s *Store) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	if !s.admit(queue, delay) {
		return s.Store.Send(ctx, queue, body, delay)
	}
	due, hidden := time.Now().Add(delay), s.config.Insurance
	if delay > 0 {
		hidden = delay + s.config.Late
	}
	sent, err := s.SendHidden(ctx, queue, body, hidden)
	if err != nil {
		s.dismiss(queue, delay)
	}
	switch {
	case errors.Is(err, queues.ErrOutcomeUnknown) && storage.SingleTry(ctx):
		return "", err
	case errors.Is(err, queues.ErrOutcomeUnknown): // a second copy is the last
		return s.Store.Send(queues.WithSingleTry(ctx), queue, body, delay)
	case errors.Is(err, queues.ErrThrottled):
		return s.Store.Send(ctx, queue, body, delay) // it repeats the request, which SendHidden must not
	case err != nil:
		return "", err
	}
	m := &message{store: s, queue: queue, body: slices.Clone(body), sent: sent}
	if delay > 0 {
		s.await(m, time.Until(due))
	} else {
		go s.run(m, hidden)
	}
	return sent.ID, nil
}

// admit makes room for a message, and says whether there is any.
func (s *Store) admit(queue string, delay time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.works[queue] == nil || s.closed || delay < 0 {
		return false
	}
	if delay > 0 {
		if delay > s.config.Near || len(s.waiting)+s.sending >= s.config.Timers {
			return false
		}
		s.sending++
		return true
	}
	return s.enter(queue)
}

// enter takes a place for work on a message, and says whether there was one. The caller holds mu.
func (s *Store) enter(queue string) bool {
	if s.running[queue] >= s.config.Limit {
		return false
	}
	s.running[queue]++
	s.runs.Add(1)
	return true
}

// dismiss gives back the room of a message that was not sent.
func (s *Store) dismiss(queue string, delay time.Duration) {
	if delay == 0 {
		s.leave(queue)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending--
}

func (s *Store) leave(queue string) {
	s.mu.Lock()
	s.running[queue]--
	s.mu.Unlock()
	s.runs.Done()
}

// run works on a message that stays hidden for a time, in the place that was taken for it.
func (s *Store) run(m *message, hidden time.Duration) {
	defer s.leave(m.queue)
	m.keep(hidden / 2)
	m.settle(s.works[m.queue](s.base, m.delivery(), m.putBack))
}

// await works on a message when it is due. Without a place then, a host does, when the queue shows the message.
func (s *Store) await(m *message, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending--
	if s.closed {
		return
	}
	s.waiting[m] = time.AfterFunc(wait, func() {
		s.mu.Lock()
		_, waits := s.waiting[m]
		delete(s.waiting, m)
		begins := waits && !s.closed && s.enter(m.queue)
		s.mu.Unlock()
		if begins {
			s.run(m, s.config.Late)
		}
	})
}

// Close ends the work, and waits for it for a moment. The messages of what waits for its time are shown by the queue.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	for _, timer := range s.waiting {
		timer.Stop()
	}
	clear(s.waiting)
	s.mu.Unlock()
	s.stop()
	done := make(chan struct{})
	go func() { s.runs.Wait(); close(done) }()
	limit := time.NewTimer(closeTime)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
}
