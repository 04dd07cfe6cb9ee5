package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// commandLine is the program roundhouse for a platform.
type commandLine struct {
	*platform
	program string
	// env is the environment besides the platform's address.
	env []string
}

// commandLine builds the program.
func (p *platform) commandLine(t *testing.T, env ...string) commandLine {
	t.Helper()
	c := commandLine{p, filepath.Join(t.TempDir(), "roundhouse"), env}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", c.program, "../../cmd/roundhouse").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c
}

// run runs a command in an environment that has only env and the platform's address, and fails the test for another
// exit code.
func (c commandLine) run(t *testing.T, want int, args ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), c.program, args...)
	cmd.Env = append([]string{"ROUNDHOUSE_URL=" + c.host.URL(), "ROUNDHOUSE_KEY=" + c.key, "AzureWebJobsStorage=" + c.account.ConnectionString()}, c.env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	code := 0
	if failed {
		code = exit.ExitCode()
	}
	if err != nil && !failed || code != want {
		t.Fatalf("roundhouse %q: %v, exit code %d, want %d\n%s%s", args, err, code, want, &stdout, &stderr)
	}
	if strings.Contains(stdout.String()+stderr.String(), c.key) {
		t.Errorf("roundhouse %q shows the key:\n%s%s", args, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// shows runs commands in turn, until each prints its text: lists of orchestrations lag behind the runs.
func (c commandLine) shows(t *testing.T, texts map[string]string) {
	t.Helper()
	for args, text := range texts {
		testenv.Until(t, text+" in roundhouse "+args, func() bool {
			out, errs := c.run(t, 0, strings.Fields(args)...)
			return strings.Contains(out+errs, text)
		})
	}
}

// testCommandLine is an operator's day: a message and its outcome, dead letters, and a look at everything. The hmac
// engine already has dead letters.
func (p *platform) testCommandLine(t *testing.T) {
	c := p.commandLine(t)
	out, _ := c.run(t, 0, "send", hmac.Engine, "--operation", hmac.OperationRotate, "--instance", "instance-cli", "-o", "json")
	var sent struct{ CorrelationID string }
	if err := json.Unmarshal([]byte(out), &sent); err != nil || sent.CorrelationID == "" {
		t.Fatalf("%v: %s", err, out)
	}
	p.succeeded(t, sent.CorrelationID, "instance-cli")
	orchestration := "hmac-" + sent.CorrelationID
	c.shows(t, map[string]string{
		"timeline " + sent.CorrelationID:                                        "rotate of instance-cli",
		"history list --correlation-id " + sent.CorrelationID:                   "notify",
		"history list --storage settings --instance instance-cli":               "notify",
		"orchestration list --orchestrator hmac --status completed --limit 100": orchestration,
		"orchestration show " + orchestration:                                   "Completed",
		"orchestration show --rounds " + orchestration:                          "ExecutionStarted",
		"outbox list --status processed":                                        "processed",
		"outbox metrics":                                                        "backlogSize",
		"task list":                                                             "no such tasks",
		"dlq counts --engine hmac":                                              "PENDING",
		"dlq list --engine hmac --status pending":                               "Pending",
		"dlq list --engine hmac --storage settings":                             "Pending",
		"orchestration purge --dry-run " + orchestration:                        "Dry run",
		"doctor": "app access",
	})
	c.run(t, 3, "orchestration", "show", "nobody")
	c.run(t, 4, "history", "list", "--key", "another")
	c.run(t, 4, "orchestration", "terminate", orchestration, "--yes") // it has ended
	c.run(t, 4, "dlq", "expire", "--all", "--engine", "hmac", "--older-than-days", "0")

	if _, errs := c.run(t, 0, "dlq", "expire", "--all", "--engine", "hmac", "--older-than-days", "0", "--yes"); !strings.Contains(errs, "Succeeded") {
		t.Error(errs)
	}
	if _, errs := c.run(t, 0, "dlq", "list", "--engine", "hmac", "--status", "pending"); !strings.Contains(errs, "no such dead letters") {
		t.Error(errs)
	}
	c.run(t, 0, "orchestration", "purge", orchestration, "--yes")
	c.run(t, 3, "orchestration", "show", orchestration)
}
