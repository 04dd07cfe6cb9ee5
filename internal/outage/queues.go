package outage

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// probeQueue is asked for its length to check whether queues answer. It does not exist.
const probeQueue = "outage-probe"

// Queues wraps s with the waiting of this package.
func Queues(s queues.Store, c Config) queues.Store {
	return queueStore{s, newWatch("queues", c, func(ctx context.Context) error {
		_, err := s.Length(ctx, probeQueue)
		return err
	})}
}

type queueStore struct {
	inner queues.Store
	watch *watch
}

func (s queueStore) CreateQueue(ctx context.Context, queue string) error {
	return s.watch.do(ctx, func(ctx context.Context) error { return s.inner.CreateQueue(ctx, queue) })
}

func (s queueStore) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error) {
	err = s.watch.make(ctx, kind{tries: maxSends}, func(ctx context.Context) error {
		id, err = s.inner.Send(ctx, queue, body, delay)
		return err
	})
	return id, err
}

func (s queueStore) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) (received []queues.Message, err error) {
	err = s.watch.do(ctx, func(ctx context.Context) error {
		received, err = s.inner.Receive(ctx, queue, limit, visibility)
		return err
	})
	return received, err
}

func (s queueStore) Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (receipt string, err error) {
	err = s.watch.do(ctx, func(ctx context.Context) error {
		receipt, err = s.inner.Renew(ctx, queue, id, popReceipt, visibility)
		return err
	})
	return receipt, err
}

func (s queueStore) SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (sent queues.Message, err error) {
	err = s.watch.make(ctx, kind{tries: 1}, func(ctx context.Context) error {
		sent, err = s.inner.SendHidden(ctx, queue, body, hidden)
		return err
	})
	return sent, err
}

func (s queueStore) Update(ctx context.Context, queue, id, popReceipt string, body []byte, visibility time.Duration) (receipt string, err error) {
	err = s.watch.do(ctx, func(ctx context.Context) error {
		receipt, err = s.inner.Update(ctx, queue, id, popReceipt, body, visibility)
		return err
	})
	return receipt, err
}

func (s queueStore) Delete(ctx context.Context, queue, id, popReceipt string) error {
	return s.watch.do(ctx, func(ctx context.Context) error { return s.inner.Delete(ctx, queue, id, popReceipt) })
}

func (s queueStore) Peek(ctx context.Context, queue string) (next queues.Message, found bool, err error) {
	err = s.watch.do(ctx, func(ctx context.Context) error { next, found, err = s.inner.Peek(ctx, queue); return err })
	return next, found, err
}

func (s queueStore) Length(ctx context.Context, queue string) (n int, err error) {
	err = s.watch.do(ctx, func(ctx context.Context) error { n, err = s.inner.Length(ctx, queue); return err })
	return n, err
}
