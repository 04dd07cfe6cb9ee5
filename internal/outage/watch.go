package outage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// ErrUnavailable: storage does not answer, so the call was not made, or its answer was not awaited.
var ErrUnavailable = errors.New("storage does not answer")

// Defaults of Config.
const (
	DefaultFirstPause   = 250 * time.Millisecond
	DefaultLongestPause = 5 * time.Second
	DefaultProbeTimeout = 3 * time.Second
)

const (
	// glance is how long a hurried call waits for storage before the service is probed.
	glance = 500 * time.Millisecond
	// step is the average delay between two waiting calls that continue after an outage, and spread the largest delay.
	step   = 2 * time.Millisecond
	spread = 2 * time.Second
)

// Config configures the waiting for the end of an outage.
type Config struct {
	// FirstPause is between the first two reads, and LongestPause bounds the doubled pauses. 0 means the defaults.
	FirstPause, LongestPause time.Duration
	// ProbeTimeout is how long a read waits for an answer; 0 means DefaultProbeTimeout.
	ProbeTimeout time.Duration
	// Log gets a record when an outage begins and when it has ended; nil means no log.
	Log *slog.Logger
}

// watch is the state of a service as a process knows it. It is safe for concurrent use.
type watch struct {
	service string
	config  Config
	limiter *limiter
	// ask is a cheap read.
	ask func(ctx context.Context) error

	mu      sync.Mutex
	asked   chan struct{} // closed at the end of the latest read; nil before the first
	answer  time.Time     // when a call was answered last
	waiting int
	spread  time.Duration // over which the waiting calls continue

	// These describe the outage; over is nil without one, and is closed at its end.
	over  chan struct{}
	since time.Time
	cause string
	next  time.Time // when the next read is due
	pause time.Duration
	reads int
}

func newWatch(service string, c Config, ask func(ctx context.Context) error) *watch {
	c.FirstPause, c.LongestPause = cmp.Or(c.FirstPause, DefaultFirstPause), cmp.Or(c.LongestPause, DefaultLongestPause)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, DefaultProbeTimeout)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &watch{service: service, config: c, limiter: newLimiter(), ask: ask}
}

// heard ends an outage when a call was answered.
func (w *watch) heard(ctx context.Context, err error) {
	if silent(err) || err != nil && ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = time.Now()
	w.end()
}

// silent reports whether the service may not have answered.
func silent(err error) bool {
	return errors.Is(err, storage.ErrThrottled) || errors.Is(err, storage.ErrOutcomeUnknown)
}

// state returns the known state: over is nil without an outage.
func (w *watch) state() (over <-chan struct{}, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over, w.next
}

// unavailable returns the error of a call that is not made.
func (w *watch) unavailable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("%w: %s since %s: %w (%s)", ErrUnavailable, w.service, w.since.UTC().Format(time.RFC3339), storage.ErrThrottled, w.cause)
}

// probe starts a read unless one is in progress, and returns a channel that is closed at its end. During an outage, it
// starts no read before it is due: many wake up for it.
func (w *watch) probe() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil && time.Now().Before(w.next) {
		return w.asked
	}
	if w.asked == nil || isClosed(w.asked) {
		w.asked = make(chan struct{})
		go w.read()
	}
	return w.asked
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// read probes the service once. It is independent of all calls, so no call can end it.
func (w *watch) read() {
	ctx, cancel := context.WithTimeout(storage.WithSingleTry(context.Background()), w.config.ProbeTimeout)
	defer cancel()
	began := time.Now()
	err := w.ask(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	defer close(w.asked)
	switch {
	case !silent(err) && ctx.Err() == nil:
		w.end()
		return
	case w.over == nil && w.answer.After(began): // the service is slow
		return
	case w.over == nil:
		w.over, w.since, w.reads, w.pause = make(chan struct{}), time.Now(), 0, w.config.FirstPause
		w.config.Log.Warn("storage does not answer: invocations wait for it, requests are refused", "service", w.service, "error", err.Error())
	default:
		w.pause = min(2*w.pause, w.config.LongestPause)
	}
	w.reads++
	w.cause, w.next = err.Error(), time.Now().Add(jittered(w.pause))
}

// end ends the outage, if any.
func (w *watch) end() {
	if w.over == nil {
		return
	}
	w.spread = min(spread, time.Duration(w.waiting)*step)
	w.config.Log.Info("storage answers again", "service", w.service, "durationMs", time.Since(w.since).Milliseconds(), "reads", w.reads, "waiting", w.waiting)
	close(w.over)
	w.over = nil
	w.limiter.restart()
}

// await returns when no outage is known. waited reports whether it has waited. The error is that of ctx.
func (w *watch) await(ctx context.Context) (waited bool, err error) {
	over, next := w.state()
	if over == nil {
		return false, nil
	}
	w.wait(1)
	defer w.wait(-1)
	for ; over != nil; over, next = w.state() {
		due := time.NewTimer(max(time.Until(next), 1)) // a timer that is due immediately crashes the race detector in a bubble of synctest (Go 1.26)
		select {
		case <-due.C:
			select {
			case <-w.probe():
			case <-ctx.Done():
			}
		case <-over:
		case <-ctx.Done():
		}
		due.Stop()
		if ctx.Err() != nil {
			return true, context.Cause(ctx)
		}
	}
	return true, sleep(ctx, rand.N(w.backSpread()+1))
}

func (w *watch) wait(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += n
}

func (w *watch) backSpread() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spread
}

// jittered returns a pause, plus or minus a fifth.
func jittered(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5+1) }

// sleep waits for d. The error is that of ctx, if it ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
