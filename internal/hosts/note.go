package hosts

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// Kinds of notes.
const (
	noteReady    = "ready"
	noteReceived = "received"
	noteDeleted  = "deleted"
	noteReleased = "released"
)

// note is a line that a host writes.
type note struct {
	Kind string `json:"kind"`
	// URL is the address of the host.
	URL string `json:"url,omitempty"`
	// Queue, Message and Body are those of the received or settled message.
	Queue   string `json:"queue,omitempty"`
	Message string `json:"message,omitempty"`
	Body    []byte `json:"body,omitempty"`
}

// teller writes notes, one a line.
type teller struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newTeller(out io.Writer) *teller { return &teller{out: json.NewEncoder(out)} }

func (t *teller) tell(n note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.out.Encode(n) // without a reader the host ends anyway
}

// watched wraps the host's queues and reports received and settled messages.
type watched struct {
	queues.Store
	out *teller
}

// Receive reports the messages before the host has them.
func (w watched) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	all, err := w.Store.Receive(ctx, queue, limit, visibility)
	for _, m := range all {
		w.out.tell(note{Kind: noteReceived, Queue: queue, Message: m.ID, Body: queues.Decode(m.Text)})
	}
	return all, err
}

// Delete reports a deleted message.
func (w watched) Delete(ctx context.Context, queue, id, popReceipt string) error {
	err := w.Store.Delete(ctx, queue, id, popReceipt)
	if err == nil {
		w.out.tell(note{Kind: noteDeleted, Queue: queue, Message: id})
	}
	return err
}

// Renew reports when the host has returned the message: it hides a message in work for longer than any pause.
func (w watched) Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error) {
	renewed, err := w.Store.Renew(ctx, queue, id, popReceipt, visibility)
	if err == nil && visibility < longestPause {
		w.out.tell(note{Kind: noteReleased, Queue: queue, Message: id})
	}
	return renewed, err
}

// longestPause is above any visibilityTimeout, and below the lease.
const longestPause = 5 * time.Minute
