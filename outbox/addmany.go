package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

// addManyChunk is the number of messages that one transaction adds: each has two rows, and one more operation keeps the
// tenant open.
const addManyChunk = 49

// AddMany adds messages of one tenant, each as Add does, up to 49 in one transaction. Messages with an order key are
// added one after another, in the given order. The results are in the order of the messages. After an error, some of
// the messages may have been added. Add all of them again with the same keys, which is why every message needs a Key
// here.
func (w *Writer) AddMany(ctx context.Context, tenantID string, messages []Message) ([]Added, error) {
	prepared := make([]*message, len(messages))
	for i, m := range messages {
		if m.TenantID != "" && m.TenantID != tenantID {
			return nil, fmt.Errorf("add messages: message %d: %w: it is of another tenant", i, ErrInvalid)
		}
		if m.Key == uuid.Nil {
			return nil, fmt.Errorf("add messages: message %d: %w: it has no key", i, ErrInvalid)
		}
		m.TenantID = tenantID
		msg, err := w.prepare(m)
		if err != nil {
			return nil, fmt.Errorf("add messages: message %d: %w", i, err)
		}
		prepared[i] = msg
	}
	if len(messages) == 0 {
		return nil, nil
	}
	out := make([]Added, len(messages))
	single, tickets := make([]bool, len(messages)), make([]*ticket, len(messages))
	for _, chunk := range chunked(prepared, single) {
		for _, i := range chunk {
			tickets[i] = w.direct.reserve(prepared[i])
		}
		if w.addChunk(ctx, prepared, tickets, chunk) {
			for _, i := range chunk {
				out[i] = Added{ID: prepared[i].ID, Key: prepared[i].IdempotencyKey}
				w.handOver(ctx, prepared[i], tickets[i])
			}
			continue
		}
		for _, i := range chunk {
			tickets[i].drop()
			single[i] = true
		}
	}
	for i, alone := range single {
		if !alone {
			continue
		}
		added, err := w.add(ctx, prepared[i])
		if err != nil {
			return nil, fmt.Errorf("add message %s of tenant %s: %w", prepared[i].ID, partition(tenantID), err)
		}
		out[i] = added
	}
	return out, nil
}

// chunked returns the indexes of messages that may be added together, and marks the others in single: messages with an
// order key or a large payload, and messages whose key occurs earlier in the list.
func chunked(messages []*message, single []bool) [][]int {
	var chunks [][]int
	var open []int
	seen := map[uuid.UUID]bool{}
	size := 0
	for i, msg := range messages {
		if msg.OrderKey != "" || len(msg.Payload) > spillPayload || seen[msg.IdempotencyKey] {
			single[i] = true
			continue
		}
		seen[msg.IdempotencyKey] = true
		if n := msg.requestSize(); len(open) == addManyChunk || size+n > maxRequest && len(open) > 0 {
			chunks, open, size = append(chunks, open), nil, 0
		}
		open, size = append(open, i), size+msg.requestSize()
	}
	if len(open) > 0 {
		chunks = append(chunks, open)
	}
	return chunks
}

// addChunk adds messages in one transaction. On any error it returns false, and each message is added separately, which
// detects duplicates and a transaction that was applied although its answer was lost.
func (w *Writer) addChunk(ctx context.Context, messages []*message, tickets []*ticket, chunk []int) bool {
	ops := make([]tables.Op, 0, 2*len(chunk))
	for _, i := range chunk {
		more, err := w.o.enqueue(ctx, messages[i], tickets[i], true)
		if err != nil {
			return false
		}
		ops = append(append(ops, tables.Insert(messages[i].entity())), more...)
	}
	return w.o.applyOpen(ctx, messages[chunk[0]].TenantID, ops...) == nil
}
