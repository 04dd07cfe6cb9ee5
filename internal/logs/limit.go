package logs

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Defaults of Limits.
const (
	DefaultMost   = 20
	DefaultPeriod = time.Minute
)

// maxKinds bounds the kinds of lines in a period; further kinds count as one.
const maxKinds = 1000

// Limits configure a Limited.
type Limits struct {
	// Most is the most lines of a kind in a period; 0 means DefaultMost.
	Most int
	// Period starts with the first line of a kind; 0 means DefaultPeriod.
	Period time.Duration
	// Kind are the fields that distinguish kinds of lines, besides their level and message. They must have few values.
	Kind []string
}

// Limited drops warnings and errors of a kind above its limit. Make it with Limit.
type Limited struct {
	next  slog.Handler
	said  []slog.Attr // attributes of the logger that determine the kind
	group bool
	state *state
}

// state is shared by all loggers of one Limited.
type state struct {
	limits Limits
	next   slog.Handler // without the attributes of loggers
	mu     sync.Mutex
	kinds  map[string]*kind
	closed bool
}

// kind counts the lines of a kind in its period.
type kind struct {
	level   slog.Level
	message string
	attrs   []slog.Attr // the fields that determine the kind
	lines   int
	left    int
	closing *time.Timer
}

// Limit returns a handler that passes records on to next within limits.
func Limit(next slog.Handler, limits Limits) *Limited {
	if limits.Most == 0 {
		limits.Most = DefaultMost
	}
	if limits.Period == 0 {
		limits.Period = DefaultPeriod
	}
	return &Limited{next: next, state: &state{limits: limits, next: next, kinds: map[string]*kind{}}}
}

// Enabled reports whether next is.
func (l *Limited) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// WithAttrs returns a handler under the same limits.
func (l *Limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *l
	with.next = l.next.WithAttrs(attrs)
	if !l.group {
		with.said = append(slices.Clone(l.said), l.state.limits.of(attrs)...)
	}
	return &with
}

// WithGroup returns a handler under the same limits.
func (l *Limited) WithGroup(name string) slog.Handler {
	with := *l
	with.next, with.group = l.next.WithGroup(name), l.group || name != ""
	return &with
}

// Handle passes a record on, or counts it.
func (l *Limited) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && !l.state.admit(r, l.kindOf(r)) {
		return nil
	}
	return l.next.Handle(ctx, r)
}

// Close logs the numbers of dropped lines; later lines are not dropped.
func (l *Limited) Close() {
	s := l.state
	s.mu.Lock()
	s.closed = true
	kinds := s.kinds
	s.kinds = map[string]*kind{}
	s.mu.Unlock()
	for _, k := range kinds {
		k.closing.Stop()
		s.tell(k)
	}
}

// of returns the fields that determine a kind.
func (l Limits) of(attrs []slog.Attr) (kind []slog.Attr) {
	for _, a := range attrs {
		if slices.Contains(l.Kind, a.Key) {
			kind = append(kind, a)
		}
	}
	return kind
}

// kindOf returns the fields of a record that determine its kind.
func (l *Limited) kindOf(r slog.Record) []slog.Attr {
	attrs := slices.Clone(l.said)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, l.state.limits.of([]slog.Attr{a})...)
		return true
	})
	return attrs
}

// admit counts a line of a kind, and reports whether it is within the limit.
func (s *state) admit(r slog.Record, attrs []slog.Attr) bool {
	var name strings.Builder
	name.WriteString(r.Level.String() + "\n" + r.Message)
	for _, a := range attrs {
		name.WriteString("\n" + a.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true
	}
	id, message := name.String(), r.Message
	k := s.kinds[id]
	if k == nil && len(s.kinds) >= maxKinds {
		id, message, attrs = "", "of other kinds", nil
		k = s.kinds[id]
	}
	if k == nil {
		k = &kind{level: r.Level, message: message, attrs: attrs}
		s.kinds[id] = k
		k.closing = time.AfterFunc(s.limits.Period, func() { s.end(id, k) })
	}
	if k.lines++; k.lines > s.limits.Most {
		k.left++
		return false
	}
	return true
}

// end ends the period of a kind.
func (s *state) end(id string, k *kind) {
	s.mu.Lock()
	mine := s.kinds[id] == k
	if mine {
		delete(s.kinds, id)
	}
	s.mu.Unlock()
	if mine {
		s.tell(k)
	}
}

// tell logs the number of dropped lines of a kind.
func (s *state) tell(k *kind) {
	if k.left == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), k.level, "lines are left out: there were too many of them", 0)
	r.AddAttrs(slog.String("line", k.message), slog.Int("lines", k.left))
	r.AddAttrs(k.attrs...)
	// A failure of the log cannot be logged.
	_ = s.next.Handle(context.Background(), r)
}
