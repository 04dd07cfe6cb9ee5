package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/outbox"
)

// The lag of the repair is the leader's to show, whatever else storage does not tell; it is asked for once for many.
func TestLagOfTheRepair(t *testing.T) {
	t.Parallel()
	const line = "roundhouse_orchestrations_list_repair_lag_seconds 90"
	for name, test := range map[string]struct {
		leads       bool
		err, outbox error
		want, fails bool
	}{
		"the leader":     {leads: true, want: true},
		"another":        {},
		"no answer":      {leads: true, err: errors.New("no line"), fails: true},
		"without outbox": {leads: true, outbox: errors.New("no line"), want: true, fails: true},
	} {
		m, asked := New(), 0
		m.Collect(lease(test.leads))
		m.Events(fixed(outbox.Snapshot{}, test.outbox))
		m.ListRepair(Cached(func(context.Context) (time.Duration, error) {
			asked++
			return 90 * time.Second, test.err
		}, 0, nil))
		for range 3 {
			page, err := m.Scrape(t.Context(), nil)
			if got := strings.Contains(string(page.Body), line); got != test.want || (err != nil) != test.fails {
				t.Errorf("%s: shown %v, %v", name, got, err)
			}
		}
		if asked > 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}
