package check

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// text returns a file of the repository.
func text(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// contexts returns the profiles that an app can be deployed with.
func contexts() []string { return []string{"publisher", "managed-app"} }

// manifest is the program's description of itself.
type manifest struct {
	Settings, Required []string
	Roles              []struct{ Scope, Name, ID, With string }
	Functions          map[string]struct {
		Bindings []struct{ Type, AuthLevel, Route string }
	}
	Access struct {
		Routes []struct{ Method, Path, Permission, Opens string }
	}
}

// folder is the temporary folder that all tests share.
var folder string

// TestMain removes the files that the tests have built.
func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "check-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "handler")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/handler")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	return path, cmd.Run()
})

// handler returns the path of the program, which the first caller builds.
func handler(t *testing.T) string {
	t.Helper()
	testenv.Long(t)
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// describe returns the program's manifest in a profile.
func describe(t *testing.T, context string) manifest {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), handler(t), "manifest")
	cmd.Dir = root
	cmd.Env = []string{"ROUNDHOUSE_CONTEXT=" + context}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var m manifest
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil || len(m.Settings) == 0 || len(m.Required) == 0 || len(m.Roles) == 0 || len(m.Functions) == 0 || len(m.Access.Routes) == 0 {
		t.Fatalf("the manifest of %s: %v\n%.400s", context, err, out)
	}
	return m
}
