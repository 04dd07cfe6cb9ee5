package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/outbox"
)

// The gauges have every orchestrator of the program, and those of others while they have one; only the leader counts.
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

// Either of what storage is asked for is shown without the other.
func TestCensusWithoutTheOutbox(t *testing.T) {
	t.Parallel()
	m := New()
	m.Collect(lease(true))
	m.Events(fixed(outbox.Snapshot{}, errors.New("no line")))
	m.Orchestrations(func(context.Context) (catalog.StatusCounts, error) { return nil, nil }, []string{"hmac"})
	page, err := m.Scrape(t.Context(), nil)
	if err == nil || !strings.Contains(string(page.Body), "roundhouse_orchestrations_stalled") {
		t.Errorf("%v: %s", err, page.Body)
	}
}

// Only the leader counts what is damaged, and the rest is shown when that cannot be counted.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leads bool
		err   error
		want  string
	}{"the leader": {true, nil, "7"}, "another": {false, nil, ""}, "no answer": {true, errors.New("no line"), ""}} {
		m := New()
		m.Collect(lease(test.leads))
		m.Events(fixed(outbox.Snapshot{}, nil))
		m.Orchestrations(func(context.Context) (catalog.StatusCounts, error) { return nil, nil }, []string{"hmac"})
		m.Damaged(func(context.Context) (int, error) { return 7, test.err })
		page, err := m.Scrape(t.Context(), nil)
		if (err != nil) != (test.err != nil) || strings.Contains(string(page.Body), "orchestrations_stalled{") != test.leads {
			t.Errorf("%s: %v: %s", name, err, page.Body)
		}
		if got := strings.Contains(string(page.Body), "\nroundhouse_orchestrations_damaged 7\n"); got != (test.want != "") {
			t.Errorf("%s: %s", name, page.Body)
		}
	}
}
