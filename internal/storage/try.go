package storage

import "context"

type singleTryKey struct{}

// WithSingleTry returns a context whose storage calls send their request once: who asks whether a service is there wants to know of
// the first answer, and repeats it in its own time.
func WithSingleTry(ctx context.Context) context.Context {
	return context.WithValue(ctx, singleTryKey{}, true)
}

// SingleTry says whether a context's calls send their request once. Stores that repeat requests ask it.
func SingleTry(ctx context.Context) bool { return ctx.Value(singleTryKey{}) != nil }
