package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a file with one change.
type mutant struct {
	folder, file string // relative to the module
	line         int
	change       string // description of the change
	source       []byte
}

// String describes the place and the change.
func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.change) }

// find returns every mutant of the packages' files, tests left out.
func find(ctx context.Context, patterns []string) ([]mutant, error) {
	format := `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", format}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %v: %w", patterns, err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var all []mutant
	for path := range strings.FieldsSeq(string(out)) {
		file, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := mutants(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mutants returns every mutant of a file.
func mutants(file string, source []byte) ([]mutant, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []mutant
	add := func(from, to token.Pos, text string) {
		begin, end := set.Position(from), set.Position(to)
		old := source[begin.Offset:end.Offset]
		all = append(all, mutant{folder: filepath.Dir(file), file: file, line: begin.Line, change: change(old, text),
			source: slices.Concat(source[:begin.Offset], []byte(text), source[end.Offset:])})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			for _, op := range operators[n.Op] {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
			}
		case *ast.IfStmt:
			add(n.Cond.Pos(), n.Cond.End(), "!("+text(source, set, n.Cond)+")")
		case *ast.ExprStmt:
			add(n.Pos(), n.End(), "")
		case *ast.BasicLit:
			if n.Kind == token.INT {
				add(n.Pos(), n.End(), "("+n.Value+"+1)")
			}
		case *ast.BranchStmt:
			if other, ok := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[n.Tok]; ok && n.Label == nil {
				add(n.Pos(), n.End(), other)
			}
		case *ast.ReturnStmt:
			if len(n.Results) == 1 && text(source, set, n.Results[0]) == "err" {
				add(n.Pos(), n.End(), "return nil")
			}
		case *ast.Ident:
			if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
				add(n.Pos(), n.End(), other)
			}
		case *ast.ImportSpec, *ast.Field:
			return false // tags and types do not change behavior
		}
		return true
	})
	return all, nil
}

// operators are the replacements of a binary operator.
var operators = map[token.Token][]token.Token{
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GTR}, token.LEQ: {token.LSS},
	token.GTR: {token.GEQ, token.LSS}, token.GEQ: {token.GTR},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

func text(source []byte, set *token.FileSet, n ast.Node) string {
	return string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])
}

// change describes a mutant's change, in one line.
func change(before []byte, after string) string {
	before = bytes.Join(bytes.Fields(before), []byte(" "))
	if after == "" {
		return fmt.Sprintf("%.60s is left out", before)
	}
	return fmt.Sprintf("%.60s becomes %.60s", before, strings.Join(strings.Fields(after), " "))
}
