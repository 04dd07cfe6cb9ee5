package bulk

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The state of an operation is read back unchanged, with its request.
func FuzzState(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		want := state{
			Request: Request{Action: s.Text(20), Status: s.Text(20), Tenant: s.Text(128), EventType: s.Text(128), Engine: s.Text(128), InstanceID: s.Text(512), ErrorSignature: s.Text(64),
				Orchestrator: s.Text(256), IDPrefix: s.Text(400), From: s.Time(), To: s.Time(), CreatedTo: s.Time(), OlderThanDays: s.Int(36_500), By: s.Text(128),
				RatePerSecond: s.Int(MaxRate), Canary: s.Int(MaxCanary), CanarySeconds: s.Int(MaxCanarySeconds)},
			Progress:     Progress{Slices: s.Int(1 << 20), Done: s.Int(1 << 20), PassedOver: s.Int(1 << 20), Returned: s.Int(50)},
			Continuation: s.Text(2000),
		}
		text, err := json.Marshal(want)
		testenv.OK(t, err)
		var got state
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" || !want.sameAs(got.Request) {
			t.Errorf("it becomes another: %s", diff)
		}
		text, err = json.Marshal(want.shown())
		var seen shown
		if err == nil {
			err = json.Unmarshal(text, &seen)
		}
		if err != nil || cmp.Diff(want.shown(), seen) != "" {
			t.Errorf("shown as %s, %v", text, err)
		}
	})
}
