package storage

import "context"

type singleTryKey struct{}

// WithSingleTry returns a context whose storage calls send their request once: a health check needs the first answer,
// and repeats it at its own pace.
func WithSingleTry(ctx context.Context) context.Context {
	return context.WithValue(ctx, singleTryKey{}, true)
}

// SingleTry reports whether a context's calls send their request once. Stores that repeat requests check it.
func SingleTry(ctx context.Context) bool { return ctx.Value(singleTryKey{}) != nil }
