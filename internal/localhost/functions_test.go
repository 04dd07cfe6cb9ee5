package localhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestDiscover(t *testing.T) {
	t.Parallel()
	const queue = `{"type":"QUEUETRIGGER","direction":"in","name":"q","queueName":"%Q%"}`
	for name, test := range map[string]struct {
		folder, text string
		err          string
		disabled     bool
	}{
		"good":                {"a-queue", `{"bindings":[` + queue + `]}`, "", false},
		"outputs":             {"a-queue", `{"bindings":[` + queue + `,{"type":"queue","direction":"out","name":"o","queueName":"next"}]}`, "", false},
		"disabled":            {"a-queue", `{"disabled":true,"bindings":[` + queue + `]}`, "", true},
		"disabled by setting": {"a-queue", `{"disabled":"%OFF%","bindings":[` + queue + `]}`, "", true},
		"enabled by setting":  {"a-queue", `{"disabled":"ON","bindings":[` + queue + `]}`, "", false},
		"disabled from env":   {"env-dots", `{"bindings":[` + queue + `]}`, "", true},
		"disabled from env _": {"env-lines", `{"bindings":[` + queue + `]}`, "", true},
		"env wins":            {"env-on", `{"disabled":true,"bindings":[` + queue + `]}`, "", false},
		"bad name":            {"1st", `{"bindings":[` + queue + `]}`, "starts with a letter", false},
		"reserved name":       {"Host", `{"bindings":[` + queue + `]}`, "not host", false},
		"no JSON":             {"a", `{`, "not valid JSON", false},
		"wrong form":          {"a", `{"bindings":{}}`, "parse function.json", false},
		"no trigger":          {"a", `{"bindings":[]}`, "no trigger", false},
		"two triggers":        {"a", `{"bindings":[` + queue + `,` + queue + `]}`, "exactly one trigger", false},
		"unknown type":        {"a", `{"bindings":[{"type":"blobTrigger","name":"b"}]}`, `"blobTrigger" is not supported`, false},
		"no binding name":     {"a", `{"bindings":[{"type":"manualTrigger"}]}`, "name is required", false},
		"output goes in":      {"a", `{"bindings":[` + queue + `,{"type":"queue","direction":"in","name":"o","queueName":"next"}]}`, `direction "out"`, false},
		"retry":               {"a", `{"retry":{"strategy":"fixedDelay"},"bindings":[` + queue + `]}`, "retry policies", false},
		"missing setting":     {"a", `{"bindings":[{"type":"queueTrigger","name":"q","queueName":"%NONE%"}]}`, "%NONE%", false},
		"bad queue":           {"a", `{"bindings":[{"type":"queueTrigger","name":"q","queueName":"a--b"}]}`, "queueName", false},
		"bad data type":       {"a", `{"bindings":[{"type":"queueTrigger","name":"q","queueName":"abc","dataType":"stream"}]}`, "dataType", false},
		"bad schedule":        {"a", `{"bindings":[{"type":"timerTrigger","name":"t","schedule":"often"}]}`, "time span", false},
		"schedule by setting": {"a", `{"bindings":[{"type":"timerTrigger","name":"t","schedule":"%CRON%"}]}`, "", false},
		"bad level":           {"a", `{"bindings":[{"type":"httpTrigger","name":"r","authLevel":"user"}]}`, "authLevel", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			put(t, filepath.Join(root, test.folder, "function.json"), test.text)
			env := environment{"Q": "My-Queue", "OFF": "1", "ON": "false", "CRON": "0 */5 * * * *",
				"AzureWebJobs.env-dots.Disabled": "true", "AzureWebJobs_env-lines_Disabled": "1", "AzureWebJobs.env-on.Disabled": "false"}
			found, err := discover(root, env)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %d functions, error %v", len(found), err)
			}
			f := found[0]
			if (f.err == nil) != (test.err == "") || f.err != nil && !strings.Contains(f.err.Error(), test.err) {
				t.Errorf("error %v, want %q", f.err, test.err)
			}
			if f.disabled != test.disabled {
				t.Errorf("disabled %v", f.disabled)
			}
			if f.err == nil && f.trigger.Type == queueTrigger && f.trigger.QueueName != "my-queue" {
				t.Errorf("queue %q", f.trigger.QueueName)
			}
		})
	}
}

func TestDiscoverLooksAtDirectChildrenOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const manual = `{"bindings":[{"type":"manualTrigger","name":"m"}]}`
	put(t, filepath.Join(root, "beta", "function.json"), manual)
	put(t, filepath.Join(root, "Alpha", "function.json"), manual)
	put(t, filepath.Join(root, "alpha", "function.json"), manual)
	put(t, filepath.Join(root, "folder", "inner", "function.json"), manual)
	put(t, filepath.Join(root, "function.json"), manual)
	found := testenv.Must(discover(root, nil))(t)
	var names []string
	for _, f := range found {
		names = append(names, f.name)
		if wantErr := f.name == "alpha"; (f.err != nil) != wantErr {
			t.Errorf("%s: error %v", f.name, f.err)
		}
	}
	testenv.Equal(t, "", []string{"Alpha", "alpha", "beta"}, names)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	testenv.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testenv.OK(t, os.WriteFile(path, []byte(text), 0o644))
}
