package queues

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// neverExpires is the expiry that the service reports for a message without time to live.
var neverExpires = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Memory is a Store in memory with the service's promises and limits, for tests, simulations and benchmarks. It
// delivers visible messages in the order in which they became visible. Make one with NewMemory.
type Memory struct {
	// Now is the clock; nil means time.Now. Set it before first use.
	Now func() time.Time

	mu     sync.Mutex
	queues map[string]*memoryQueue
}

var _ Store = (*Memory)(nil)

// memoryQueue is a heap of messages by the time at which they become visible.
type memoryQueue struct {
	order    []*memoryMessage
	byID     map[string]*memoryMessage
	sequence int64
}

type memoryMessage struct {
	Message
	visibleAt time.Time
	sequence  int64
	place     int
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{queues: map[string]*memoryQueue{}}
}

// CreateQueue creates a queue if it is missing.
func (m *Memory) CreateQueue(ctx context.Context, queue string) error {
	if err := cmp.Or(ctx.Err(), CheckQueue(queue)); err != nil {
		return fmt.Errorf("create queue %.64s: %w", queue, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queues[queue] == nil {
		m.queues[queue] = &memoryQueue{byID: map[string]*memoryMessage{}}
	}
	return nil
}

// Send sends a message.
func (m *Memory) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	text, err := Encode(body)
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", queue, err)
	}
	return m.SendText(ctx, queue, text, delay)
}

// SendText sends a message with exactly this text, as other programs may. It is not part of Store.
func (m *Memory) SendText(ctx context.Context, queue, text string, delay time.Duration) (string, error) {
	var id string
	err := m.with(ctx, queue, func(q *memoryQueue, now time.Time) error {
		id = q.push(text, now, now.Add(WholeSeconds(delay)))
		return nil
	}, CheckText(text), CheckDelay(delay))
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", queue, err)
	}
	return id, nil
}

// Receive returns visible messages and hides them.
func (m *Memory) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]Message, error) {
	var out []Message
	err := m.with(ctx, queue, func(q *memoryQueue, now time.Time) error {
		until := now.Add(WholeSeconds(visibility))
		for len(out) < limit && len(q.order) > 0 && !q.order[0].visibleAt.After(now) {
			msg := q.order[0]
			msg.DequeueCount++
			q.hide(msg, until)
			out = append(out, msg.Message)
		}
		return nil
	}, CheckReceive(limit, visibility))
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", queue, err)
	}
	return out, nil
}

// Renew hides a received message for longer.
func (m *Memory) Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error) {
	var receipt string
	err := m.with(ctx, queue, func(q *memoryQueue, now time.Time) error {
		msg, err := q.received(id, popReceipt)
		if err != nil {
			return err
		}
		q.hide(msg, now.Add(WholeSeconds(visibility)))
		receipt = msg.PopReceipt
		return nil
	}, CheckReceipt(id, popReceipt), CheckDelay(visibility))
	if err != nil {
		return "", fmt.Errorf("renew %s/%.64s: %w", queue, id, err)
	}
	return receipt, nil
}

// SendHidden sends a message that the sender keeps hidden.
func (m *Memory) SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (Message, error) {
	var sent Message
	text, err := Encode(body)
	if err == nil {
		err = m.with(ctx, queue, func(q *memoryQueue, now time.Time) error {
			msg := q.byID[q.push(text, now, now.Add(WholeSeconds(hidden)))]
			q.hide(msg, msg.visibleAt)
			sent = msg.Message
			return nil
		}, CheckHidden(hidden))
	}
	if err != nil {
		return Message{}, fmt.Errorf("send to %s: %w", queue, err)
	}
	sent.Text = ""
	return sent, nil
}

// Update hides a received message for longer and replaces its body.
func (m *Memory) Update(ctx context.Context, queue, id, popReceipt string, body []byte, visibility time.Duration) (string, error) {
	var receipt string
	text, err := Encode(body)
	if err == nil {
		err = m.with(ctx, queue, func(q *memoryQueue, now time.Time) error {
			msg, err := q.received(id, popReceipt)
			if err != nil {
				return err
			}
			msg.Text = text
			q.hide(msg, now.Add(WholeSeconds(visibility)))
			receipt = msg.PopReceipt
			return nil
		}, CheckReceipt(id, popReceipt), CheckDelay(visibility))
	}
	if err != nil {
		return "", fmt.Errorf("update %s/%.64s: %w", queue, id, err)
	}
	return receipt, nil
}

