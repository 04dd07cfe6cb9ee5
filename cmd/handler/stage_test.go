package handler

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// stage runs scripts/stage from a directory that is not the repository.
func stage(t *testing.T, args []string, env ...string) (output string, err error) {
	t.Helper()
	script, err := filepath.Abs("../scripts/stage")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), script, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	combined, err := cmd.CombinedOutput()
	return string(combined), err
}

// names are the names in a directory, and for its directories the names below.
func names(t *testing.T, dir string) []string {
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
	return found
}

func TestStage(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dist := filepath.Join(parent, "a dist")
	want := []string{"handler", "host.json", "local.settings.json"}
	for function := range stagedFor(t, publisher) {
		want = append(want, function+"/function.json")
	}
	slices.Sort(want)

	if out, err := stage(t, []string{"--local", dist}); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(dist, "stale"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dist, "stale", "function.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}

	// A build that fails leaves everything as it was, and nothing behind.
	out, err := stage(t, []string{"--local", dist}, "GOFLAGS=-mod=nonsense")
	if err == nil || !strings.Contains(out, "does not build") {
		t.Errorf("%v:\n%s", err, out)
	}
	got := names(t, dist)
	slices.Sort(got)
	if with := slices.Sorted(slices.Values(append([]string{"stale/function.json"}, want...))); !slices.Equal(got, with) {
		t.Errorf("after a failed build: %v, want %v", got, with)
	}

	if out, err := stage(t, []string{dist, "--local"}); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	got = names(t, dist)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("staged %v, want %v", got, want)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, %v", entries, err)
	}

	handler := filepath.Join(dist, "handler")
	if info, err := os.Stat(handler); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("handler: %v, %v", info, err)
	}
	if out, err := exec.CommandContext(t.Context(), handler, "-version").Output(); err != nil || !strings.Contains(string(out), "CGO_ENABLED=0") {
		t.Errorf("handler -version: %v\n%s", err, out)
	}
	if runtime.GOOS == "linux" {
		checkStatic(t, handler)
	}
}

func checkStatic(t *testing.T, path string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the handler asks for a dynamic loader")
		}
	}
}

func TestStageRefuses(t *testing.T) {
	t.Parallel()
	precious := t.TempDir()
	if err := os.WriteFile(filepath.Join(precious, "host.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--local", precious}, "neither empty nor an earlier staging"},
		{[]string{"--local", "/"}, "name the folder to stage into"},
		{[]string{"--local", "."}, "name the folder to stage into"},
		{[]string{"--fast"}, "usage:"},
		{[]string{"a", "b"}, "usage:"},
	} {
		out, err := stage(t, tt.args)
		if err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("%v: %v, want %q in\n%s", tt.args, err, tt.want, out)
		}
	}
	if got := names(t, precious); !slices.Equal(got, []string{"host.json"}) {
		t.Errorf("left of a folder that is not ours: %v", got)
	}
}
