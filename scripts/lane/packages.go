package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// pkg is a package with tests, as `go list` describes it.
type pkg struct {
	ImportPath, Dir, Name     string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
	TestImports, XTestImports []string
	Module                    struct{ Path string }
	bytes                     int64 // of its tests
	startsGoroutines          bool
}

// list returns the packages with tests that match the patterns in the module in dir, the largest tests first, so that the longest do
// not begin last.
func list(ctx context.Context, dir string, patterns []string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,Name,GoFiles,TestGoFiles,XTestGoFiles,TestImports,XTestImports,Module"}, patterns...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %v in %s: %w", patterns, dir, err)
	}
	var found []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		if err := p.inspect(); err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	slices.SortStableFunc(found, func(a, b pkg) int { return cmp.Compare(b.bytes, a.bytes) })
	return found, nil
}

// concurrent reports whether the package starts goroutines of its own, outside of its tests: the race detector can
// find races in it. Main packages start their goroutines in other processes, which tests build without the detector.
// Packages with browser tests would take minutes; the nightly lane runs them with the detector, too.
func (p pkg) concurrent() bool {
	return p.startsGoroutines && p.Name != "main" && !p.imports(p.Module.Path+"/internal/browser")
}

// waits reports whether the package's tests run hosts and handlers as other processes, for which they mostly wait.
func (p pkg) waits() bool {
	return p.imports(p.Module.Path+"/internal/localhost") || p.imports(p.Module.Path+"/internal/acceptance/drill")
}

// imports reports whether the package's tests import another one.
func (p pkg) imports(path string) bool {
	return slices.Contains(p.TestImports, path) || slices.Contains(p.XTestImports, path)
}

// inspect reads facts that `go list` does not report.
func (p *pkg) inspect() error {
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		info, err := os.Stat(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		p.bytes += info.Size()
	}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			p.startsGoroutines = p.startsGoroutines || starts(n)
			return !p.startsGoroutines
		})
	}
	return nil
}

// starts reports whether a node starts a goroutine: a go statement, or the Go method of a group.
func starts(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}
