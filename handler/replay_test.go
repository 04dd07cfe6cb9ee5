package handler

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// patientApp is an app whose engine waits a day; change makes another version of its code.
func patientApp(change string) App {
	return App{Engines: func(*Platform) ([]engine.Definition, error) {
		before := orchestrator.NewActivity("before"+change, nothing)
		run := func(ctx *orchestrator.Context, _ engine.Request[struct{}]) (struct{}, error) {
			if _, err := before.Call(ctx, struct{}{}).Await(); err != nil {
				return struct{}{}, err
			}
			return struct{}{}, ctx.Sleep(24 * time.Hour)
		}
		name := "patient"
		if change == "gone" {
			name = "impatient"
		}
		return []engine.Definition{{Name: name, Queue: "patient-queue", Orchestrator: engine.Orchestrate(name, run), Operations: []orchestrator.AnyActivity{before}}}, nil
	}}
}

// Before a deployment, the new code is run over what is under way, and says what it would stall. Nothing is changed. One of the
// orchestrations is encrypted.
func TestReplayCommand(t *testing.T) {
	t.Parallel()
	env := emulator.With(settings.Storage, storage.Account(t).ConnectionString(), "FUNCTIONS_CUSTOMHANDLER_PORT", "")
	start, err := New(patientApp(""), Config{Lookup: env.With("FUNCTIONS_CUSTOMHANDLER_PORT", "0").Lookup})
	testenv.Check(t, err)
	t.Cleanup(start.Close)
	testenv.Check(t, start.Start(t.Context()))
	sealed, err := New(patientApp(""), Config{Lookup: env.With("FUNCTIONS_CUSTOMHANDLER_PORT", "0", "ROUNDHOUSE_PAYLOAD_KEY", "payloads").Lookup})
	testenv.Check(t, err)
	t.Cleanup(sealed.Close)
	testenv.Check(t, sealed.Start(t.Context()))
	for id, start := range map[string]*Handler{"patient-replay-1": start, "patient-replay-2": sealed} {
		testenv.Done(t)(start.program.Runtime.Run(t.Context(), orchestrator.Start{ID: id, Orchestrator: "patient", CorrelationID: id, Input: []byte(`{"correlationId":"` + id + `"}`)}))
	}
	replay := func(app App, args ...string) (code int, out string) {
		var text bytes.Buffer
		code = runner{App: app, Stdout: &text, Stderr: &text}.Run(t.Context(), append([]string{"replay", "-orchestrator", "patient"}, args...), env.Lookup)
		return code, text.String()
	}
	for name, tt := range map[string]struct {
		app  App
		args []string
		code int
		want []string
	}{
		"the same code":       {patientApp(""), nil, exitOK, []string{"2 orchestrations are under way: 2 go on with this code, 0 would stall"}},
		"one of them":         {patientApp(""), []string{"-limit", "1"}, exitOK, []string{"1 orchestrations are under way: 1 go on"}},
		"another call":        {patientApp("-changed"), nil, exitFailure, []string{"would stall: patient-replay-1 (Running)", "before-changed", "0 go on with this code, 2 would stall"}},
		"without the engine":  {patientApp("gone"), nil, exitFailure, []string{"2 would stall"}},
		"a wrong flag":        {patientApp(""), []string{"-limit", "-1"}, exitUsage, []string{"0 or more"}},
		"an unexpected one":   {patientApp(""), []string{"now"}, exitUsage, []string{"replay takes"}},
		"the help of its own": {patientApp(""), []string{"-h"}, exitOK, []string{"-orchestrator"}},
	} {
		code, out := replay(tt.app, tt.args...)
		for _, want := range tt.want {
			if code != tt.code || !strings.Contains(out, want) {
				t.Errorf("%s: exit code %d, want %d and %q in\n%s", name, code, tt.code, want, out)
			}
		}
	}
	for _, id := range []string{"patient-replay-1", "patient-replay-2"} {
		now, err := start.program.Runtime.Get(t.Context(), id)
		if err != nil || now.Status != orchestrator.Running {
			t.Errorf("%s: %v, %v", id, now.Status, err)
		}
		// The account is shared by the tests of the package.
		if err := errors.Join(start.program.Runtime.Terminate(t.Context(), id, "the test is over")); err != nil {
			t.Error(err)
		}
	}
	// A real account asks for no other setting: what is wrong is that it cannot be reached.
	away := env.With(settings.Storage, "DefaultEndpointsProtocol=http;AccountName=acct1;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/a;QueueEndpoint=http://127.0.0.1:1/a;TableEndpoint=http://127.0.0.1:1/a")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var said bytes.Buffer
	if code := (runner{App: patientApp(""), Stdout: &said, Stderr: &said}).Run(ended, []string{"replay"}, away.Lookup); code != exitFailure || strings.Contains(said.String(), "ROUNDHOUSE_") {
		t.Errorf("exit code %d\n%s", code, &said)
	}
	bad := env.With(settings.Storage, azure.Account{}.String())
	var text bytes.Buffer
	if code := (runner{App: patientApp(""), Stdout: &text, Stderr: &text}).Run(t.Context(), []string{"replay"}, bad.Lookup); code != exitUsage {
		t.Errorf("without storage: exit code %d\n%s", code, &text)
	}
}

// The command manifest needs no settings, and prints JSON alone.
func TestManifestCommand(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	r := runner{App: workApp(), Stdout: &out, Stderr: &errs}
	if code := r.Run(t.Context(), []string{"manifest"}, emulator.With(settings.Storage, "nonsense").Lookup); code != exitOK || !strings.HasPrefix(out.String(), "{") || errs.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	if code := r.Run(t.Context(), []string{"manifest", "now"}, emulator.Lookup); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	broken := runner{App: App{Engines: func(*Platform) ([]engine.Definition, error) { return nil, errors.New("oh") }}, Stdout: &out, Stderr: &errs}
	if code := broken.Run(t.Context(), []string{"manifest"}, emulator.Lookup); code != exitFailure || !strings.Contains(errs.String(), "oh") {
		t.Errorf("exit code %d, %s", code, &errs)
	}
}
