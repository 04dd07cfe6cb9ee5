package redact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/redact/redacttest"
)

type stringer struct{ text string }

func (s stringer) String() string { return s.text }

type valuer struct{ v slog.Value }

func (v valuer) LogValue() slog.Value { return v.v }

type marshaler struct{ text string }

func (m marshaler) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", m.text), nil }
func (m marshaler) Error() string                { return "failed" }

type panics struct{ text string }

func (p *panics) Error() string { panic(p.text) }

// TestLog sends a secret through every place of a record, to both handlers of slog.
func TestLog(t *testing.T) {
	t.Parallel()
	s := redacttest.Secrets()[0]
	secret := s.Secret
	records := map[string]func(*slog.Logger){
		"message":       func(l *slog.Logger) { l.Info("refused " + secret) },
		"string":        func(l *slog.Logger) { l.Info("m", "a", secret) },
		"error":         func(l *slog.Logger) { l.Info("m", "a", fmt.Errorf("post: %w", errors.New(secret))) },
		"joined errors": func(l *slog.Logger) { l.Info("m", "a", errors.Join(errors.New("x"), errors.New(secret))) },
		"stringer":      func(l *slog.Logger) { l.Info("m", "a", stringer{secret}) },
		"struct":        func(l *slog.Logger) { l.Info("m", "a", struct{ Text string }{secret}) },
		"pointer":       func(l *slog.Logger) { l.Info("m", "a", &struct{ Text string }{secret}) },
		"list":          func(l *slog.Logger) { l.Info("m", "a", []string{"x", secret}) },
		"map":           func(l *slog.Logger) { l.Info("m", "a", map[string]any{"x": secret}) },
		"key of a map":  func(l *slog.Logger) { l.Info("m", "a", map[string]int{secret: 1}) },
		"bytes":         func(l *slog.Logger) { l.Info("m", "a", []byte(secret)) },
		"function": func(l *slog.Logger) {
			l.Info("m", "a", struct {
				F    func()
				Text string
			}{func() {}, secret})
		},
		"group":             func(l *slog.Logger) { l.Info("m", slog.Group("g", "x", 1, slog.Group("h", "a", errors.New(secret)))) },
		"value of a valuer": func(l *slog.Logger) { l.Info("m", "a", valuer{slog.StringValue(secret)}) },
		"group of a valuer": func(l *slog.Logger) { l.Info("m", "a", valuer{slog.GroupValue(slog.String("x", secret))}) },
		"marshaler":         func(l *slog.Logger) { l.Info("m", "a", marshaler{secret}) },
		"panic":             func(l *slog.Logger) { l.Info("m", "a", &panics{secret}) },
		"logger's":          func(l *slog.Logger) { l.With("a", errors.New(secret)).Info("m") },
		"logger's group":    func(l *slog.Logger) { l.WithGroup("g").With("a", secret).Info("m", "b", secret) },
		"name":              func(l *slog.Logger) { l.Info("m", "clientSecret", secret[:5]+"!"+secret[5:]) },
		"name and error":    func(l *slog.Logger) { l.Info("m", "password", errors.New(secret[:5]+"!"+secret[5:])) },
		"named number":      func(l *slog.Logger) { l.Info("m", "password", 12345) },
	}
	for name, send := range records {
		for _, kind := range []string{"JSON", "text"} {
			var out bytes.Buffer
			send(slog.New(Log(handlerOf(kind, &out))))
			if got := out.String(); strings.Contains(got, secret[5:]) || strings.Contains(got, "12345") {
				t.Errorf("%s, %s: %s", name, kind, got)
			} else if !strings.Contains(got, mark) && name+kind != "stringerJSON" && name+kind != "marshalertext" { // these do not contain it at all
				t.Errorf("%s, %s: nothing says that something was redacted: %s", name, kind, got)
			}
		}
	}
}

func handlerOf(kind string, out *bytes.Buffer) slog.Handler {
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	if kind == "JSON" {
		return slog.NewJSONHandler(out, options)
	}
	return slog.NewTextHandler(out, options)
}

// TestLogKeepsTheRest compares logs with and without redaction.
func TestLogKeepsTheRest(t *testing.T) {
	t.Parallel()
	var missing *panics
	send := func(l *slog.Logger) {
		l = l.With("engine", "hmac", "at", time.Unix(0, 0).UTC()).WithGroup("g")
		l.Info("delivery", "n", 1, "f", 1.5, "ok", true, "d", time.Second, "err", errors.New("no such vault"), "nil", nil, "none", missing,
			"list", []string{"a", "b"}, "bytes", []byte("abc"), "s", stringer{"x"}, "v", valuer{slog.StringValue("y")}, "tokens", 7, "secretName", "hmac",
			"struct", struct{ A, b int }{1, 2}, slog.Group("h", "k", "v"), slog.Group("empty"))
		l.Debug("not enabled")
	}
	for _, kind := range []string{"JSON", "text"} {
		var want, got bytes.Buffer
		send(slog.New(handlerOf(kind, &want)))
		send(slog.New(Log(handlerOf(kind, &got))))
		if want.String() != got.String() {
			t.Errorf("%s:\n got %s\nwant %s", kind, got.String(), want.String())
		}
	}
}

// TestLogOnce checks that a handler is not wrapped twice.
func TestLogOnce(t *testing.T) {
	t.Parallel()
	h := Log(slog.DiscardHandler)
	if Log(h) != h {
		t.Error("a handler that redacts was wrapped again")
	}
	if Logger(nil) != nil {
		t.Error("no logger became one")
	}
	if l := Logger(slog.New(slog.DiscardHandler)); l.Enabled(context.Background(), slog.LevelError) {
		t.Error("a level is enabled that was not")
	}
}

func BenchmarkLog(b *testing.B) {
	for _, wrapped := range []bool{false, true} {
		b.Run(fmt.Sprintf("redacted=%v", wrapped), func(b *testing.B) {
			var out bytes.Buffer
			h := handlerOf("JSON", &out)
			if wrapped {
				h = Log(h)
			}
			log := slog.New(h)
			err := errors.New("post to api.example.com: 503 Service Unavailable")
			for b.Loop() {
				out.Reset()
				log.Info("delivery", "engine", "hmac", "correlationId", "01JB7Z9G5V4T8K2N6Q3R1X0YWM", "attempt", 3, "reason", err)
			}
		})
	}
}
