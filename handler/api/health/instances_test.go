package health

import (
	"context"
	"errors"
	"testing"
)

// A registry without an instance is told, since engines do nothing then.
func TestInstances(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		some bool
		err  error
		want Status
	}{"some": {some: true, want: Pass}, "none": {want: Warn}, "no answer": {err: errors.New("no line"), want: Fail}} {
		w := newWorld(t)
		w.config.Instances = func(context.Context) (bool, error) { return test.some, test.err }
		r := w.checks(t).Full(t.Context())
		if m := r.Checks[instancesCheck][0]; m.Status != test.want || r.Status != test.want || (m.Output == "") != (test.want == Pass) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if m, ok := newWorld(t).checks(t).Full(t.Context()).Checks[instancesCheck]; ok {
		t.Errorf("nobody asks: %+v", m)
	}
}
