package trigger

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// about is what is known of the work of an invocation. The handler tells more as it goes, also after it has been given up.
type about struct {
	call []slog.Attr // which invocation it is
	mu   sync.Mutex
	told []slog.Attr
}

type aboutKey struct{}

// begin returns the context of the work, which knows what it is about.
func (a *about) begin(ctx context.Context, call ...slog.Attr) context.Context {
	a.call = call
	return context.WithValue(ctx, aboutKey{}, a)
}

// About is what is known of the invocation that ctx belongs to, as fields of the log: its id and function, and whose work it is, as far as
// its handler has told that. How the work ended is the invocation's own line's.
func About(ctx context.Context) []slog.Attr {
	a, ok := ctx.Value(aboutKey{}).(*about)
	if !ok {
		return nil
	}
	ids := slices.DeleteFunc(a.known(), func(attr slog.Attr) bool { return slices.Contains(ends[:], attr.Key) })
	return merge(ids, a.call...)
}

// ends are the fields that say how work ended.
var ends = [...]string{"fate", "status", "error", "durationMs"}

// add notes what the handler tells. Its texts come from outside.
func (a *about) add(attrs ...slog.Attr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, attr := range attrs {
		if attr.Value.Kind() == slog.KindString {
			attr.Value = slog.StringValue(printable(attr.Value.String()))
		}
		a.told = merge(a.told, attr)
	}
}

// known is what is known by now.
func (a *about) known() []slog.Attr {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.told)
}

// merge adds fields to others, in the place of those with the same key.
func merge(attrs []slog.Attr, more ...slog.Attr) []slog.Attr {
	for _, m := range more {
		if i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == m.Key }); i >= 0 {
			attrs[i] = m
			continue
		}
		attrs = append(attrs, m)
	}
	return attrs
}
