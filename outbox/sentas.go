package outbox

import "context"

type sentAsKey struct{}

// NoteSent makes the log of a message's attempts tell, as Attempt.SentAs, how its destination learned who sends: a transport
// calls it with the context of Deliver, before that returns. It must not hold secrets.
func NoteSent(ctx context.Context, how string) {
	if at, ok := ctx.Value(sentAsKey{}).(*string); ok {
		*at = how
	}
}

// noted is a context in which NoteSent tells the attempt.
func noted(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, sentAsKey{}, &a.SentAs)
}
