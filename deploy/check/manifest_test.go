package check

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// contexts are what an app can be deployed as.
func contexts() []string { return []string{"publisher", "managed-app"} }

// manifest is what the program says of itself.
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

var program struct {
	once sync.Once
	path string
	err  error
}

// TestMain removes the program that the tests have built.
func TestMain(m *testing.M) {
	status := m.Run()
	if program.path != "" {
		os.RemoveAll(filepath.Dir(program.path))
	}
	os.Exit(status)
}

// handler is the program.
func handler(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		dir, err := os.MkdirTemp("", "handler-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "handler")
		cmd := exec.Command("go", "build", "-o", program.path, "./cmd/handler")
		cmd.Dir = root
		cmd.Stderr = os.Stderr
		program.err = cmd.Run()
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// describe asks the program what it consists of in a context.
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
