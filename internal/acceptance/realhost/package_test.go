package realhost

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Without Azure, the real host runs the deployment package from an empty folder, and doctor finds no problem.
func TestPackageRuns(t *testing.T) {
	testenv.RealHost(t)
	dir := t.TempDir()
	run(t, nil, "../../../scripts/stage", filepath.Join(dir, "dist"), "--zip", filepath.Join(dir, "app.zip"))
	a := app{dist: filepath.Join(dir, "wwwroot"), account: storage(t), key: newKey(), id: "package", auth: true,
		env: []string{"FUNCTIONS_WORKER_RUNTIME=custom", "ROUNDHOUSE_CONTEXT=publisher"}}
	testenv.Unpack(t, filepath.Join(dir, "app.zip"), a.dist)
	editJSON(t, filepath.Join(a.dist, "host.json"), func(host map[string]any) { delete(host, "extensionBundle") })
	withQueues(t, a.dist)
	h := startReal(t, a)

	program := filepath.Join(dir, "roundhouse")
	run(t, nil, "go", "build", "-o", program, "../../../cmd/roundhouse")
	out := run(t, []string{"ROUNDHOUSE_URL=" + h.url, "ROUNDHOUSE_KEY=" + a.key, "AzureWebJobsStorage=" + a.account.ConnectionString()}, program, "doctor", "-o", "json")
	var report struct {
		Items []struct{ Check, Verdict, Found string }
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Items) < 8 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, item := range report.Items {
		t.Logf("%s: %s: %s", item.Check, item.Verdict, item.Found)
		if item.Verdict == "fail" {
			t.Errorf("%s: %s", item.Check, item.Found)
		}
	}
}

// run runs a program with additional environment variables, and returns its output.
func run(t *testing.T, env []string, program string, args ...string) []byte {
	t.Helper()
	var errs strings.Builder
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env, command.Stderr = append(os.Environ(), env...), &errs
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", program, args, err, out, errs.String())
	}
	return out
}
