package docs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// tutorial marks blocks that make a module together: a Go block is a whole file of it, named by a bold line above the
// block, and a later block of the same file replaces an earlier one.
const tutorial = "tutorial"

// tutorialPage is the page with them, and tutorialModule the module that it makes.
const (
	tutorialPage   = "docs/first-engine.md"
	tutorialModule = "example.com/billing"
)

// The module of the tutorial builds, and its tests pass, after every section that changes it.
func TestTutorial(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	dir := newModule(t, tutorialModule)
	writeFile(t, filepath.Join(dir, "sample", "sample.go"), sample)
	analyzer := filepath.Join(t.TempDir(), "determinism")
	if err := run(exec.CommandContext(t.Context(), "go", "build", "-o", analyzer, "../../orchestrator/determinism/cmd/determinism")); err != nil {
		t.Fatal(err)
	}
	check := func(section string) {
		t.Helper()
		for _, args := range [][]string{{"vet", "./..."}, {"vet", "-vettool", analyzer, "./..."}, {"test", "./..."}} {
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Dir = dir
			if err := run(cmd); err != nil {
				t.Fatalf("behind the section %q: %v", section, err)
			}
		}
	}
	section := ""
	for _, b := range blocksOf(t, "go") {
		if len(b.words) != 1 || b.words[0] != tutorial {
			continue
		}
		if b.page != tutorialPage || !filepath.IsLocal(b.named) {
			t.Fatalf("%s:%d: a block of the tutorial is on %s, below a bold line with its file, not %q", b.page, b.line, tutorialPage, b.named)
		}
		if section != "" && b.section != section {
			check(section)
		}
		section = b.section
		writeFile(t, filepath.Join(dir, b.named), b.text)
	}
	if section == "" {
		t.Fatal("no block is one of the tutorial")
	}
	check(section)
}

// sample is a minimal engine of a new module: the tutorial names it, and leaves it unchanged.
const sample = `package sample

import (
	"context"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

func Definition(greeting string) engine.Definition {
	greet := orchestrator.NewActivity("greet", func(context.Context, string) (string, error) { return greeting, nil })
	return engine.Definition{Name: "sample", Queue: "sample-queue", Operations: []orchestrator.AnyActivity{greet},
		Orchestrator: engine.Orchestrate("sample", func(ctx *orchestrator.Context, r engine.Request[string]) (string, error) {
			return greet.Call(ctx, r.Input).Await()
		})}
}
`

// writeFile writes a file, and makes its folder.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	testenv.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}
