package docs

import (
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// foreign marks Go for another library, for comparison: it has to be Go, and is not compiled.
const foreign = "foreign"

// placeholder is the line of a prelude that a block replaces.
const placeholder = "// The block stands here."

// Every block of Go compiles in its own module, and passes vet and the analyzer of orchestrators. A block is a whole
// file, or the part that a prelude leaves out; the word after the language names the prelude.
func TestGo(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	dir := newModule(t, "example.com/blocks")
	preludes := unusedPreludes(t)
	for n, b := range blocksOf(t, "go") {
		if len(b.words) == 1 && b.words[0] == tutorial {
			continue
		}
		if len(b.words) == 1 && b.words[0] == foreign {
			if _, err := format.Source([]byte(b.text)); err != nil {
				t.Errorf("%s:%d: %v", b.page, b.line, err)
			}
			continue
		}
		if len(b.words) == 1 {
			delete(preludes, b.words[0])
		}
		source, err := b.file()
		if err != nil {
			t.Errorf("%s:%d: %v", b.page, b.line, err)
			continue
		}
		pkg := filepath.Join(dir, fmt.Sprintf("block%d", n))
		if err := errors.Join(os.Mkdir(pkg, 0o700), os.WriteFile(filepath.Join(pkg, b.fileName()), []byte(source), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name := range preludes {
		t.Errorf("no block uses the prelude %s", name)
	}
	analyzer := filepath.Join(t.TempDir(), "determinism")
	if err := run(exec.CommandContext(t.Context(), "go", "build", "-o", analyzer, "../../orchestrator/determinism/cmd/determinism")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"vet", "./..."}, {"vet", "-vettool", analyzer, "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "ROUNDHOUSE_GOLDEN=write")
		if err := run(cmd); err != nil {
			t.Error(err)
		}
	}
}

// newModule makes an empty module of this path in a workspace with this one, so that it uses the packages of this
// repository, compiled once.
func newModule(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	here, err1 := filepath.Abs(root)
	mod, err2 := os.ReadFile(filepath.Join(root, "go.mod"))
	sum, err3 := os.ReadFile(filepath.Join(root, "go.sum"))
	testenv.OK(t, errors.Join(err1, err2, err3))
	text := strings.Replace(string(mod), "module github.com/vibedata/roundhouse", "module "+path, 1)
	version := regexp.MustCompile(`(?m)^go .*$`).FindString(text)
	for name, text := range map[string]string{"go.mod": text, "go.sum": string(sum), "go.work": fmt.Sprintf("%s\n\nuse (\n\t.\n\t%s\n)\n", version, here)} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

// fileName returns the name of the block's file, a test file for a test.
func (b block) fileName() string {
	if strings.Contains(b.text, "*testing.T") {
		return "block_test.go"
	}
	return "block.go"
}

// file returns the Go file of a block.
func (b block) file() (string, error) {
	where := fmt.Sprintf("//line %s:%d\n", b.page, b.line)
	if len(b.words) == 0 {
		if !strings.HasPrefix(b.text, "package ") {
			return "", errors.New("it is neither a whole file nor names its prelude")
		}
		return where + b.text, nil
	}
	prelude, err := os.ReadFile(filepath.Join("testdata", "preludes", b.words[0]+".go"))
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(string(prelude), placeholder)
	if !found {
		return "", fmt.Errorf("the prelude %s has no line %q", b.words[0], placeholder)
	}
	before = strings.TrimRight(before, "\t") // a line directive starts in the first column
	return before + where + b.text + "//line prelude:1\n" + after, nil
}

// unusedPreludes returns all preludes by name.
func unusedPreludes(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", "preludes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, e := range entries {
		all[strings.TrimSuffix(e.Name(), ".go")] = true
	}
	return all
}