// Delete removes a received message.
func (m *Memory) Delete(ctx context.Context, queue, id, popReceipt string) error {
	err := m.with(ctx, queue, func(q *memoryQueue, _ time.Time) error {
		msg, err := q.received(id, popReceipt)
		if err != nil {
			return err
		}
		heap.Remove(q, msg.place)
		delete(q.byID, id)
		return nil
	}, CheckReceipt(id, popReceipt))
	if err != nil {
		return fmt.Errorf("delete %s/%.64s: %w", queue, id, err)
	}
	return nil
}

// Peek returns the message that Receive would return first.
func (m *Memory) Peek(ctx context.Context, queue string) (next Message, found bool, err error) {
	err = m.with(ctx, queue, func(q *memoryQueue, now time.Time) error {
		if found = len(q.order) > 0 && !q.order[0].visibleAt.After(now); found {
			next = q.order[0].Message
			next.PopReceipt, next.NextVisibleAt = "", time.Time{}
		}
		return nil
	})
	if err != nil {
		return Message{}, false, fmt.Errorf("peek at %s: %w", queue, err)
	}
	return next, found, nil
}

// Length returns the exact number of messages, hidden ones included.
func (m *Memory) Length(ctx context.Context, queue string) (int, error) {
	var n int
	err := m.with(ctx, queue, func(q *memoryQueue, _ time.Time) error {
		n = len(q.order)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("length of %s: %w", queue, err)
	}
	return n, nil
}

// NextVisible returns when the first message of a queue becomes visible, and false for an empty queue. A test in
// virtual time can wait until then. It is not part of Store.
func (m *Memory) NextVisible(ctx context.Context, queue string) (at time.Time, found bool, err error) {
	err = m.with(ctx, queue, func(q *memoryQueue, _ time.Time) error {
		if found = len(q.order) > 0; found {
			at = q.order[0].visibleAt
		}
		return nil
	})
	if err != nil {
		return time.Time{}, false, fmt.Errorf("next message of %s: %w", queue, err)
	}
	return at, found, nil
}

// with calls do on a queue, under the lock, unless one of the checks failed.
func (m *Memory) with(ctx context.Context, queue string, do func(*memoryQueue, time.Time) error, checks ...error) error {
	if err := cmp.Or(ctx.Err(), CheckQueue(queue), cmp.Or(checks...)); err != nil {
		return err
	}
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queues[queue]
	if q == nil {
		return fmt.Errorf("%w: there is no such queue", ErrNotFound)
	}
	return do(q, now().UTC())
}

func (q *memoryQueue) push(text string, now, visibleAt time.Time) string {
	q.sequence++
	msg := &memoryMessage{
		Message: Message{
			ID:            uuid.NewString(),
			Text:          text,
			InsertedAt:    now.Truncate(time.Second),
			ExpiresAt:     neverExpires,
			NextVisibleAt: visibleAt.Truncate(time.Second),
		},
		visibleAt: visibleAt,
		sequence:  q.sequence,
	}
	q.byID[msg.ID] = msg
	heap.Push(q, msg)
	return msg.ID
}

// hide sets when a message becomes visible, and invalidates its earlier pop receipts.
func (q *memoryQueue) hide(msg *memoryMessage, until time.Time) {
	q.sequence++
	msg.sequence = q.sequence
	msg.PopReceipt = strconv.FormatInt(q.sequence, 10)
	msg.visibleAt = until
	msg.NextVisibleAt = until.Truncate(time.Second)
	heap.Fix(q, msg.place)
}

func (q *memoryQueue) received(id, popReceipt string) (*memoryMessage, error) {
	msg := q.byID[id]
	switch {
	case msg == nil:
		return nil, ErrNotFound
	case msg.PopReceipt != popReceipt:
		return nil, ErrPopReceipt
	}
	return msg, nil
}

// container/heap needs the methods below.

// Len returns the number of messages.
func (q *memoryQueue) Len() int { return len(q.order) }

// Less orders messages by the time at which they become visible, then by arrival.
func (q *memoryQueue) Less(i, j int) bool {
	a, b := q.order[i], q.order[j]
	if !a.visibleAt.Equal(b.visibleAt) {
		return a.visibleAt.Before(b.visibleAt)
	}
	return a.sequence < b.sequence
}

// Swap exchanges two messages.
func (q *memoryQueue) Swap(i, j int) {
	q.order[i], q.order[j] = q.order[j], q.order[i]
	q.order[i].place, q.order[j].place = i, j
}

// Push adds a message at the end.
func (q *memoryQueue) Push(x any) {
	msg := x.(*memoryMessage)
	msg.place = len(q.order)
	q.order = append(q.order, msg)
}

// Pop removes the last message.
func (q *memoryQueue) Pop() any {
	last := len(q.order) - 1
	msg := q.order[last]
	q.order[last] = nil
	q.order = q.order[:last]
	return msg
}
