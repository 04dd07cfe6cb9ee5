package trigger

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// A delivery of the process to itself is treated and recorded as one of a host: it passes the gate, may panic, and is put back.
func TestDirect(t *testing.T) {
	t.Parallel()
	broken := errors.New("it stopped half-way")
	for name, tt := range map[string]struct {
		closed error
		handle func() error
		fails  bool
		back   int
		record string
	}{
		"done":          {nil, func() error { return nil }, false, 0, "outcome=done"},
		"failed":        {nil, func() error { return broken }, true, 0, "outcome=retry"},
		"panicked":      {nil, func() error { panic("oh") }, true, 0, "outcome=panicked"},
		"it is drained": {ErrClosed, nil, false, 1, `outcome="put back"`},
	} {
		var log bytes.Buffer
		back := 0
		q := Queue{Queue: "rotate-queue", Handle: func(context.Context, engine.Delivery) error { return tt.handle() },
			PutBack: func(context.Context, engine.Delivery, time.Duration) error { back++; return nil }}
		run := NewDirect(Config{Gate: &door{closed: tt.closed}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		err := run.Run(t.Context(), "rotate", q, engine.Delivery{Queue: "rotate-queue", ID: "m1", DequeueCount: 1})
		if (err != nil) != tt.fails || back != tt.back {
			t.Errorf("%s: %v, put back %d times", name, err, back)
		}
		for _, want := range []string{tt.record, "direct=true", "function=rotate", "messageId=m1"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %s: %s", name, want, &log)
			}
		}
	}
}
