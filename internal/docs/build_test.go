package docs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// programs are the documented programs.
type programs struct {
	// dist is the folder that a Functions host runs, handler the program in it.
	dist, handler string
	// bin is a folder with the command line, roundhouse.
	bin string
}

var built struct {
	once sync.Once
	dir  string
	programs
	err error
}

// build builds the app and the command line, once. Only this function knows their build.
func build(t *testing.T) programs {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "roundhouse-docs-"); built.err != nil {
			return
		}
		dist, bin := filepath.Join(built.dir, "dist"), filepath.Join(built.dir, "bin")
		built.programs = programs{dist: dist, handler: filepath.Join(dist, "handler"), bin: bin}
		stage := exec.Command(filepath.Join(root, "scripts/stage"), "--local", dist)
		stage.Env = append(os.Environ(), "ROUNDHOUSE_CONTEXT=publisher", "ROUNDHOUSE_POLLERS=")
		built.err = errors.Join(run(stage), run(exec.Command("go", "build", "-o", filepath.Join(bin, "roundhouse"), "../../cmd/roundhouse")))
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.programs
}

// run runs a command; the error has its output.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}
