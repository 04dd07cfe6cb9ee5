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

// stagings are the folders that scripts/stage has laid out, one for each deployment profile and definition of pollers:
// building is slow.
type stagings struct {
	mu   sync.Mutex
	root string
	// folders are the existing ones, by profile and pollers.
	folders map[[2]string]string
}

// stage returns a new folder with the functions of a deployment profile, and the handler.
func stage(t *testing.T, deployment string) (dist string) {
	t.Helper()
	return stageWith(t, deployment, "")
}

// stageWith does that with the functions of pollers, too.
func stageWith(t *testing.T, deployment, pollers string) (dist string) {
	t.Helper()
	dist = filepath.Join(t.TempDir(), "dist")
	folder, err := staged.folder(deployment, pollers)
	if err == nil {
		err = os.CopyFS(dist, os.DirFS(folder))
	}
	if err != nil {
		t.Fatalf("stage: %v", err)
	}
	return dist
}

// folder lays out the folder of a deployment profile with pollers, unless it exists.
func (s *stagings) folder(deployment, pollers string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == "" {
		var err error
		if s.root, err = os.MkdirTemp("", "roundhouse-acceptance-"); err != nil {
			return "", err
		}
	}
	folder, ok := s.folders[[2]string{deployment, pollers}]
	if ok {
		return folder, nil
	}
	folder = filepath.Join(s.root, fmt.Sprintf("%s-%d", deployment, len(s.folders)))
	cmd := exec.Command("../../scripts/stage", "--local", folder)
	cmd.Env = append(os.Environ(), "ROUNDHOUSE_CONTEXT="+deployment, "ROUNDHOUSE_POLLERS="+pollers)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	if s.folders == nil {
		s.folders = map[[2]string]string{}
	}
	s.folders[[2]string{deployment, pollers}] = folder
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
