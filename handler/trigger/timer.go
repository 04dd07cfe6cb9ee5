package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// TimerDelivery is one occurrence of a timer function.
type TimerDelivery struct {
	// Function is the name of the timer function.
	Function string
	// InvocationID is the host's id of this run.
	InvocationID string
	// ScheduledAt is the occurrence that this run stands for, UTC. It is zero when the host keeps no schedule status:
	// for schedules that fire more than once a minute, with useMonitor off, and in manual runs of such timers. In manual runs of
	// others it is the next occurrence, which is still to come.
	ScheduledAt time.Time
	// LastAt is the occurrence before, UTC; zero when there was none or the host keeps no schedule status.
	LastAt time.Time
	// FiredAt is the host's clock when it fired, UTC; zero when the host does not tell.
	FiredAt time.Time
	// IsPastDue says that the occurrence was missed and is being made up for. The host makes up for one only, however
	// many were missed.
	IsPastDue bool
}

func (t Timer) decode(function string, body []byte, invocationID string) (invocation, error) {
	d, err := decodeTimer(t.Parameter, body)
	if err != nil {
		return invocation{}, err
	}
	d.Function, d.InvocationID = function, invocationID
	return invocation{
		about: &about{told: d.describe()},
		run:   func(ctx context.Context) error { return t.Handle(ctx, d) },
		// The next occurrence does what this one leaves out.
		expendable: true,
		ungated:    t.Ungated,
	}, nil
}

// describe is what a log record says about the occurrence.
func (d TimerDelivery) describe() []slog.Attr {
	attrs := []slog.Attr{slog.Bool("pastDue", d.IsPastDue)}
	switch {
	case d.ScheduledAt.IsZero(): // a year 1 in a log looks like a fault
	case d.early():
		attrs = append(attrs, slog.Bool("byHand", true), slog.Time("nextAt", d.ScheduledAt))
	default:
		attrs = append(attrs, slog.Time("scheduledAt", d.ScheduledAt))
	}
	return attrs
}

// timerPrecision is how much before an occurrence the host may fire for it.
const timerPrecision = 2 * time.Second

// early says that the occurrence is still to come: somebody has run the function by hand, and the host names the next one.
func (d TimerDelivery) early() bool {
	return !d.FiredAt.IsZero() && d.ScheduledAt.Sub(d.FiredAt) > timerPrecision
}

// decodeTimer reads the invocation of a timer function.
func decodeTimer(parameter string, body []byte) (TimerDelivery, error) {
	value, meta, err := decodeEnvelope(body, parameter)
	if err != nil {
		return TimerDelivery{}, err
	}
	var timer struct {
		ScheduleStatus struct{ Last, Next json.RawMessage }
		IsPastDue      json.RawMessage
	}
	if err := json.Unmarshal(value, &timer); err != nil {
		return TimerDelivery{}, fmt.Errorf("value Data.%s is not the state of a timer: %w", parameter, err)
	}
	var sys struct{ UtcNow json.RawMessage }
	if json.Unmarshal(meta["sys"], &sys) != nil {
		sys.UtcNow = nil // the run is what counts; the clock is an extra
	}
	return TimerDelivery{
		ScheduledAt: instant(timer.ScheduleStatus.Next),
		LastAt:      instant(timer.ScheduleStatus.Last),
		FiredAt:     instant(sys.UtcNow),
		IsPastDue:   flag(timer.IsPastDue),
	}, nil
}
