package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the root of the module.
const root = "../../../.."

// The command works by itself and under go vet, finds the errors of a package, and finds nothing in the engines.
func TestCommand(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	look(t, "engine", "orchestrator")
	tool := filepath.Join(t.TempDir(), "determinism")
	if out, ok := execute(t, "go", "build", "-o", tool, "./orchestrator/determinism/cmd/determinism"); !ok {
		t.Fatal(out)
	}
	const finding = "seeded.go:14:14: orchestrator code calls seeded.token, which calls uuid.New: use ctx.NewUUID()"
	ways := []struct {
		name    string
		command []string
	}{
		{"alone", []string{tool}},
		{"under go vet", []string{"go", "vet", "-vettool=" + tool}},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			out, ok := execute(t, append(way.command, "./orchestrator/determinism/testdata/src/seeded")...)
			if ok || strings.Count(out, finding) != 1 {
				t.Errorf("success %v, said %q, want failure and %q once", ok, out, finding)
			}
			if out, ok := execute(t, append(way.command, "./engine/...")...); !ok || out != "" {
				t.Errorf("the engines: success %v, said %q", ok, out)
			}
		})
	}
}

// look reads folders of the module, so that go test knows that the result depends on them: it does not see files that
// other processes read, and would reuse an old result.
func look(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(_ string, _ os.DirEntry, err error) error { return err })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// execute runs a command in the root of the module, and returns its output and whether it succeeds.
func execute(t *testing.T, command ...string) (string, bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir = root
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out), err == nil
}
