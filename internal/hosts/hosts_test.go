package hosts

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// The hosts run with the deployed host.json.
func TestHostFile(t *testing.T) {
	t.Parallel()
	deployed := testenv.Must(os.ReadFile("../../host.json"))(t)
	if diff := cmp.Diff(string(deployed), string(hostFile)); diff != "" {
		t.Errorf("host.json (-deployed +here):\n%s", diff)
	}
}

func TestOrchestrationOf(t *testing.T) {
	t.Parallel()
	signal := `{"signalId":"s","workflowInstanceId":"work-a","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"go"}}`
	for name, tt := range map[string]struct {
		n    note
		want string
	}{
		"a message of the engine": {note{Queue: Queue, Body: []byte(`{"correlationId":"a","engine":"work"}`)}, "work-a"},
		"no message":              {note{Queue: Queue, Body: []byte(`[]`)}, ""},
		"a signal":                {note{Queue: "orchestration-signals", Body: []byte(signal)}, "work-a"},
		"no signal":               {note{Queue: "orchestration-schedules", Body: []byte(`{"node":"a"}`)}, ""},
	} {
		if got := orchestrationOf(tt.n); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A settled message is not in flight, whether it was deleted or returned.
func TestHeld(t *testing.T) {
	t.Parallel()
	h := &Host{held: map[string]note{}}
	for id, kind := range map[string]string{"a": "", "b": noteDeleted, "c": noteReleased} {
		h.hear(note{Kind: noteReceived, Queue: Queue, Message: id, Body: []byte(`{"correlationId":"` + id + `"}`)})
		h.hear(note{Kind: kind, Message: id})
	}
	testenv.Equal(t, "held", []string{"work-a"}, h.Held())
}

func TestProgress(t *testing.T) {
	t.Parallel()
	before := Progress{Node: "a", Version: 3, Status: "Running"}
	for name, tt := range map[string]struct {
		now                  Progress
		furtherOn, elsewhere bool
	}{
		"as it was":            {before, false, false},
		"by the same process":  {Progress{Node: "a", Version: 4, Status: "Running"}, true, false},
		"by another process":   {Progress{Node: "b", Version: 4, Status: "Running"}, true, true},
		"ended where it began": {Progress{Node: "a", Version: 4, Status: "Completed"}, true, true},
	} {
		if further, elsewhere := FurtherOn(before, tt.now), Elsewhere(before, tt.now); further != tt.furtherOn || elsewhere != tt.elsewhere {
			t.Errorf("%s: further on %v, elsewhere %v", name, further, elsewhere)
		}
	}
}
