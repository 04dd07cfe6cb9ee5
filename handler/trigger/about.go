package trigger

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// about holds the known fields of an invocation. The handler adds more as it runs, also after a timeout.
type about struct {
	call []slog.Attr // identity of the invocation
	mu   sync.Mutex
	told []slog.Attr
}

type aboutKey struct{}

// begin returns the context of the work, with these fields.
func (a *about) begin(ctx context.Context, call ...slog.Attr) context.Context {
	a.call = call
	return context.WithValue(ctx, aboutKey{}, a)
}

// About returns the known log fields of the invocation of ctx: its id and function, and the identity of its work, if
// its handler has added it. The invocation's own line has the result of the work.
func About(ctx context.Context) []slog.Attr {
	a, ok := ctx.Value(aboutKey{}).(*about)
	if !ok {
		return nil
	}
	ids := slices.DeleteFunc(a.known(), func(attr slog.Attr) bool { return slices.Contains(ends[:], attr.Key) })
	return merge(ids, a.call...)
}

// ends are the fields of the result of the work.
var ends = [...]string{"fate", "status", "error", "durationMs"}

// add adds the handler's fields. Their texts are external.
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

// known returns the fields that are known now.
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
