package queueprobe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/queues"
)

// Head describes the next message of a queue.
type Head struct {
	Queue string
	// Messages is the approximate length, hidden messages included.
	Messages int
	// Age is the time since the next message was sent; 0 without one. It includes the delay of a delayed message.
	Age time.Duration
	// Stuck is the time for which these checks have found that message, not received meanwhile: then no host receives
	// from the queue. 0 without one, and at the first check.
	Stuck time.Duration
}

// parallelLooks bounds the queues that are checked in parallel.
const parallelLooks = 8

// Heads checks queues, and keeps the results: a message that no host receives shows in two checks. It is safe for
// concurrent use.
type Heads struct {
	// Queues is the store, Names are the queues; both are required.
	Queues queues.Store
	Names  []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is the next message, and since when it is known to be.
type sighting struct {
	id    string
	count int64
	since time.Time
}

// Look checks all queues: one request for each, and another one for each that is not empty. A missing queue is empty.
func (h *Heads) Look(ctx context.Context) ([]Head, error) {
	heads := make([]Head, len(h.Names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLooks)
	for i, name := range h.Names {
		group.Go(func() (err error) {
			heads[i], err = h.look(ctx, name)
			return err
		})
	}
	return heads, group.Wait()
}

func (h *Heads) look(ctx context.Context, name string) (Head, error) {
	head := Head{Queue: name}
	var next queues.Message
	var found bool
	n, err := h.Queues.Length(ctx, name)
	if err == nil && n > 0 {
		next, found, err = h.Queues.Peek(ctx, name)
	}
	if err != nil && !errors.Is(err, queues.ErrNotFound) {
		return head, fmt.Errorf("look at the queue %s: %w", name, err)
	}
	head.Messages = n
	now := time.Now()
	if h.Now != nil {
		now = h.Now()
	}
	if found {
		head.Age = max(0, now.Sub(next.InsertedAt))
	}
	head.Stuck = h.note(name, next, found, now)
	return head, nil
}

// note records the next message, and returns for how long it has been the next one.
func (h *Heads) note(name string, next queues.Message, found bool, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[string]sighting{}
	}
	if !found {
		delete(h.seen, name)
		return 0
	}
	before, known := h.seen[name]
	if !known || before.id != next.ID || before.count != next.DequeueCount {
		before = sighting{next.ID, next.DequeueCount, now}
		h.seen[name] = before
	}
	return now.Sub(before.since)
}
