package logs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/logs"
	"github.com/vibedata/roundhouse/internal/logs/logstest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

type idsKey struct{}

// ids is a source that returns a context's value.
func ids(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(idsKey{}).([]slog.Attr)
	return attrs
}

func with(attrs ...slog.Attr) context.Context {
	return context.WithValue(context.Background(), idsKey{}, attrs)
}

// records reads lines, without their time.
func records(t *testing.T, log *logstest.Output) (all []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(log.Bytes()) {
		var r map[string]any
		testenv.OK(t, json.Unmarshal(line, &r))
		delete(r, "time")
		all = append(all, r)
	}
	return all
}

// The line's attributes win, then the logger's, then the context's; of sources the first.
func TestWithin(t *testing.T) {
	t.Parallel()
	var out logstest.Output
	other := func(context.Context) []slog.Attr {
		return []slog.Attr{slog.String("b", "other"), slog.String("d", "other")}
	}
	log := slog.New(logs.Within(slog.NewJSONHandler(&out, nil), ids, other)).With("c", "logger")
	ctx := with(slog.String("a", "context"), slog.String("b", "context"), slog.String("c", "context"))
	log.InfoContext(ctx, "one", "a", "line")
	log.Info("two")
	log.WithGroup("g").InfoContext(ctx, "three", "a", 1)
	want := []map[string]any{
		{"level": "INFO", "msg": "one", "a": "line", "b": "context", "c": "logger", "d": "other"},
		{"level": "INFO", "msg": "two", "b": "other", "c": "logger", "d": "other"},
		{"level": "INFO", "msg": "three", "c": "logger", "g": map[string]any{"a": 1.0}},
	}
	testenv.Equal(t, "", want, records(t, &out))
	for line := range strings.Lines(out.String()) {
		if strings.Count(line, `"c"`) != 1 || strings.Count(line, `"b"`) > 1 {
			t.Errorf("a field is there twice: %s", line)
		}
	}
}

// Level, message and the fields of Kind distinguish kinds. Dropped lines are counted at the end of their period.
func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out logstest.Output
		limited := logs.Limit(slog.NewJSONHandler(&out, nil), logs.Limits{Most: 2, Kind: []string{"function"}})
		log := slog.New(limited)
		a, b := log.With("function", "a", "id", 7), log.With("function", "b")
		for i := range 5 {
			a.Warn("failed", "i", i)
			b.Warn("failed", "i", i)
			log.Info("fine")
		}
		a.Error("failed")
		count := func(what string) int { return strings.Count(out.String(), what) }
		if count(`"function":"a"`) != 3 || count(`"function":"b"`) != 2 || count("fine") != 5 {
			t.Errorf("not as many as the limits say:\n%s", &out)
		}
		out.Reset()
		time.Sleep(logs.DefaultPeriod + time.Second)
		synctest.Wait()
		want := map[string]int{`"level":"WARN","msg":"lines are left out: there were too many of them","line":"failed","lines":3,"function":"a"`: 1,
			`"line":"failed","lines":3,"function":"b"`: 1, "\n": 2}
		for what, n := range want {
			if count(what) != n {
				t.Errorf("%q is there %d times, want %d:\n%s", what, count(what), n, &out)
			}
		}
		out.Reset()
		for range 3 {
			a.Warn("failed")
		}
		limited.Close()
		for range 3 {
			a.Warn("failed")
		}
		if count(`"msg":"failed"`) != 2+3 || count(`"lines":1`) != 1 {
			t.Errorf("a new period, an end, and then no limits:\n%s", &out)
		}
	})
}

// For any number of kinds, each line is written or counted, and the memory is bounded.
func TestLimitOfKinds(t *testing.T) {
	t.Parallel()
	var out logstest.Output
	limited := logs.Limit(slog.NewJSONHandler(&out, nil), logs.Limits{Most: 1, Kind: []string{"function"}})
	log := slog.New(limited)
	const n = 3000
	for i := range n {
		log.Warn("failed", "function", fmt.Sprint(i), "error", errors.New("no"))
	}
	limited.Close()
	written, left := 0, 0
	for _, r := range records(t, &out) {
		if r["msg"] == "failed" {
			written++
			continue
		}
		left += int(r["lines"].(float64))
	}
	if written+left != n || written > n/2 {
		t.Errorf("%d were written and %d left out, of %d", written, left, n)
	}
}
