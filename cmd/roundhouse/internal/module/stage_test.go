package module_test

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// own returns Roundhouse's own app.
func own(t *testing.T) module.Module {
	t.Helper()
	m := testenv.Must(module.Find("."))(t)
	m.Main = "./cmd/handler"
	return m
}

// files returns the names of all files in a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, relErr := filepath.Rel(dir, path)
			found, err = append(found, filepath.ToSlash(name)), relErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func TestStage(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m, parent := own(t), t.TempDir()
	dist := filepath.Join(parent, "a dist")
	manifest := testenv.Must(m.Stage(t.Context(), dist, module.Here))(t)
	want := []string{"handler", "host.json", "local.settings.json"}
	for name := range manifest.Functions {
		want = append(want, name+"/function.json")
	}
	slices.Sort(want)
	if got := files(t, dist); !slices.Equal(got, want) || len(want) < 40 {
		t.Errorf("staged %v, want %v", got, want)
	}
	testenv.OK(t, os.WriteFile(filepath.Join(dist, "stale"), nil, 0o600))

	// A failure leaves everything unchanged, and nothing behind.
	broken := m
	broken.Main = "./nothing"
	if _, err := broken.Stage(t.Context(), dist, module.Here); err == nil || !strings.Contains(err.Error(), "does not build") || !strings.Contains(err.Error(), "is as it was") {
		t.Errorf("error %v", err)
	}
	if got := files(t, dist); len(got) != len(want)+1 {
		t.Errorf("after a failed build: %v", got)
	}
	testenv.Must(m.Stage(t.Context(), dist, module.Here))(t)
	if got := files(t, dist); !slices.Equal(got, want) {
		t.Errorf("staged %v, want %v", got, want)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, %v", entries, err)
	}
	checkProgram(t, filepath.Join(dist, "handler"))
}

// checkProgram checks the host's program.
func checkProgram(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("handler: %v, %v", info, err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "-version").Output(); err != nil || !strings.Contains(string(out), "CGO_ENABLED=0") {
		t.Errorf("handler -version: %v\n%s", err, out)
	}
	if runtime.GOOS != "linux" {
		return
	}
	file := testenv.Must(elf.Open(path))(t)
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the handler asks for a dynamic loader")
		}
	}
}

func TestStageRefuses(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m, precious := own(t), t.TempDir()
	testenv.OK(t, os.WriteFile(filepath.Join(precious, "host.json"), []byte("{}"), 0o600))
	for _, dir := range []string{precious, m.Dir, "/"} {
		if _, err := m.Stage(t.Context(), dir, module.Here); err == nil || !strings.Contains(err.Error(), "neither empty nor an earlier staging") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if got := files(t, precious); !slices.Equal(got, []string{"host.json"}) {
		t.Errorf("left of a folder that is not ours: %v", got)
	}
	for host, want := range map[string]string{`{}`: "defaultExecutablePath", `{`: "host.json"} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "host.json"), []byte(host), 0o600), os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		found := testenv.Must(module.Find(dir))(t)
		if _, err := found.Stage(t.Context(), filepath.Join(dir, "dist"), module.Here); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := module.Find(t.TempDir()); !errors.Is(err, module.ErrNoModule) {
		t.Errorf("no module: %v", err)
	}
}

// A deployment is for another machine, and has the same functions, but no settings of this machine.
func TestStageForADeployment(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	dist := filepath.Join(t.TempDir(), "dist")
	target := module.Deployment
	target.Arch = "arm64"
	manifest, err := own(t).Stage(t.Context(), dist, target)
	if err != nil || len(manifest.Functions) < 40 {
		t.Fatalf("%d functions, %v", len(manifest.Functions), err)
	}
	if got := files(t, dist); slices.Contains(got, "local.settings.json") || !slices.Contains(got, "host.json") {
		t.Errorf("staged %v", got)
	}
	file := testenv.Must(elf.Open(filepath.Join(dist, "handler")))(t)
	defer file.Close()
	if file.Machine != elf.EM_AARCH64 {
		t.Errorf("the handler is for %v", file.Machine)
	}
}

// A program with settings of its own is staged with those.
func TestStageAnExample(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m, dist := own(t), filepath.Join(t.TempDir(), "dist")
	m.Main = "./examples/orders"
	manifest, err := m.Stage(t.Context(), dist, module.Here)
	if err != nil || manifest.Functions["orders-queue-trigger"].Name == "" {
		t.Fatalf("%d functions, %v", len(manifest.Functions), err)
	}
	for _, name := range []string{"host.json", "local.settings.json"} {
		got, err := os.ReadFile(filepath.Join(dist, name))
		want, err2 := os.ReadFile(filepath.Join(m.Dir, "examples", "orders", name))
		if errors.Join(err, err2) != nil || string(got) != string(want) {
			t.Errorf("%s is not the example's: %v", name, errors.Join(err, err2))
		}
	}
}
