package health

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/drain"
)

// That an app is drained is told, until it is over.
func TestDrained(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flag drain.Flag
		err  error
		want Status
	}{
		"never":     {want: Pass},
		"now":       {flag: drain.Flag{ID: "1", Until: time.Now().Add(time.Hour)}, want: Warn},
		"over":      {flag: drain.Flag{ID: "1", Until: time.Now().Add(-time.Second)}, want: Pass},
		"ended":     {flag: drain.Flag{Until: time.Now().Add(time.Hour)}, want: Pass},
		"no answer": {err: errors.New("no line"), want: Fail},
	} {
		w := newWorld(t)
		w.config.Now = time.Now
		w.config.Drained = func(context.Context) (drain.Flag, error) { return test.flag, test.err }
		r := w.checks(t).Full(t.Context())
		if m := r.Checks[drainedCheck][0]; m.Status != test.want || r.Status != test.want || (m.Output == "") != (test.want == Pass) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if m, ok := newWorld(t).checks(t).Full(t.Context()).Checks[drainedCheck]; ok {
		t.Errorf("nobody measures: %+v", m)
	}
}
