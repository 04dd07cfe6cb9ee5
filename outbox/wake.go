package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

const (
	// wakeWindow is the time in which a tenant gets at most two wake-ups: one immediately, and one at its end for all
	// additions in between.
	wakeWindow = time.Second
	// maxWakeStates is the number of remembered tenants above which outdated ones are dropped.
	maxWakeStates = 10_000
)

// Wake is the body of a wake-up message.
type Wake struct {
	Tenant string `json:"tenant"`
}

// DecodeWake decodes the text of a wake-up message from the queue. The error is an ErrInvalid.
func DecodeWake(text string) (Wake, error) {
	var w Wake
	if err := json.Unmarshal(queues.Decode(text), &w); err != nil {
		return Wake{}, fmt.Errorf("decode wake-up: %w: not JSON", ErrInvalid)
	}
	if err := checkID("tenant", w.Tenant, true); err != nil {
		return Wake{}, fmt.Errorf("decode wake-up: %w", err)
	}
	return w, nil
}

// waker sends wake-ups. Correctness does not depend on them, because the sweep finds unannounced messages.
type waker struct {
	queue  queues.Store
	name   string
	logger *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	states map[string]wakeState
}

// wakeState is the last wake-up of a tenant: a wake-up covers the messages that are added before it becomes visible.
type wakeState struct {
	sentAt    time.Time
	delayedAt time.Time
}

// due reports whether a wake-up is needed, and with which delay.
func (w *waker) due(tenant string) (delay time.Duration, needed bool) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.states[tenant]
	switch {
	case s.delayedAt.After(now):
		return 0, false
	case now.Sub(s.sentAt) < wakeWindow:
		delay = wakeWindow
		s.delayedAt = now.Add(delay)
	default:
		s.sentAt = now
	}
	w.prune(now)
	w.states[tenant] = s
	return delay, true
}

func (w *waker) prune(now time.Time) {
	if w.states == nil {
		w.states = map[string]wakeState{}
	}
	if len(w.states) < maxWakeStates {
		return
	}
	for tenant, s := range w.states {
		if now.Sub(s.sentAt) > wakeWindow && now.After(s.delayedAt) {
			delete(w.states, tenant)
		}
	}
}

// dispatchStarted records that a dispatcher of this process starts to read the tenant, so that a later message needs
// another wake-up.
func (w *waker) dispatchStarted(tenant string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.states[tenant]; ok {
		s.sentAt = time.Time{}
		w.states[tenant] = s
	}
}

// notify sends a wake-up for a tenant unless one is on its way.
func (w *waker) notify(ctx context.Context, tenant string) {
	if delay, needed := w.due(tenant); needed {
		w.send(ctx, tenant, delay)
	}
}

// send sends a wake-up for a tenant, visible after a delay.
func (w *waker) send(ctx context.Context, tenant string, delay time.Duration) {
	// Marshalling a string cannot fail.
	body, _ := json.Marshal(Wake{Tenant: tenant})
	if _, err := w.queue.Send(ctx, w.name, body, delay); err != nil {
		w.forget(tenant)
		w.logger.WarnContext(ctx, "outbox wake-up not sent: the sweep will find the message", "tenantId", tenant, "error", err)
	}
}

// forget makes the next message send a wake-up again.
func (w *waker) forget(tenant string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.states, tenant)
}
