package direct

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/queues"
)

// callTime bounds a request for a message. The work is over then, or continues in parallel.
const callTime = 10 * time.Second

// message is a message that the process keeps hidden.
type message struct {
	store *Store
	queue string
	body  []byte

	mu      sync.Mutex
	sent    queues.Message
	renewal *time.Timer
	settled bool // it is settled elsewhere
}

// delivery returns the delivery of a host that received the message for the first time.
func (m *message) delivery() engine.Delivery {
	return engine.Delivery{Queue: m.queue, ID: m.sent.ID, Body: m.body, DequeueCount: 1, InsertedAt: m.sent.InsertedAt}
}

// keep renews the time for which the message is hidden, first after a while, until it is settled.
func (m *message) keep(first time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewal = time.AfterFunc(first, m.renew)
}

func (m *message) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.settled {
		return
	}
	c, next := m.store.config, m.store.config.Insurance/2
	err := m.call(func(ctx context.Context) error {
		receipt, err := m.store.Renew(ctx, m.queue, m.sent.ID, m.sent.PopReceipt, c.Insurance)
		if err == nil {
			m.sent.PopReceipt = receipt
		}
		return err
	})
	switch {
	case isLost(err):
		m.settled = true
		c.Log.Warn("a message could not be kept hidden while it was worked on: another process takes it, too", "queue", m.queue, "messageId", m.sent.ID)
		return
	case err != nil:
		next = c.Insurance / 10
	}
	m.renewal.Reset(next)
}

// putBack makes the message visible after a delay.
func (m *message) putBack(_ context.Context, away time.Duration) error {
	return m.rest("put back", func(ctx context.Context) error {
		_, err := m.store.Renew(ctx, m.queue, m.sent.ID, m.sent.PopReceipt, away)
		return err
	})
}

// settle deletes the message when its work is done, and else leaves it for another attempt.
func (m *message) settle(failure error) {
	if failure == nil {
		_ = m.rest("deleted", func(ctx context.Context) error { return m.store.Delete(ctx, m.queue, m.sent.ID, m.sent.PopReceipt) })
		return
	}
	_ = m.rest("given back", func(ctx context.Context) error {
		failed := m.delivery()
		failed.DequeueCount++ // the failed attempt was one
		body, err := engine.Again(failed)
		if err != nil || len(body) > queues.MaxBody { // no room for the count: this attempt does not count
			body = m.body
		}
		_, err = m.store.Update(ctx, m.queue, m.sent.ID, m.sent.PopReceipt, body, m.store.config.Retry)
		return err
	})
}

// rest settles the message, once. If that fails, the queue makes the message visible when it expires.
func (m *message) rest(what string, do func(ctx context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewal.Stop()
	if m.settled {
		return nil
	}
	m.settled = true
	err := m.call(do)
	if err != nil && !isLost(err) {
		m.store.config.Log.Warn("a message could not be settled: it comes again when it is visible", "operation", what, "queue", m.queue, "messageId", m.sent.ID, "error", err.Error())
	}
	return err
}

// call makes a request that does not end with the program.
func (m *message) call(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.store.base), callTime)
	defer cancel()
	return do(ctx)
}

// isLost reports whether another process has received or deleted the message.
func isLost(err error) bool {
	return errors.Is(err, queues.ErrPopReceipt) || errors.Is(err, queues.ErrNotFound)
}
