package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/orchestrator/catalog"
)

// From the first orchestration on whose code cannot go on, somebody is told, and which orchestrators they are of.
func TestStalledOrchestrations(t *testing.T) {
	t.Parallel()
	many := map[string]int{}
	for i := range 30 {
		many[fmt.Sprintf("o%02d", i)] = 1
	}
	for name, test := range map[string]struct {
		tally  catalog.StatusCount
		limit  Limit[int]
		want   Status
		output []string
		not    string
	}{
		"none":      {catalog.StatusCount{}, Limit[int]{}, Pass, nil, "stalled"},
		"one":       {catalog.StatusCount{ByOrchestrator: map[string]int{"hmac": 1}}, Limit[int]{}, Warn, []string{"1 of hmac", "docs/failures.md"}, "more"},
		"many":      {catalog.StatusCount{ByOrchestrator: many, More: true}, Limit[int]{}, Warn, []string{"1 of o00, ", "others, and more"}, "o10"},
		"below":     {catalog.StatusCount{ByOrchestrator: map[string]int{"hmac": 1}}, Limit[int]{2, 3}, Pass, nil, "hmac"},
		"unhealthy": {catalog.StatusCount{ByOrchestrator: map[string]int{"hmac": 2, "tls": 1}}, Limit[int]{2, 3}, Fail, []string{"2 of hmac, 1 of tls", "limit is 3"}, "more"},
		"never":     {catalog.StatusCount{ByOrchestrator: many, More: true}, Limit[int]{-1, -1}, Pass, nil, "o"},
	} {
		w := newWorld(t)
		w.stalled, w.config.Thresholds.Stalled = test.tally, test.limit
		r := w.checks(t).Full(t.Context())
		m := r.Checks[stalledCheck][0]
		if r.Status != test.want || m.Status != test.want || m.ObservedValue != test.tally.Total() || strings.Contains(m.Output, test.not) {
			t.Errorf("%s: %+v", name, r)
		}
		for _, text := range test.output {
			if !strings.Contains(m.Output, text) {
				t.Errorf("%s: no %q in %q", name, text, m.Output)
			}
		}
	}
	w := newWorld(t)
	w.err = errors.New("AccountKey=c2VjcmV0")
	if m := w.checks(t).Full(t.Context()).Checks[stalledCheck][0]; m.Status != Fail || strings.Contains(m.Output, "c2VjcmV0") {
		t.Errorf("%+v", m)
	}
	w.config.Stalled = nil
	if m, ok := w.checks(t).Full(t.Context()).Checks[stalledCheck]; ok {
		t.Errorf("nobody counts: %+v", m)
	}
}

// From the first orchestration on that cannot be read, somebody is told, and where it says which.
func TestDamagedOrchestrations(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]Status{0: Pass, 1: Warn, 1000: Warn} {
		w := newWorld(t)
		w.config.Damaged = func(context.Context) (int, error) { return n, nil }
		r := w.checks(t).Full(t.Context())
		if m := r.Checks[damagedCheck][0]; r.Status != want || m.Status != want || m.ObservedValue != n || strings.Contains(m.Output, "docs/recovery.md") != (n > 0) {
			t.Errorf("%d: %+v", n, r)
		}
	}
	w := newWorld(t)
	w.config.Damaged = func(context.Context) (int, error) { return 0, errors.New("AccountKey=c2VjcmV0") }
	if m := w.checks(t).Full(t.Context()).Checks[damagedCheck][0]; m.Status != Fail || strings.Contains(m.Output, "c2VjcmV0") {
		t.Errorf("%+v", m)
	}
}
