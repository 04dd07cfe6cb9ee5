package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var staged stagings

// stagings are the folders that scripts/stage has laid out, one for each deployment context: building takes its time.
type stagings struct {
	mu   sync.Mutex
	root string
}

// stage gives a test a folder of its own with the functions of a deployment context, and the handler.
func stage(t *testing.T, deployment string) (dist string) {
	t.Helper()
	dist = filepath.Join(t.TempDir(), "dist")
	folder, err := staged.folder(deployment)
	if err == nil {
		err = os.CopyFS(dist, os.DirFS(folder))
	}
	if err != nil {
		t.Fatalf("stage: %v", err)
	}
	return dist
}

// folder lays out that of a deployment context, unless it is there. The script leaves nothing that is half done.
func (s *stagings) folder(deployment string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" {
		var err error
		if s.root, err = os.MkdirTemp("", "roundhouse-acceptance-"); err != nil {
			return "", err
		}
	}
	folder := filepath.Join(s.root, deployment)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	cmd := exec.Command("../../scripts/stage", "--local", folder)
	cmd.Env = append(os.Environ(), "ROUNDHOUSE_CONTEXT="+deployment)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return folder, nil
}

// end removes them, and ends the process.
func (s *stagings) end(code int) {
	if err := os.RemoveAll(s.root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
