package architecture

import (
	_ "embed" // the allowlist
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/architecture/wallclock"
)

// clockList is the allowlist of TestNoWallClock; its first lines describe it.
//
//go:embed clock.txt
var clockList string

// Tests and test kits never wait for a guessed time. They read the clock in synctest bubbles only; clock.txt lists the
// exceptions with reasons.
func TestNoWallClock(t *testing.T) {
	t.Parallel()
	packages := parseTests(t)
	reasons, used := map[string]string{}, map[string]bool{}
	for n, line := range strings.Split(clockList, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		place, reason, _ := strings.Cut(line, " = ")
		if reason == "" || reasons[place] != "" || reason == "bubble" && !hasBubbles(packages, path.Dir(place)) {
			t.Errorf("clock.txt, line %d: %q lacks a reason, occurs twice, or is in a package without bubbles", n+1, place)
		}
		reasons[place] = reason
	}
	for place, uses := range wallclock.Find(packages) {
		file, _, _ := strings.Cut(place, ":")
		if reasons[place] == "" && reasons[file] == "" {
			t.Errorf("%s: %s outside of a bubble; use testenv.Until, testenv.Await, testenv.Receive or testenv.Context",
				place, strings.Join(uses, ", "))
		}
		used[place], used[file] = true, true
	}
	for place := range reasons {
		if !used[place] {
			t.Errorf("clock.txt: %s matches nothing: delete the line", place)
		}
	}
}

func hasBubbles(packages []wallclock.Package, dir string) bool {
	bubbles := func(f *ast.File) bool { return imported(f, "testing/synctest") }
	return slices.ContainsFunc(packages, func(p wallclock.Package) bool {
		return p.Dir == dir && slices.ContainsFunc(slices.Collect(maps.Values(p.Files)), bubbles)
	})
}

// parseTests parses every test and every test kit. A kit is a package with a file that imports testing and is not
// itself a test.
func parseTests(t *testing.T) []wallclock.Package {
	t.Helper()
	all := map[string]*wallclock.Package{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		p := &wallclock.Package{Dir: filepath.ToSlash(filepath.Dir(rel)), Files: map[string]*ast.File{}}
		if known := all[p.Dir]; known != nil {
			p = known
		}
		all[p.Dir] = p
		p.Files[filepath.ToSlash(rel)] = file
		p.Kit = p.Kit || !strings.HasSuffix(name, "_test.go") && imported(file, "testing")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var packages []wallclock.Package
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		if p := *all[dir]; p.Kit {
			packages = append(packages, p)
		} else {
			maps.DeleteFunc(p.Files, func(path string, _ *ast.File) bool { return !strings.HasSuffix(path, "_test.go") })
			packages = append(packages, p)
		}
	}
	return packages
}

func imported(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(path) })
}
