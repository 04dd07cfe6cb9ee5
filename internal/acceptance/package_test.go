package acceptance

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// Without Azure, the host runs the deployment package from an empty folder, and doctor finds no problem.
func TestPackageRuns(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	if runtime.GOOS != "linux" {
		t.Skip("the package is for linux")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "../../scripts/stage", filepath.Join(dir, "dist"), "--zip", filepath.Join(dir, "app.zip"))
	cmd.Env = append(os.Environ(), "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root := filepath.Join(dir, "wwwroot")
	testenv.Unpack(t, filepath.Join(dir, "app.zip"), root)
	p := &platform{account: ownStorage(t), key: "a-key-of-the-package"}
	var err error
	if p.queues, err = azure.NewQueues(p.account); err != nil {
		t.Fatal(err)
	}
	log := newLog(t)
	if p.host, err = localhost.New(localhost.Config{ScriptRoot: root, Queues: p.queues, CrashWindow: 1, Output: log, OnInvocation: p.observe, FunctionKey: p.key,
		Env: []string{"FUNCTIONS_WORKER_RUNTIME=custom", "AzureWebJobsStorage=" + p.account.ConnectionString()}}); err != nil {
		t.Fatal(err)
	}
	runHost(t, p.host)
	roundhouse := p.commandLine(t, "FUNCTIONS_CUSTOMHANDLER_PORT=0")
	p.verify(t, roundhouse, filepath.Join(root, "handler"))
	out, _ := roundhouse.run(t, 0, "doctor", "-o", "json")
	var report struct {
		Items []struct{ Check, Verdict, Found string }
	}
	testenv.OK(t, json.Unmarshal([]byte(out), &report))
	seen := map[string]bool{}
	for _, item := range report.Items {
		seen[item.Check] = true
		if item.Verdict == "fail" {
			t.Errorf("%s: %s", item.Check, item.Found)
		}
	}
	for _, check := range []string{"app answers", "app health", "storage tables", "queues"} {
		if !seen[check] {
			t.Errorf("doctor did not look at %q:\n%s", check, out)
		}
	}
}

// verify checks the running orchestrations against a program: they continue with this program, and stall with that of
// the other profile, which does not have their engine.
func (p *platform) verify(t *testing.T, roundhouse commandLine, program string) {
	t.Helper()
	p.send(t, hmac.Queue, rotation("c-1", "instance-1"))
	testenv.Until(t, "the end of the first rotation", func() bool {
		return len(p.list(t, "/api/history", url.Values{"correlationId": {"c-1"}, "operation": {"notify"}})) > 0
	})
	p.send(t, hmac.Queue, rotation("c-2", "instance-1")) // it waits until the first key may be retired
	type report struct {
		Items            []struct{ ID, Kind, Orchestrator, Status string }
		GoOn, WouldStall int
		Checked, NotRead int
	}
	look := func(code int) (r report) {
		out, _ := roundhouse.run(t, code, "verify", "--program", program, "--orchestrator", hmac.Engine, "-o", "json")
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return r
	}
	testenv.Until(t, "a run that waits", func() bool { return look(0).GoOn == 1 })
	roundhouse.env = append(roundhouse.env, "ROUNDHOUSE_CONTEXT=managed-app")
	r := look(1)
	if len(r.Items) != 1 || r.Items[0].Kind != "unknown" || !strings.HasPrefix(r.Items[0].ID, "hmac-c-") || r.WouldStall != 1 || r.Checked != 1 {
		t.Errorf("%+v", r)
	}
}
