package orchestratortest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/vibedata/roundhouse/orchestrator"
)

// goldenVariable is an environment variable instead of a flag, so that it cannot clash with flags of the test's
// package.
const goldenVariable = "ROUNDHOUSE_GOLDEN"

// Golden replays the history in a file, such as testdata/order.json, and fails when the orchestrator decides
// differently than when the file was written. Such a change would stall orchestrations that run while it is deployed.
// Golden runs no activity. Sub-orchestrations have files and scenarios of their own.
//
// With ROUNDHOUSE_GOLDEN=write in the environment, Golden runs the scenario first and writes the file, with all
// inputs and results. A file that stays unchanged while the code changes protects the orchestrations that the old
// code started, so prefer adding files to rewriting them.
func Golden[In, Out any](t *testing.T, file string, s Scenario[In, Out]) {
	t.Helper()
	if os.Getenv(goldenVariable) == "write" {
		if err := write(file, Run(t, s).history); err != nil {
			t.Fatalf("golden history: %v", err)
		}
	}
	history, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("golden history: %v; run the test once with %s=write", err, goldenVariable)
	}
	if err != nil {
		t.Fatalf("golden history: %v", err)
	}
	if s.Orchestrator == nil {
		t.Fatal("scenario: an orchestrator is required")
	}
	if err := orchestrator.Replay(s.Orchestrator, history); err != nil {
		t.Errorf("golden history %s: %v", file, err)
	}
}

func write(file string, history []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(history, '\n'), 0o644)
}

// replay checks that an orchestration's code repeats the decisions that its history records.
func (w *world) replay(ctx context.Context, out orchestrator.Outcome) error {
	history, err := w.outside.Export(ctx, out.ID)
	if err != nil {
		return err
	}
	for _, o := range w.orchestrators {
		if o.Name() == out.Orchestrator {
			return orchestrator.Replay(o, history)
		}
	}
	return fmt.Errorf("orchestration %s: %q: %w", out.ID, out.Orchestrator, orchestrator.ErrUnknownOrchestrator)
}
