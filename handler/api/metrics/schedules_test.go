package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/outbox"
)

// How far schedules are behind is the leader's to show, and asked for once for many scrapes.
func TestSchedulesThatAreBehind(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leads       bool
		err         error
		want, fails bool
	}{"the leader": {leads: true, want: true}, "another": {}, "no answer": {leads: true, err: errors.New("no line"), fails: true}} {
		m, asked := New(), 0
		m.Collect(lease(test.leads))
		m.Events(fixed(outbox.Snapshot{}, nil))
		m.Schedules(Cached(func(context.Context) (schedule.Lateness, error) {
			asked++
			return schedule.Lateness{Late: 3, Failing: 2, Longest: 90 * time.Second}, test.err
		}, 0, nil))
		for range 3 {
			page, err := m.Scrape(t.Context(), nil)
			for _, line := range []string{"roundhouse_schedules_overdue 3", "roundhouse_schedules_failing 2", "roundhouse_schedules_delay_seconds 90"} {
				if got := strings.Contains(string(page.Body), line); got != test.want || (err != nil) != test.fails {
					t.Errorf("%s: %s shown %v, %v", name, line, got, err)
				}
			}
		}
		if asked > 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}
