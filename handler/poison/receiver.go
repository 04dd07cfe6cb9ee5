package poison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// DefaultLimit is how many messages of a queue a run takes unless Config says otherwise.
	DefaultLimit = 10 * queues.MaxReceive
	// Hidden is for how long a message is away that was received: longer than a run takes, and than the time between two, so that
	// the next run takes others while those that failed are still away.
	Hidden = 10 * time.Minute

	// deleteTimeout bounds the deletion of a message, which goes on when the time of the run is over.
	deleteTimeout = 5 * time.Second
)

// Queue is a poison queue.
type Queue struct {
	// Name is the queue's.
	Name string
	// Handle works on a message. nil says that it can be deleted. It must not panic.
	Handle func(ctx context.Context, d engine.Delivery) error
}

// Config says what a Receiver works on. Limit has a default; the rest is required.
type Config struct {
	// Queues are the queues as they are in storage: what is encrypted in them is for Handle to decrypt.
	Queues queues.Store
	// From are the poison queues.
	From []Queue
	// Limit is how many messages of each queue a run takes, in full batches of queues.MaxReceive; 0 means DefaultLimit.
	Limit int
}

// Receiver takes messages out of poison queues. It is safe for concurrent use, in several processes, too.
type Receiver struct{ config Config }

// New makes a Receiver.
func New(c Config) *Receiver {
	c.Limit = cmp.Or(c.Limit, DefaultLimit)
	return &Receiver{c}
}

// Receive takes what is in the poison queues, and returns how many messages it has taken: they are handled, and deleted. The error
// says what stays, or what could not be looked at.
func (r *Receiver) Receive(ctx context.Context) (taken int, err error) {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	for _, q := range r.config.From {
		group.Go(func() {
			n, err := r.receive(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			taken, errs = taken+n, append(errs, err)
		})
	}
	group.Wait()
	return taken, errors.Join(errs...)
}

// receive takes what is in a queue, batch by batch. One that is not full was the last.
func (r *Receiver) receive(ctx context.Context, q Queue) (taken int, err error) {
	var stay []error
	for full := true; full && taken+len(stay) < r.config.Limit && ctx.Err() == nil; {
		batch, err := r.config.Queues.Receive(ctx, q.Name, queues.MaxReceive, Hidden)
		if errors.Is(err, queues.ErrNotFound) {
			break
		}
		if err != nil {
			return taken, errors.Join(stayed(q, stay), fmt.Errorf("poison queue %s: %w", q.Name, err))
		}
		failed := r.handle(ctx, q, batch)
		taken, stay = taken+len(batch)-len(failed), append(stay, failed...)
		full = len(batch) == queues.MaxReceive
	}
	return taken, stayed(q, stay)
}

// stayed is the error of messages that stay in a queue: how many, and why the first of them does.
func stayed(q Queue, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("poison queue %s: %d messages stay, and come again in %v; one of them: %w", q.Name, len(errs), Hidden, errs[0])
}

// handle has the messages of a batch handled, one after the other, so that the second of a pair finds what the first has left. It
// returns an error for each that stays.
func (r *Receiver) handle(ctx context.Context, q Queue, batch []queues.Message) (stay []error) {
	for _, m := range batch {
		if err := r.settle(ctx, q, m); err != nil {
			stay = append(stay, fmt.Errorf("message %s: %w", m.ID, err))
		}
	}
	return stay
}

// settle has a message handled, and deletes it. When another receiver has it meanwhile, it is that one's to delete.
func (r *Receiver) settle(ctx context.Context, q Queue, m queues.Message) error {
	if ctx.Err() != nil {
		return fmt.Errorf("not handled: %w", context.Cause(ctx))
	}
	d := engine.Delivery{Queue: q.Name, ID: m.ID, PopReceipt: m.PopReceipt, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}
	if err := q.Handle(ctx, d); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	err := r.config.Queues.Delete(ctx, q.Name, m.ID, m.PopReceipt)
	if err != nil && !errors.Is(err, queues.ErrNotFound) && !errors.Is(err, queues.ErrPopReceipt) {
		return fmt.Errorf("handled, and handled again because it could not be deleted: %w", err)
	}
	return nil
}
