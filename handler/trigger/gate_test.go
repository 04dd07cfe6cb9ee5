package trigger

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/vibedata/roundhouse/engine"
)

// door is a gate that a test closes.
type door struct {
	closed bool
	left   int
	end    context.CancelCauseFunc
}

func (d *door) Enter(ctx context.Context) (context.Context, func(), bool) {
	if d.closed {
		return ctx, nil, false
	}
	work, cancel := context.WithCancelCause(ctx)
	d.end = cancel
	return work, func() { d.left++; cancel(nil) }, true
}

// A closed gate turns away what comes, and an error of what was inside when it closed is no failed delivery.
func TestGate(t *testing.T) {
	t.Parallel()
	broken := errors.New("it stopped half-way")
	for name, tt := range map[string]struct {
		closed, closes bool
		err            error // of the handler, after the gate has closed, if it does
		expendable     bool
		back           error // of putting it back
		status         int
		ran, putBack   bool
	}{
		"open":                              {ran: true, status: http.StatusOK},
		"open, and it fails":                {ran: true, err: broken, status: http.StatusInternalServerError},
		"closed":                            {closed: true, putBack: true, status: http.StatusOK},
		"closed, and it cannot be put back": {closed: true, putBack: true, back: errors.New("storage is down"), status: http.StatusInternalServerError},
		"closed, and it is expendable":      {closed: true, expendable: true, status: http.StatusOK},
		"it closes meanwhile":               {closes: true, ran: true, status: http.StatusOK},
		"it closes meanwhile, and it fails": {closes: true, ran: true, err: broken, putBack: true, status: http.StatusOK},
	} {
		gate := &door{closed: tt.closed}
		ran, putBack := false, false
		c := queueConfig(func(ctx context.Context, _ engine.Delivery) error {
			ran = true
			if tt.closes {
				gate.end(ErrClosed)
				<-ctx.Done()
			}
			return tt.err
		})
		q := c.Queues["rotate"]
		q.PutBack, q.Expendable = func(ctx context.Context, _ engine.Delivery) error {
			putBack = true
			return errors.Join(tt.back, ctx.Err()) // what is put back has time of its own
		}, tt.expendable
		c.Queues["rotate"], c.Gate = q, gate
		e, _ := mount(t, c)
		answer := invoke(e, "rotate", `{"Data": {"message": "e30="}, "Metadata": {}}`)
		if answer.Code != tt.status || ran != tt.ran || putBack != tt.putBack {
			t.Errorf("%s: status %d, ran %v, put back %v\n%s", name, answer.Code, ran, putBack, answer.Body)
		}
		if want := map[bool]int{true: 1}[ran]; gate.left != want {
			t.Errorf("%s: left %d times", name, gate.left)
		}
	}
}

// A timer waits for its next occurrence, unless it does not ask the gate.
func TestGateOfTimers(t *testing.T) {
	t.Parallel()
	for _, ungated := range []bool{false, true} {
		ran := false
		e, _ := mount(t, Config{Gate: &door{closed: true}, Timers: map[string]Timer{"sweep": {Parameter: "timer", Ungated: ungated, Handle: func(context.Context, TimerDelivery) error {
			ran = true
			return nil
		}}}})
		if answer := invoke(e, "sweep", `{"Data": {"timer": {}}, "Metadata": {}}`); answer.Code != http.StatusOK || ran != ungated {
			t.Errorf("ungated %v: status %d, ran %v", ungated, answer.Code, ran)
		}
	}
}
