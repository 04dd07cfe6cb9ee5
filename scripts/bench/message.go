package main

import (
	"context"
	"fmt"
	"time"
)

// message is an engine message, or a signal, whose storage transactions are counted, the host's get and delete included.
type message struct {
	name   string
	budget int
	// count handles it on new storage.
	count func(context.Context, *house) (int, error)
}

// messages lists the counted messages, with their budgets.
func messages() []message {
	return []message{
		{"tx/sequence/1", 1 + 5, delivered("sequence", 1)},
		{"tx/sequence/3", 3 + 5, delivered("sequence", 3)},
		{"tx/sequence/5", 5 + 5, delivered("sequence", 5)},
		{"tx/sequence/100", 100 + 5, delivered("sequence", 100)},
		{"tx/local/5", 6, delivered("local", 5)},
		{"tx/fanout/100", 12, delivered("fanout", 100)},
		{"tx/fanout/1000", 60, delivered("fanout", 1000)},
		{"tx/timer/cold", 6, timer},
		{"tx/event/cold", 5, event},
		{"tx/child", 2, child},
		{"tx/child/timer", 14, childTimer},
		{"tx/duplicate", 3, duplicate},
	}
}

// scenario counts once: a count has no noise.
func (m message) scenario() scenario {
	return scenario{
		metrics: []metric{{m.name, "transactions", fmt.Sprintf("budget %d", m.budget)}},
		measure: func(ctx context.Context, _ time.Duration) ([]float64, error) {
			h, err := newHouse(ctx)
			if err != nil {
				return nil, err
			}
			n, err := m.count(ctx, h)
			return []float64{float64(n)}, err
		},
	}
}

// delivered counts a message that works through n activities.
func delivered(shape string, n int) func(context.Context, *house) (int, error) {
	return func(ctx context.Context, h *house) (int, error) { return h.deliver(ctx, plan{shape, n}) }
}

// duplicate counts the second delivery of a message whose work is done.
func duplicate(ctx context.Context, h *house) (int, error) {
	p := plan{"sequence", 3}
	if _, err := h.deliver(ctx, p); err != nil {
		return 0, err
	}
	return h.deliver(ctx, p)
}
