package engine_test

import (
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
)

// RunID returns the id that the pipeline uses.
func TestRunID(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	hall := h.Restart(nil)
	w := newWorld(t)
	plain := w.Restart(nil)
	for _, tt := range []struct {
		p    *enginetest.Process
		name string
		m    engine.Message
		want string
	}{
		{hall, "door", engine.Message{CorrelationID: "c1", InstanceID: "i1", TenantID: "acme"}, "door-i1"},
		{hall, "door", engine.Message{CorrelationID: "c1"}, ""},
		{plain, "turntable", engine.Message{CorrelationID: "c1", InstanceID: "i1"}, "turntable-c1"},
		{plain, "of another context", engine.Message{CorrelationID: "c1"}, ""},
	} {
		if got := tt.p.RunID(tt.name, tt.m); got != tt.want {
			t.Errorf("%s %+v: %q, want %q", tt.name, tt.m, got, tt.want)
		}
	}
}
