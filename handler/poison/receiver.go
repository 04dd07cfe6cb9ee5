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
	// DefaultLimit is the default of Config.Limit.
	DefaultLimit = 10 * queues.MaxReceive
	// Hidden is the time for which a received message is hidden: longer than a run, and than the interval between
	// two, so that the next run receives others while failed ones are still hidden.
	Hidden = 10 * time.Minute

	// deleteTimeout bounds the deletion of a message, which continues after the run timed out.
	deleteTimeout = 5 * time.Second
)

// Queue is a poison queue.
type Queue struct {
	// Name is the name of the queue.
	Name string
	// Handle handles a message. nil means that it can be deleted. It must not panic.
	Handle func(ctx context.Context, d engine.Delivery) error
}

// Config configures a Receiver. Limit has a default; the rest is required.
type Config struct {
	// Queues are the raw queues in storage: Handle decrypts encrypted messages.
	Queues queues.Store
	// From are the poison queues.
	From []Queue
	// Limit bounds the messages of each queue in a run, in full batches of queues.MaxReceive; 0 means DefaultLimit.
	Limit int
}

// Receiver handles the messages of poison queues. It is safe for concurrent use, also in several processes.
type Receiver struct{ config Config }

// New makes a Receiver.
func New(c Config) *Receiver {
	c.Limit = cmp.Or(c.Limit, DefaultLimit)
	return &Receiver{c}
}

// Receive handles the messages of the poison queues, and returns the number of handled and deleted ones. The error
// describes the remaining messages, and unreadable queues.
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

// receive handles the messages of a queue, batch by batch. A batch that is not full is the last.
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

// stayed returns the error of messages that stay in a queue: their number, and the reason of the first.
func stayed(q Queue, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("poison queue %s: %d messages stay, and come again in %v; one of them: %w", q.Name, len(errs), Hidden, errs[0])
}

// handle handles the messages of a batch, one after the other, so that the second of a pair finds the result of the
// first. It returns an error for each that stays.
func (r *Receiver) handle(ctx context.Context, q Queue, batch []queues.Message) (stay []error) {
	for _, m := range batch {
		if err := r.settle(ctx, q, m); err != nil {
			stay = append(stay, fmt.Errorf("message %s: %w", m.ID, err))
		}
	}
	return stay
}

// settle handles a message, and deletes it. If another receiver has it meanwhile, that one deletes it.
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
