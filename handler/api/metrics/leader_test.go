package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/outbox"
)

// The gauges have every orchestrator of the program, and those of others while they have an orchestration; only the
// leader counts.
func TestOrchestrationsByState(t *testing.T) {
	t.Parallel()
	const stalled, retrying = `roundhouse_orchestrations_stalled{orchestrator="%s"}`, `roundhouse_orchestrations_retrying{orchestrator="%s"}`
	many := map[string]int{"hmac": 3}
	for i := range maxOrchestrators + 5 {
		many[fmt.Sprintf("o%02d", i)] = 2
	}
	for name, test := range map[string]struct {
		leads  bool
		census catalog.StatusCounts
		err    error
		want   map[string]string
		lines  int
	}{
		"nothing": {true, nil, nil, map[string]string{fmt.Sprintf(stalled, "hmac"): "0", fmt.Sprintf(retrying, "hmac"): "0"}, 2},
		"some": {true, catalog.StatusCounts{orchestrator.Stalled: {ByOrchestrator: map[string]int{"hmac": 1, "gone": 2}},
			orchestrator.Retrying: {ByOrchestrator: map[string]int{"hmac": 4}}}, nil,
			map[string]string{fmt.Sprintf(stalled, "hmac"): "1", fmt.Sprintf(stalled, "gone"): "2", fmt.Sprintf(retrying, "hmac"): "4"}, 3},
		"many names": {true, catalog.StatusCounts{orchestrator.Stalled: {ByOrchestrator: many}}, nil,
			map[string]string{fmt.Sprintf(stalled, "hmac"): "3", fmt.Sprintf(stalled, "o00"): "2", fmt.Sprintf(stalled, "other"): "10"}, maxOrchestrators + 3},
		"not the leader": {false, nil, nil, nil, 0},
		"no answer":      {true, nil, errors.New("no line"), map[string]string{"roundhouse_outbox_pending": "7"}, 0},
	} {
		m := New()
		m.Collect(lease(test.leads))
		m.Events(fixed(outbox.Snapshot{BacklogSize: 7}, nil))
		m.Orchestrations(func(context.Context) (catalog.StatusCounts, error) { return test.census, test.err }, []string{"hmac"})
		page, err := m.Scrape(t.Context(), nil)
		if (err != nil) != (test.err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		got, lines := map[string]string{}, 0
		for line := range strings.Lines(string(page.Body)) {
			metric, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(metric, "roundhouse_orchestrations_") {
				lines++
			}
			if _, ok := test.want[metric]; ok {
				got[metric] = value
			}
		}
		if diff := cmp.Diff(test.want, got); len(test.want) > 0 && diff != "" || lines != test.lines {
			t.Errorf("%s: %d lines: %s", name, lines, diff)
		}
	}
}

// Only the leader exports values of storage. A source that does not answer hides no other, and a cached one is read
// once for many scrapes.
func TestSourcesOfTheLeader(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]struct {
		add   func(m *Metrics, asked *int, err error)
		lines []string
	}{
		"damaged": {func(m *Metrics, asked *int, err error) {
			m.Damaged(Cached(func(context.Context) (int, error) { *asked++; return 7, err }, 0, nil))
		}, []string{"\nroundhouse_orchestrations_damaged 7\n"}},
		"waiting": {func(m *Metrics, asked *int, err error) {
			m.Waiting(Cached(func(context.Context) (map[string]int, error) {
				*asked++
				return map[string]int{"spn": 3, "gone": 1}, err
			}, 0, nil), []string{"hmac", "spn"})
		}, []string{`roundhouse_credentials_waiting{engine="hmac"} 0`, `roundhouse_credentials_waiting{engine="spn"} 3`}},
		"repair": {func(m *Metrics, asked *int, err error) {
			m.ListRepair(Cached(func(context.Context) (time.Duration, error) { *asked++; return 90 * time.Second, err }, 0, nil))
		}, []string{"roundhouse_orchestrations_list_repair_lag_seconds 90"}},
		"schedules": {func(m *Metrics, asked *int, err error) {
			late := schedule.Lateness{Late: 3, Failing: 2, Longest: 90 * time.Second}
			m.Schedules(Cached(func(context.Context) (schedule.Lateness, error) { *asked++; return late, err }, 0, nil))
		}, []string{"roundhouse_schedules_overdue 3", "roundhouse_schedules_failing 2", "roundhouse_schedules_delay_seconds 90"}},
	} {
		for situation, tt := range map[string]struct {
			leads       bool
			err, outbox error
			want        bool
		}{
			"the leader":     {leads: true, want: true},
			"another":        {},
			"no answer":      {leads: true, err: errors.New("no line")},
			"without outbox": {leads: true, outbox: errors.New("no line"), want: true},
		} {
			m, asked := New(), 0
			m.Collect(lease(tt.leads))
			m.Events(fixed(outbox.Snapshot{}, tt.outbox))
			m.Orchestrations(func(context.Context) (catalog.StatusCounts, error) { return nil, nil }, []string{"hmac"})
			source.add(m, &asked, tt.err)
			for range 3 {
				page, err := m.Scrape(t.Context(), nil)
				text := string(page.Body)
				if (err != nil) != (tt.err != nil || tt.outbox != nil) || strings.Contains(text, `engine="gone"`) || strings.Contains(text, "orchestrations_stalled{") != tt.leads {
					t.Errorf("%s, %s: %v: %s", name, situation, err, text)
				}
				for _, line := range source.lines {
					testenv.Equal(t, fmt.Sprintf("%s, %s: it has %q", name, situation, line), tt.want, strings.Contains(text, line))
				}
			}
			if asked > 1 {
				t.Errorf("%s, %s: asked %d times", name, situation, asked)
			}
		}
	}
}
