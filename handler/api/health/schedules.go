package health

import (
	"context"
	"fmt"
	"strings"
)

const schedulesCheck = "schedules:delay"

// measureSchedules compares the delay of schedules with its limit.
func (h *Checks) measureSchedules(ctx context.Context) (map[string]Measurement, error) {
	l, err := h.config.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	m := Measurement{ComponentType: "component", ObservedValue: l.Longest.Seconds(), ObservedUnit: "s"}
	if m.Status, m.Output = h.config.Thresholds.ScheduleDelay.judge(l.Longest); m.Status != Pass {
		m.Output = fmt.Sprintf("%d are overdue, of which %d could not be sent: %s. The list of schedules says why; where it gives no error, schedules-timer does not run. %s",
			l.Late, l.Failing, strings.Join(l.Items, ", "), m.Output)
	}
	return map[string]Measurement{schedulesCheck: m}, nil
}
