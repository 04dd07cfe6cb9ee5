package scaffold_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/scaffold"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// root is the folder of this repository.
const root = "../../../.."

// A new module is tidy, and its tests pass.
func TestNew(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "billing")
	made, err := scaffold.New(t.Context(), scaffold.Options{Dir: dir, Module: "example.com/acme/billing", Engine: "invoices", Replace: root})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"main.go", "main_test.go", "invoices/invoices.go", "invoices/invoices_test.go", "host.json", "local.settings.json", "Makefile",
		"README.md", ".gitignore", ".funcignore", ".github/workflows/ci.yml", ".github/workflows/deploy.yml", "go.mod", "go.sum"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil || !slices.Contains(made, want) {
			t.Errorf("%s: %v, made %v", want, err, made)
		}
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}, {"mod", "tidy", "-diff"}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v\n%s", err, out)
	}
}

// Existing files stay, and an impossible module is refused before any write.
func TestNewRefuses(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for want, o := range map[string]scaffold.Options{
		"give a module path":            {Module: "no path"},
		"lower-case letters and digits": {Module: "m", Engine: "My-Engine"},
		"beside engine and handler":     {Module: "m", Engine: "engine"},
		"not a folder with Roundhouse":  {Module: "m", Replace: "."},
		"the folder is not empty":       {Module: "m", Dir: ".", Replace: root},
		"go mod tidy":                   {Module: "m", Replace: broken(t)},
		"is not of a release":           {Module: "m"},
	} {
		empty := o.Dir == ""
		if empty {
			o.Dir = t.TempDir()
		}
		_, err := scaffold.New(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
		if entries, err := os.ReadDir(o.Dir); empty && (err != nil || len(entries) > 0) {
			t.Errorf("%q: left behind: %v, %v", want, entries, err)
		}
	}
	if _, err := scaffold.New(t.Context(), scaffold.Options{Dir: ".", Module: "m", Replace: root}); !errors.Is(err, scaffold.ErrTaken) {
		t.Errorf("error %v", err)
	}
}

// broken returns a folder that only resembles Roundhouse.
func broken(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	testenv.OK(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+scaffold.Roundhouse+"\n"), 0o600))
	return dir
}

// The host.json of new modules equals the repository's.
func TestHostFile(t *testing.T) {
	t.Parallel()
	ours, err := os.ReadFile(filepath.Join(root, "host.json"))
	theirs, err2 := os.ReadFile("files/host.json.tmpl")
	if err := errors.Join(err, err2); err != nil || string(ours) != string(theirs) {
		t.Errorf("%v; they differ", err)
	}
}
