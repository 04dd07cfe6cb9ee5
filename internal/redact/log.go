package redact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// Log returns a handler that passes records on to h without secrets: those of the message, of strings, of errors, and
// of any other value that a handler would format, within groups as well. An attribute whose key looks secret is secret
// itself. Records without secrets are passed on unchanged.
func Log(h slog.Handler) slog.Handler {
	if _, done := h.(*logHandler); done {
		return h
	}
	return &logHandler{h}
}

// Logger is slog.New(Log(...)) for an existing logger; nil stays nil.
func Logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return nil
	}
	return slog.New(Log(l.Handler()))
}

type logHandler struct{ next slog.Handler }

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *logHandler) WithGroup(name string) slog.Handler { return &logHandler{h.next.WithGroup(name)} }

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i], _ = cleanAttr(a)
	}
	return &logHandler{h.next.WithAttrs(clean)}
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	message := Text(r.Message)
	changed := message != r.Message
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		clean, other := cleanAttr(a)
		changed = changed || other
		attrs = append(attrs, clean)
		return true
	})
	if !changed {
		return h.next.Handle(ctx, r)
	}
	clean := slog.NewRecord(r.Time, r.Level, message, r.PC)
	clean.AddAttrs(attrs...)
	return h.next.Handle(ctx, clean)
}

// cleanAttr returns an attribute without secrets, and whether it differs.
func cleanAttr(a slog.Attr) (clean slog.Attr, changed bool) {
	v, changed := cleanValue(a.Value)
	if v.Kind() != slog.KindGroup && secretAttr(a.Key, v) {
		return slog.String(a.Key, mark), true
	}
	return slog.Attr{Key: a.Key, Value: v}, changed
}

// secretAttr reports whether the key makes the value a secret, by the rule for members of JSON.
func secretAttr(key string, v slog.Value) bool {
	switch v.Kind() {
	case slog.KindBool, slog.KindDuration, slog.KindTime:
		return false
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64:
		return secretName(key) && endsSecret(plainName(key))
	case slog.KindString:
		return v.String() != "" && secretName(key)
	}
	return v.Any() != nil && secretName(key)
}

func cleanValue(v slog.Value) (clean slog.Value, changed bool) {
	switch v.Kind() {
	case slog.KindString:
		text := Text(v.String())
		return slog.StringValue(text), text != v.String()
	case slog.KindLogValuer:
		clean, _ = cleanValue(v.Resolve())
		return clean, true
	case slog.KindGroup:
		return cleanGroup(v)
	case slog.KindAny:
		return cleanAny(v)
	}
	return v, false
}

func cleanGroup(v slog.Value) (clean slog.Value, changed bool) {
	attrs := make([]slog.Attr, len(v.Group()))
	for i, a := range v.Group() {
		var other bool
		attrs[i], other = cleanAttr(a)
		changed = changed || other
	}
	if !changed {
		return v, false
	}
	return slog.GroupValue(attrs...), true
}

// cleanAny checks a value in the forms of handlers: its JSON, and as fmt prints it. Only a value with a secret in one
// of them is replaced.
func cleanAny(v slog.Value) (replaced slog.Value, changed bool) {
	defer func() {
		if p := recover(); p != nil { // like the handlers of slog
			replaced, changed = slog.StringValue(Text(fmt.Sprintf("!PANIC: %v", p))), true
		}
	}()
	value := v.Any()
	switch value := value.(type) {
	case nil:
		return v, false
	case []byte:
		if text := Text(string(value)); text != string(value) {
			return slog.StringValue(text), true
		}
		return v, false
	}
	printed := fmt.Sprintf("%+v", value)
	text := Text(printed)
	_, own := value.(json.Marshaler)
	if _, ok := value.(error); ok && !own {
		short := fmt.Sprint(value)
		clean := Text(short)
		if text == printed && clean == short {
			return v, false
		}
		return slog.StringValue(clean), true
	}
	doc, err := json.Marshal(value)
	if err != nil {
		return slog.StringValue(text), true // it has no other form
	}
	clean := JSON(doc)
	if text == printed && bytes.Equal(clean, doc) {
		return v, false
	}
	return slog.AnyValue(forms{clean, text}), true
}

// forms replaces a value with a secret, in the forms of handlers.
type forms struct {
	json json.RawMessage
	text string
}

func (f forms) MarshalJSON() ([]byte, error) { return f.json, nil }

func (f forms) MarshalText() ([]byte, error) { return []byte(f.text), nil }

func (f forms) String() string { return f.text }
