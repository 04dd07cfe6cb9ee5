package hmac_test

import (
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// -golden writes the history that TestGolden replays, for a change of the engine that running orchestrations survive
// by other means.
var writeGolden = flag.Bool("golden", false, "write testdata/golden.json")

const goldenFile = "testdata/golden.json"

// The engine decides as it did when the golden history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	d := hmac.Definition(newWorld(t).steps(t))
	if *writeGolden {
		if err := os.WriteFile(goldenFile, runOnce(t, d), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, read := range map[string]func() ([]byte, error){
		"as written once": func() ([]byte, error) { return os.ReadFile(goldenFile) },
		"as written now":  func() ([]byte, error) { return runOnce(t, d), nil },
	} {
		history, err := read()
		if err == nil {
			err = orchestrator.Replay(d.Orchestrator, history)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// runOnce rotates a key on memory stores and exports the history.
func runOnce(t *testing.T, d engine.Definition) []byte {
	t.Helper()
	rt, err := orchestrator.New(orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Activities: d.Operations,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err == nil {
		err = rt.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(engine.Message{CorrelationID: "golden", InstanceID: instance})
	if err != nil {
		t.Fatal(err)
	}
	out, err := rt.Run(t.Context(), orchestrator.Start{ID: "hmac-golden", Orchestrator: hmac.Engine, Input: input, CorrelationID: "golden"})
	if err != nil || out.Status != orchestrator.Completed {
		t.Fatal(out, err)
	}
	history, err := rt.Export(t.Context(), "hmac-golden")
	if err != nil {
		t.Fatal(err)
	}
	return history
}
