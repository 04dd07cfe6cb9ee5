package trigger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// door is a gate that a test closes.
type door struct {
	closed error
	left   int
	end    context.CancelCauseFunc
}

func (d *door) Enter(ctx context.Context) (context.Context, func(), error) {
	if d.closed != nil {
		return nil, nil, d.closed
	}
	work, cancel := context.WithCancelCause(ctx)
	d.end = cancel
	return work, func() { d.left++; cancel(nil) }, nil
}

// A closed gate refuses invocations, and an error of work inside when it closed is no failed delivery. The delay of a
// message depends on the reason of the closed gate, and on whether its work had begun.
func TestGate(t *testing.T) {
	t.Parallel()
	broken := errors.New("it stopped half-way")
	const kept = time.Duration(-1) // not requeued
	for name, tt := range map[string]struct {
		closed, closes error
		err            error // of the handler, after the gate has closed, if it does
		expendable     bool
		back           error // of the requeue
		status         int
		ran            bool
		away           time.Duration
	}{
		"open":                                          {ran: true, status: http.StatusOK, away: kept},
		"open, and it fails":                            {ran: true, err: broken, status: http.StatusInternalServerError, away: kept},
		"closed":                                        {closed: ErrClosed, status: http.StatusOK, away: time.Minute},
		"closed, and it cannot be put back":             {closed: ErrClosed, back: errors.New("storage is down"), status: http.StatusInternalServerError, away: time.Minute},
		"closed, and it is expendable":                  {closed: ErrClosed, expendable: true, status: http.StatusOK, away: kept},
		"it closes meanwhile":                           {closes: ErrClosed, ran: true, status: http.StatusOK, away: kept},
		"it closes meanwhile, and it fails":             {closes: ErrClosed, ran: true, err: broken, status: http.StatusOK, away: time.Minute},
		"stopping":                                      {closed: ErrStopping, status: http.StatusOK, away: time.Second},
		"stopping, and it is expendable":                {closed: ErrStopping, expendable: true, status: http.StatusOK, away: time.Second},
		"it stops meanwhile":                            {closes: ErrStopping, ran: true, status: http.StatusOK, away: kept},
		"it stops meanwhile, and it fails":              {closes: ErrStopping, ran: true, err: broken, status: http.StatusOK},
		"it stops meanwhile, and it cannot be put back": {closes: ErrStopping, ran: true, err: broken, back: errors.New("storage is down"), status: http.StatusInternalServerError},
	} {
		gate := &door{closed: tt.closed}
		ran, away := false, kept
		c := queueConfig(func(ctx context.Context, _ engine.Delivery) error {
			ran = true
			if tt.closes != nil {
				gate.end(tt.closes)
				<-ctx.Done()
			}
			return tt.err
		})
		q := c.Queues["rotate"]
		q.PutBack, q.Expendable = func(ctx context.Context, _ engine.Delivery, d time.Duration) error {
			away = d
			return errors.Join(tt.back, ctx.Err()) // a requeue has time of its own
		}, tt.expendable
		c.Queues["rotate"], c.Gate = q, gate
		e, _ := mount(t, c)
		answer := invoke(e, "rotate", `{"Data": {"message": "e30="}, "Metadata": {}}`)
		if answer.Code != tt.status || ran != tt.ran || away != tt.away {
			t.Errorf("%s: status %d, ran %v, put back for %v\n%s", name, answer.Code, ran, away, answer.Body)
		}
		if want := map[bool]int{true: 1}[ran]; gate.left != want {
			t.Errorf("%s: left %d times", name, gate.left)
		}
	}
}

// When the host hangs up, no client receives an answer: running work ends, its message is visible for others
// immediately, and the host's message is deleted, unless the requeue failed.
func TestTheHostHangsUp(t *testing.T) {
	t.Parallel()
	broken := errors.New("storage is down")
	for name, tt := range map[string]struct {
		hangsUp bool
		err     error // of the handler
		back    error // of the requeue
		deleted int
		putBack int
	}{
		"it does not":             {},
		"when all is done":        {hangsUp: true, deleted: 1},
		"half-way":                {hangsUp: true, err: broken, putBack: 1, deleted: 1},
		"nothing can be put back": {hangsUp: true, err: broken, back: broken, putBack: 1},
	} {
		host, hangUp := context.WithCancel(t.Context())
		deleted, putBack := 0, 0
		c := queueConfig(func(ctx context.Context, _ engine.Delivery) error {
			if !tt.hangsUp {
				return ctx.Err()
			}
			hangUp()
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, engine.ErrDrained) || !errors.Is(cause, context.Canceled) {
				t.Errorf("%s: the cause is %v", name, cause)
			}
			return tt.err
		})
		q := c.Queues["rotate"]
		q.PutBack = func(_ context.Context, _ engine.Delivery, away time.Duration) error {
			if putBack++; away != 0 {
				t.Errorf("%s: put back for %v", name, away)
			}
			return tt.back
		}
		q.Acknowledge = func(ctx context.Context, d engine.Delivery) error {
			if deleted++; d.PopReceipt != "receipt" || ctx.Err() != nil {
				t.Errorf("%s: %+v, %v", name, d, ctx.Err())
			}
			return broken // it does not matter
		}
		c.Queues["rotate"], c.Gate = q, &door{}
		e, _ := mount(t, c)
		r := httptest.NewRequestWithContext(host, http.MethodPost, "/rotate", strings.NewReader(`{"Data": {"message": "e30="}, "Metadata": {"PopReceipt": "receipt"}}`))
		e.ServeHTTP(httptest.NewRecorder(), r)
		if deleted != tt.deleted || putBack != tt.putBack {
			t.Errorf("%s: deleted %d times, put back %d times", name, deleted, putBack)
		}
		hangUp()
	}
}

// A waiting invocation is requeued immediately when the program stops, and otherwise with a delay.
func TestWaitingWhenItStops(t *testing.T) {
	t.Parallel()
	for reason, want := range map[error]time.Duration{ErrStopping: 0, errors.New("no storage"): time.Minute} {
		away := time.Hour
		c := queueConfig(func(context.Context, engine.Delivery) error { t.Error("it began"); return nil })
		q := c.Queues["rotate"]
		q.PutBack = func(_ context.Context, _ engine.Delivery, d time.Duration) error { away = d; return nil }
		c.Queues["rotate"], c.Ready = q, func(context.Context) error { return reason }
		e, _ := mount(t, c)
		invoke(e, "rotate", `{"Data": {"message": "e30="}, "Metadata": {}}`)
		testenv.Equal(t, fmt.Sprintf("%v: put back for", reason), want, away)
	}
}

// A timer waits for its next occurrence, unless it is ungated.
func TestGateOfTimers(t *testing.T) {
	t.Parallel()
	for _, ungated := range []bool{false, true} {
		ran := false
		e, _ := mount(t, Config{Gate: &door{closed: ErrClosed}, Timers: map[string]Timer{"sweep": {Parameter: "timer", Ungated: ungated, Handle: func(context.Context, TimerDelivery) error {
			ran = true
			return nil
		}}}})
		if answer := invoke(e, "sweep", `{"Data": {"timer": {}}, "Metadata": {}}`); answer.Code != http.StatusOK || ran != ungated {
			t.Errorf("ungated %v: status %d, ran %v", ungated, answer.Code, ran)
		}
	}
}

// A delivery of the process to itself is handled and recorded like a host's: it passes the gate, may panic, and is
// requeued.
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
