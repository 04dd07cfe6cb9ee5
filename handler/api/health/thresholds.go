package health

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/durations"
	"github.com/vibedata/roundhouse/outbox"
)

// Limit holds the values from which a check is degraded, and unhealthy. 0 means the default; a negative limit never
// applies.
type Limit[T int | float64 | time.Duration] struct {
	Degraded, Unhealthy T
}

// Thresholds are the limits of the checks.
type Thresholds struct {
	// Backlog counts pending messages; default 10,000 and 100,000.
	Backlog Limit[int]
	// OldestAge is the age of the oldest pending message; default 5 min and 1 h.
	OldestAge Limit[time.Duration]
	// FailureRatio is the share of attempts that failed, 0 to 1; default 0.25 and 0.9.
	FailureRatio Limit[float64]
	// MinFailedPending is the number of failed messages from which FailureRatio counts, including those that died
	// recently: one failure of one attempt is no outage. Messages that wait for configuration do not count. 0 means
	// 10.
	MinFailedPending int
	// Dead counts dead messages; default 1 and never.
	Dead Limit[int]
	// Stalled counts stalled orchestrations, up to 1,000; default 1 and never.
	Stalled Limit[int]
	// ListLag is the lag of the repair of the list of orchestrations; default 48 h and never.
	ListLag Limit[time.Duration]
	// ScheduleDelay is the longest delay of a schedule; default 10 min and never.
	ScheduleDelay Limit[time.Duration]
	// QueueStuck is the time for which a queue has had the same next message; default 10 min and 20 min, both longer
	// than an invocation may take.
	QueueStuck Limit[time.Duration]
	// ClockSkew is the difference between the clocks of storage and of this machine; default 5 s and never.
	ClockSkew Limit[time.Duration]
	// VersionMix is the time for which processes of an older version work next to those of a newer one; default 1 h
	// and never.
	VersionMix Limit[time.Duration]
}

// Validate returns every invalid limit.
func (t Thresholds) Validate() error {
	t = t.withDefaults()
	errs := []error{t.Backlog.check("Backlog"), t.OldestAge.check("OldestAge"), t.FailureRatio.check("FailureRatio"), t.Dead.check("Dead"), t.Stalled.check("Stalled"), t.ListLag.check("ListLag"), t.ScheduleDelay.check("ScheduleDelay"),
		t.QueueStuck.check("QueueStuck"), t.ClockSkew.check("ClockSkew"), t.VersionMix.check("VersionMix")}
	if !(t.FailureRatio.Degraded <= 1 && t.FailureRatio.Unhealthy <= 1) {
		errs = append(errs, errors.New("FailureRatio: a share is a number of at most 1"))
	}
	if max(t.Stalled.Degraded, t.Stalled.Unhealthy) > maxStalled {
		errs = append(errs, fmt.Errorf("no more than %d are counted for Stalled", maxStalled))
	}
	if t.MinFailedPending < 0 {
		errs = append(errs, errors.New("MinFailedPending must not be negative"))
	}
	return errors.Join(errs...)
}

func (t Thresholds) withDefaults() Thresholds {
	t.Backlog = t.Backlog.or(10_000, 100_000)
	t.OldestAge = t.OldestAge.or(5*time.Minute, time.Hour)
	t.FailureRatio = t.FailureRatio.or(0.25, 0.9)
	t.Dead = t.Dead.or(1, -1)
	t.Stalled = t.Stalled.or(1, -1)
	t.ListLag = t.ListLag.or(48*time.Hour, -1)
	t.ScheduleDelay = t.ScheduleDelay.or(10*time.Minute, -1)
	t.QueueStuck = t.QueueStuck.or(10*time.Minute, 20*time.Minute)
	t.ClockSkew = t.ClockSkew.or(5*time.Second, -1)
	t.VersionMix = t.VersionMix.or(time.Hour, -1)
	t.MinFailedPending = cmp.Or(t.MinFailedPending, 10)
	return t
}

func (l Limit[T]) or(degraded, unhealthy T) Limit[T] {
	return Limit[T]{cmp.Or(l.Degraded, degraded), cmp.Or(l.Unhealthy, unhealthy)}
}

func (l Limit[T]) check(name string) error {
	if l.Degraded > 0 && l.Unhealthy > 0 && l.Degraded > l.Unhealthy {
		return fmt.Errorf("%s: degraded from %v on and unhealthy from %v on: the first must not be above the second", name, l.Degraded, l.Unhealthy)
	}
	return nil
}

// judge compares a value with its limits.
func (l Limit[T]) judge(value T) (Status, string) {
	switch {
	case l.Unhealthy > 0 && value >= l.Unhealthy:
		return Fail, fmt.Sprintf("The limit is %v.", l.Unhealthy)
	case l.Degraded > 0 && value >= l.Degraded:
		return Warn, fmt.Sprintf("The limit is %v.", l.Degraded)
	default:
		return Pass, ""
	}
}

// outbox compares a snapshot with the thresholds.
func (t Thresholds) outbox(s outbox.Snapshot) map[string]Measurement {
	measured := func(value any, unit string, status Status, output string) Measurement {
		return Measurement{ComponentType: "component", ObservedValue: value, ObservedUnit: unit, Status: status, Output: output}
	}
	backlog, backlogText := t.Backlog.judge(s.BacklogSize)
	age, ageText := t.OldestAge.judge(durations.Of(s.OldestAgeSeconds * float64(time.Second)))
	ratio, ratioText := Pass, ""
	if s.FailedPending-s.Misconfigured+s.Died >= t.MinFailedPending { // FailureRatio counts sent messages
		ratio, ratioText = t.FailureRatio.judge(s.FailureRatio)
	}
	dead, deadText := t.Dead.judge(s.Dead)
	if dead != Pass {
		deadText += " Each has a dead letter of the engine outbox: retry it, or skip the event (docs/outbox.md)."
	}
	configured, configuredText := configuration(s)
	return map[string]Measurement{
		"outbox:backlog":       measured(s.BacklogSize, "messages", backlog, backlogText),
		"outbox:oldestAge":     measured(s.OldestAgeSeconds, "s", age, ageText),
		"outbox:failureRatio":  measured(s.FailureRatio, "ratio", ratio, ratioText),
		"outbox:dead":          measured(s.Dead, "messages", dead, deadText),
		"outbox:configuration": measured(s.Misconfigured, "messages", configured, configuredText),
	}
}

// configuration fails while messages wait for a configuration by the operator.
func configuration(s outbox.Snapshot) (Status, string) {
	if s.Misconfigured == 0 {
		return Pass, ""
	}
	return Fail, "They wait until ROUNDHOUSE_OUTBOX has what they need, and then go on by themselves: " + strings.Join(s.Misconfigurations, "; ")
}
