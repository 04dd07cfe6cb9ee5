package health

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A repair of the list that does not come to its end is told, and makes nothing unhealthy by itself.
func TestLagOfTheListsRepair(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lag   time.Duration
		err   error
		limit Limit[time.Duration]
		want  Status
	}{
		"an hour":   {lag: time.Hour, want: Pass},
		"two days":  {lag: 48 * time.Hour, want: Warn},
		"a year":    {lag: 365 * 24 * time.Hour, want: Warn},
		"own limit": {lag: time.Hour, limit: Limit[time.Duration]{time.Minute, time.Hour}, want: Fail},
		"no answer": {err: errors.New("no line"), want: Fail},
	} {
		w := newWorld(t)
		w.config.Thresholds.ListLag = test.limit
		w.config.ListLag = func(context.Context) (time.Duration, error) { return test.lag, test.err }
		r := w.checks(t).Full(t.Context())
		if m := r.Checks[listLagCheck][0]; m.Status != test.want || r.Status != test.want || (m.Output == "") != (test.want == Pass) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if m, ok := newWorld(t).checks(t).Full(t.Context()).Checks[listLagCheck]; ok {
		t.Errorf("nobody measures: %+v", m)
	}
}
