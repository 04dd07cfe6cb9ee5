package orchestrator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// Ids that a name of a blob does not take as they are spill their payloads like others, and can be purged.
func TestIDsThatNamesOfBlobsDoNotTake(t *testing.T) {
	t.Parallel()
	keeps := orchestrator.NewOrchestrator("keeps", func(_ *orchestrator.Context, in string) (string, error) { return in, nil })
	rt, err := orchestrator.New(orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Orchestrators: []orchestrator.AnyOrchestrator{keeps}})
	if err == nil {
		err = rt.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(strings.Repeat("x", 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"hmac-run.", "...", "a\uffffb"} {
		out, err := rt.Run(t.Context(), orchestrator.Start{ID: id, Orchestrator: "keeps", Input: input, CorrelationID: "c"})
		if err != nil || string(out.Output) != string(input) {
			t.Errorf("%q: %d bytes, %v", id, len(out.Output), err)
		}
		if err := rt.Purge(t.Context(), id); err != nil {
			t.Errorf("purge %q: %v", id, err)
		}
	}
}
