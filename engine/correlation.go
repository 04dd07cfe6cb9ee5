package engine

import "context"

type correlatedKey struct{}

// WithCorrelated is a context for the Handle methods of a Pipeline, which tells told the correlation id of the work as soon as it
// is known: of a message of the runtime's own queues the id of the orchestration, of one that cannot be decoded nothing.
func WithCorrelated(ctx context.Context, told func(correlationID string)) context.Context {
	return context.WithValue(ctx, correlatedKey{}, told)
}

// correlate tells who asked which work is done.
func correlate(ctx context.Context, id string) {
	if told, ok := ctx.Value(correlatedKey{}).(func(string)); ok {
		told(id)
	}
}
