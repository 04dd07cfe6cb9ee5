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

// Head is what is known of a queue by looking at it.
type Head struct {
	Queue string
	// Messages is roughly how many it has, hidden ones included.
	Messages int
	// Age is how long ago the message was sent that is next to be received; 0 without one. The delay of a message that was to come
	// later is part of it.
	Age time.Duration
	// Stuck is for how long these looks have found that message there, and not received meanwhile: then nobody receives from the
	// queue. 0 without one, and at the first look.
	Stuck time.Duration
}

// parallelLooks bounds the queues that are looked at at the same time.
const parallelLooks = 8

// Heads looks at queues, and remembers what it saw: that a message waits which nobody receives shows in two looks. It is safe for
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

// sighting is what was next to be received, and since when it is known to be.
type sighting struct {
	id    string
	count int64
	since time.Time
}

// Look looks at all queues: one request for each, and another one for each that is not empty. A queue that is missing is empty.
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

// note remembers what is next to be received, and says for how long it has been.
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
