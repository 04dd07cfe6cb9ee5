package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Ids that need escapes in blob names spill their payloads like others, and can be purged.
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

// A name of MaxName bytes runs. New rejects longer ones, and Start and Run reject such correlation ids, with the
// field, the limit and the remedy.
func TestLongNames(t *testing.T) {
	t.Parallel()
	build := func(name, activity, version string) (*orchestrator.Runtime, error) {
		step := orchestrator.NewActivity(activity, func(_ context.Context, n int) (int, error) { return n, nil })
		o := orchestrator.NewOrchestrator(name, func(ctx *orchestrator.Context, n int) (int, error) { return step.Call(ctx, n).Await() },
			orchestrator.WithVersion(version))
		return orchestrator.New(orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Queues: queues.NewMemory(),
			Orchestrators: []orchestrator.AnyOrchestrator{o}, Activities: []orchestrator.AnyActivity{step}})
	}
	longest := strings.Repeat("é", orchestrator.MaxName/2)
	tooLong, limit := longest+"x", fmt.Sprint(orchestrator.MaxName)
	for name, tt := range map[string]struct {
		orchestrator, activity, version string
		want                            []string
	}{
		"orchestrator":  {tooLong, "a", "", []string{"name", "orchestrator", limit, "shorten"}},
		"activity":      {"o", tooLong, "", []string{"name", "activity", limit, "shorten"}},
		"version":       {"o", "a", tooLong, []string{"version", limit, "shorten"}},
		"not UTF-8":     {"o", "\xff", "", []string{"activity", "UTF-8"}},
		"version bytes": {"o", "a", "\xff", []string{"version", "UTF-8"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := build(tt.orchestrator, tt.activity, tt.version)
			contains(t, err, tt.want...)
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	rt, err := build(longest, longest, longest)
	if err == nil {
		err = rt.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := orchestrator.Start{ID: "a", Orchestrator: longest, Input: json.RawMessage("7"), CorrelationID: longest}
	if out, err := rt.Run(t.Context(), s); err != nil || string(out.Output) != "7" {
		t.Errorf("names of the longest kind: %s, %v", out.Output, err)
	}
	for _, id := range []string{tooLong, "\xff"} {
		s.ID, s.CorrelationID = "b", id
		_, err := rt.Run(t.Context(), s)
		contains(t, err, "correlation id of orchestration b", limit, "UTF-8", "use a shorter one")
		_, err = rt.Start(t.Context(), s)
		contains(t, err, "correlation id of orchestration b", limit, "UTF-8", "use a shorter one")
	}
}

// contains checks that an error has these texts.
func contains(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want %q in it", err, w)
		}
	}
}
