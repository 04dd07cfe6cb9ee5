package realhost

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// staging is the app as deployed, staged once.
type staging struct {
	once sync.Once
	dir  string
	err  error
}

var staged staging

// stage returns a copy for one test. The extension bundle is removed from host.json: it would have to come from the
// network.
func stage(t *testing.T) (dist string) {
	t.Helper()
	staged.once.Do(func() {
		if staged.dir, staged.err = os.MkdirTemp("", "roundhouse-realhost-"); staged.err != nil {
			return
		}
		command := exec.Command("../../../scripts/stage", "--local", filepath.Join(staged.dir, "dist"))
		command.Env = append(os.Environ(), "ROUNDHOUSE_CONTEXT=publisher")
		if output, err := command.CombinedOutput(); err != nil {
			staged.err = fmt.Errorf("%w\n%s", err, output)
		}
	})
	if staged.err != nil {
		t.Fatalf("stage: %v", staged.err)
	}
	dist = filepath.Join(t.TempDir(), "dist")
	copyDir(t, dist, filepath.Join(staged.dir, "dist"))
	editJSON(t, filepath.Join(dist, "host.json"), func(host map[string]any) { delete(host, "extensionBundle") })
	return dist
}

func copyDir(t *testing.T, to, from string) {
	t.Helper()
	testenv.OK(t, os.CopyFS(to, os.DirFS(from)))
}

// unstage removes the app at the end of the tests.
func (s *staging) unstage(code int) {
	if err := os.RemoveAll(s.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// editJSON changes a file that holds a JSON object.
func editJSON(t *testing.T, path string, edit func(map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	testenv.OK(t, json.Unmarshal(text, &document))
	edit(document)
	if text, err = json.MarshalIndent(document, "", "  "); err != nil {
		t.Fatal(err)
	}
	testenv.OK(t, os.WriteFile(path, text, 0o600))
}

// withQueues adds the queue extension to an app. Other extensions in the same folder are left out: some need native
// libraries.
func withQueues(t *testing.T, dist string) {
	t.Helper()
	bin := filepath.Join(dist, "bin")
	copyDir(t, bin, testenv.RealHostQueues(t))
	editJSON(t, filepath.Join(bin, "extensions.json"), func(document map[string]any) {
		list, _ := document["extensions"].([]any)
		document["extensions"] = slices.DeleteFunc(list, func(extension any) bool {
			return !strings.Contains(fmt.Sprint(extension), "Extensions.Storage")
		})
	})
}

// newYear is a schedule that does not fire during a test.
const newYear = "0 0 0 1 1 *"

var schedule = regexp.MustCompile(`("schedule": )"[^"]*"`)

// reschedule gives another schedule to the timers whose names match.
func reschedule(t *testing.T, dist, timers, to string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dist, timers, "function.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("timers %s: %v", timers, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, schedule.ReplaceAll(text, []byte(`$1"`+to+`"`)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
