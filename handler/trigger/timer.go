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
	// ScheduledAt is the occurrence of this run, UTC. It is zero when the host keeps no schedule status: for
	// schedules that fire more than once a minute, with useMonitor off, and in manual runs of such timers. In manual
	// runs of other timers it is the next, future occurrence.
	ScheduledAt time.Time
	// LastAt is the previous occurrence, UTC; zero for none, or when the host keeps no schedule status.
	LastAt time.Time
	// FiredAt is the host's clock when it fired, UTC; zero when the host does not report it.
	FiredAt time.Time
	// IsPastDue means that the occurrence was missed and is run late. The host runs only one, for any number of
	// missed ones.
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
		// The next occurrence does the skipped work.
		expendable: true,
		ungated:    t.Ungated,
	}, nil
}

// describe returns the log fields of the occurrence.
func (d TimerDelivery) describe() []slog.Attr {
	attrs := []slog.Attr{slog.Bool("pastDue", d.IsPastDue)}
	switch {
	case d.ScheduledAt.IsZero(): // a year 1 in a log would look like an error
	case d.early():
		attrs = append(attrs, slog.Bool("byHand", true), slog.Time("nextAt", d.ScheduledAt))
	default:
		attrs = append(attrs, slog.Time("scheduledAt", d.ScheduledAt))
	}
	return attrs
}

// timerPrecision is how early the host may fire before an occurrence.
const timerPrecision = 2 * time.Second

// early reports whether the occurrence is in the future: an operator has run the function manually, and the host
// names the next one.
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
		sys.UtcNow = nil // the run matters; the clock is optional
	}
	return TimerDelivery{
		ScheduledAt: instant(timer.ScheduleStatus.Next),
		LastAt:      instant(timer.ScheduleStatus.Last),
		FiredAt:     instant(sys.UtcNow),
		IsPastDue:   flag(timer.IsPastDue),
	}, nil
}
