package logs

import (
	"context"
	"log/slog"
	"slices"
)

// Within returns a handler that adds to each record the sources' attributes of its context. The first source with a
// field wins. Groups of a record start after the added attributes.
func Within(next slog.Handler, sources ...func(context.Context) []slog.Attr) slog.Handler {
	return within{next: next, sources: sources}
}

type within struct {
	next    slog.Handler
	sources []func(context.Context) []slog.Attr
	said    []string // keys of the logger
	grouped bool
}

func (h within) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h within) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.next = h.next.WithAttrs(attrs)
	if !h.grouped {
		h.said = slices.Clone(h.said)
		for _, a := range attrs {
			h.said = append(h.said, a.Key)
		}
	}
	return h
}

func (h within) WithGroup(name string) slog.Handler {
	h.next, h.grouped = h.next.WithGroup(name), h.grouped || name != ""
	return h
}

func (h within) Handle(ctx context.Context, r slog.Record) error {
	if h.grouped { // an attribute added now would be part of the group
		return h.next.Handle(ctx, r)
	}
	said := slices.Clone(h.said)
	r.Attrs(func(a slog.Attr) bool {
		said = append(said, a.Key)
		return true
	})
	var added []slog.Attr
	for _, source := range h.sources {
		for _, a := range source(ctx) {
			if !slices.Contains(said, a.Key) {
				said, added = append(said, a.Key), append(added, a)
			}
		}
	}
	if len(added) > 0 {
		r = r.Clone()
		r.AddAttrs(added...)
	}
	return h.next.Handle(ctx, r)
}
