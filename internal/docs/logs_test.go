package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/logs/logstest"
)

// The table lists exactly the fields that the program logs, and messages are constants. The local host and other
// developer tools log for users only.
func TestLogFields(t *testing.T) {
	t.Parallel()
	documented := logstest.Fields(t)
	logged := map[string]bool{"time": true, "level": true, "msg": true}
	set := token.NewFileSet()
	aside := []string{"testdata", "cmd", "scripts", "examples", "deploy", "localhost", "azurite", "npm", "orchestratortest"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (slices.Contains(aside, d.Name()) || path != root && strings.HasPrefix(d.Name(), ".")) {
			return skip(err)
		}
		if d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			keys, constant := fieldsOf(call)
			if !constant && filepath.Base(path) != "log.go" { // the outbox specifies its lines
				t.Errorf("%s: what a line says is a constant text; what it is about are fields", set.Position(call.Pos()))
			}
			for _, key := range keys {
				logged[key] = true
				if documented[key] == "" {
					t.Errorf("%s: the field %q is not in docs/observability.md", set.Position(call.Pos()), key)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range documented {
		if !logged[key] {
			t.Errorf("docs/observability.md has the field %q, which nothing logs", key)
		}
	}
}

func skip(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// messageAt is the position of the message among the arguments of loggers' methods.
var messageAt = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
	"Log": 2, "LogAttrs": 2, "With": -1}

// fieldsOf returns the keys that a call of slog, or of a method of a logger, names itself, and whether its message is a
// constant.
func fieldsOf(call *ast.CallExpr) (keys []string, constant bool) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil, true
	}
	if x, ok := method.X.(*ast.Ident); ok && x.Name == "slog" {
		if len(call.Args) == 2 { // slog.String and similar
			keys, _ = appendText(nil, call.Args[0])
		}
		return keys, true
	}
	at, ok := messageAt[method.Sel.Name]
	if !ok || !strings.Contains(strings.ToLower(lastName(method.X)), "log") || len(call.Args) <= at {
		return nil, true
	}
	if at >= 0 {
		_, constant = appendText(nil, call.Args[at])
	} else {
		constant = true
	}
	for i := at + 1; i < len(call.Args); i += 2 {
		var found bool
		if keys, found = appendText(keys, call.Args[i]); !found {
			break // the rest are attributes
		}
	}
	return keys, constant
}

// appendText appends the value of a constant text.
func appendText(to []string, e ast.Expr) ([]string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return append(to, text), err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		_, left := appendText(nil, e.X)
		_, right := appendText(nil, e.Y)
		return to, left && right
	}
	return to, false
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}
