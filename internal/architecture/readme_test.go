package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// prelude is what the README's engine leaves out: the imports and the domain.
const prelude = `package main

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

type (
	Steps  struct{}
	Change struct{ InstanceID, Component, Version string }
	Input  struct {
		Components []string
		Version    string
	}
	Result struct{ Updated int }
)

func (*Steps) Update(_ context.Context, c Change) (Change, error)         { return c, nil }
func (*Steps) Verify(context.Context, string) (struct{}, error)           { return struct{}{}, nil }
func (*Steps) Rollback(context.Context, Change) (struct{}, error)         { return struct{}{}, nil }

func main() {}

`

// The engine in the README compiles.
func TestReadmeCompiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of Go", len(blocks))
	}
	file := filepath.Join(t.TempDir(), "readme.go")
	if err := os.WriteFile(file, append([]byte(prelude), blocks[0][1]...), 0o600); err != nil {
		t.Fatal(err)
	}
	vet := exec.Command("go", "vet", file)
	vet.Dir = root
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
