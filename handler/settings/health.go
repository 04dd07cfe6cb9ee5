package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/api/health"
)

// healthSetting is the prefix of the settings of the health checks.
const healthSetting = "ROUNDHOUSE_HEALTH_"

// Health holds the limits of the health checks. Unset ones have the checks' defaults.
type Health struct {
	Thresholds health.Thresholds
	Timeout    time.Duration
	// RunAge is the age at which an orchestration that neither ends nor continues is reported; a negative one means
	// never.
	RunAge time.Duration
}

// healthFrom reads ROUNDHOUSE_HEALTH_OUTBOX_BACKLOG, _OUTBOX_AGE, _OUTBOX_FAILURE_RATIO, _OUTBOX_DEAD, _STALLED,
// _LIST_LAG, _SCHEDULE_DELAY, _QUEUE_STUCK, _CLOCK_SKEW and _VERSION_MIX, each a pair "degraded,unhealthy" in which
// a negative value means never, and _RUN_AGE and _TIMEOUT.
func healthFrom(r *Reader) (Health, error) {
	var h Health
	options := map[string]func(string) error{
		"OUTBOX_BACKLOG":       pair(&h.Thresholds.Backlog, strconv.Atoi),
		"OUTBOX_AGE":           pair(&h.Thresholds.OldestAge, time.ParseDuration),
		"OUTBOX_FAILURE_RATIO": pair(&h.Thresholds.FailureRatio, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }),
		"OUTBOX_DEAD":          pair(&h.Thresholds.Dead, strconv.Atoi),
		"STALLED":              pair(&h.Thresholds.Stalled, strconv.Atoi),
		"LIST_LAG":             pair(&h.Thresholds.ListLag, time.ParseDuration),
		"SCHEDULE_DELAY":       pair(&h.Thresholds.ScheduleDelay, time.ParseDuration),
		"QUEUE_STUCK":          pair(&h.Thresholds.QueueStuck, time.ParseDuration),
		"CLOCK_SKEW":           pair(&h.Thresholds.ClockSkew, time.ParseDuration),
		"VERSION_MIX":          pair(&h.Thresholds.VersionMix, time.ParseDuration),
		"RUN_AGE": func(s string) (err error) {
			if h.RunAge, err = time.ParseDuration(s); err != nil || h.RunAge == 0 {
				return errors.New("set a Go duration, such as 2160h, or -1s for never")
			}
			return nil
		},
		"TIMEOUT": func(s string) (err error) {
			if h.Timeout, err = time.ParseDuration(s); err != nil || h.Timeout <= 0 {
				return errors.New("set a Go duration of more than 0, such as 3s")
			}
			return nil
		},
	}
	var errs []error
	for name, set := range options {
		if text := r.Text(healthSetting + name); text != "" {
			if err := set(text); err != nil {
				errs = append(errs, fmt.Errorf("%s%s: %w", healthSetting, name, err))
			}
		}
	}
	if len(errs) == 0 {
		if err := h.Thresholds.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s...: %w", healthSetting, err))
		}
	}
	return h, errors.Join(errs...)
}

// pair sets a limit from "degraded,unhealthy".
func pair[T int | float64 | time.Duration](limit *health.Limit[T], parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		degraded, unhealthy, ok := strings.Cut(text, ",")
		var errs [2]error
		limit.Degraded, errs[0] = parse(strings.TrimSpace(degraded))
		limit.Unhealthy, errs[1] = parse(strings.TrimSpace(unhealthy))
		if !ok || errs[0] != nil || errs[1] != nil {
			return errors.New("set two values, such as 10000,100000 or 5m,1h: from the first on it is degraded, from the second on unhealthy")
		}
		return nil
	}
}
