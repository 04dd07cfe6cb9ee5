package outbox

import "context"

type sentAsKey struct{}

// NoteSent records in the log of a message's attempts, as Attempt.SentAs, how its destination identifies the sender. A
// transport calls it with the context of Deliver, before that returns. how must not hold secrets.
func NoteSent(ctx context.Context, how string) {
	if at, ok := ctx.Value(sentAsKey{}).(*string); ok {
		*at = how
	}
}

// noted returns a context in which NoteSent updates the attempt.
func noted(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, sentAsKey{}, &a.SentAs)
}
