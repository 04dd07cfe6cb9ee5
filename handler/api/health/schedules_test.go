package health

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/schedule"
)

// Schedules that are overdue are told, with some of their names, and make nothing unhealthy by themselves.
func TestSchedulesThatAreOverdue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		late  schedule.Lateness
		err   error
		limit Limit[time.Duration]
		want  Status
	}{
		"none":         {want: Pass},
		"some minutes": {late: schedule.Lateness{Late: 1, Longest: 9 * time.Minute}, want: Pass},
		"an hour":      {late: schedule.Lateness{Late: 3, Failing: 1, Longest: time.Hour, Items: []string{"hmac/schedule payments"}}, want: Warn},
		"own limit":    {late: schedule.Lateness{Late: 3, Failing: 1, Longest: time.Hour, Items: []string{"hmac/schedule payments"}}, limit: Limit[time.Duration]{time.Minute, time.Hour}, want: Fail},
		"no answer":    {err: errors.New("no line"), want: Fail},
	} {
		w := newWorld(t)
		w.config.Thresholds.ScheduleDelay = test.limit
		w.config.Schedules = func(context.Context) (schedule.Lateness, error) { return test.late, test.err }
		r := w.checks(t).Full(t.Context())
		m := r.Checks[schedulesCheck][0]
		if m.Status != test.want || r.Status != test.want || (m.Output == "") != (test.want == Pass) {
			t.Errorf("%s: %+v", name, r)
		}
		if test.late.Items != nil && !strings.Contains(m.Output, "3 are overdue, of which 1 could not be sent: hmac/schedule payments.") {
			t.Errorf("%s: %s", name, m.Output)
		}
	}
	if m, ok := newWorld(t).checks(t).Full(t.Context()).Checks[schedulesCheck]; ok {
		t.Errorf("nobody measures: %+v", m)
	}
}
