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

// closeTime bounds the wait of Close for running work. It has been canceled, and its messages become visible anyway.
const closeTime = 5 * time.Second

// Work handles a delivery like one of a host. nil means that its message may be deleted; an error leaves the message
// for another attempt. Work may call putBack once before it returns. putBack makes the message visible after a delay
// without counting the attempt; then the result of Work is ignored. The end of ctx means that the program ends.
type Work func(ctx context.Context, d engine.Delivery, putBack func(ctx context.Context, away time.Duration) error) error

// Config configures a Store. Queues is required.
type Config struct {
	Queues queues.Store
	// Insurance is the time for which a message is hidden for its sending process. It is renewed while the work
	// lasts.
	Insurance time.Duration
	// Limit bounds the messages of one queue in progress.
	Limit int
	// Near bounds the delay of a message that the process waits for, Late is how much later the queue shows it, and
	// Timers bounds their number.
	Near, Late time.Duration
	Timers     int
	// Retry is the delay after which the queue shows a message whose work has failed, like the host's
	// visibilityTimeout.
	Retry time.Duration
	// Log logs failures outside of the work; nil means no log.
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

// Store is a queues.Store whose Send makes the process handle the message. Make it with New; it is safe for
// concurrent use.
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
	sending int // delayed messages that are being sent
}

// New makes a Store that serves no queue.
func New(c Config) *Store {
	c = c.withDefaults()
	s := &Store{Store: c.Queues, config: c, works: map[string]Work{}, running: map[string]int{}, waiting: map[*message]*time.Timer{}}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve makes the process handle its own messages to a queue. It is part of the wiring: nothing is sent yet.
func (s *Store) Serve(queue string, w Work) { s.works[queue] = w }

// Send sends a message, and lets the process handle it when it is due, if the queue is served and a slot is free.
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
	case errors.Is(err, queues.ErrOutcomeUnknown): // it sends at most one more copy
		return s.Store.Send(queues.WithSingleTry(ctx), queue, body, delay)
	case errors.Is(err, queues.ErrThrottled):
		return s.Store.Send(ctx, queue, body, delay) // it retries the request, which SendHidden must not
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

// admit reserves room for a message, and reports whether it succeeded.
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

// enter takes a slot for work on a message, and reports whether one was free. The caller holds mu.
func (s *Store) enter(queue string) bool {
	if s.running[queue] >= s.config.Limit {
		return false
	}
	s.running[queue]++
	s.runs.Add(1)
	return true
}

// dismiss frees the room of a message that was not sent.
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

// run handles a message that stays hidden for a time, in its reserved slot.
func (s *Store) run(m *message, hidden time.Duration) {
	defer s.leave(m.queue)
	m.keep(hidden / 2)
	m.settle(s.works[m.queue](s.base, m.delivery(), m.putBack))
}

// await handles a message when it is due. Without a free slot then, a host does, when the queue shows the message.
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

// Close ends the work, and waits for it for a moment. The queue shows the messages that wait for their time.
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
