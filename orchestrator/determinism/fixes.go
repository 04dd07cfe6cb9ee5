package determinism

import (
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// fixes replaces a qualified name by a method of the nearest Context.
func (in *inspection) fixes(f finding) []analysis.SuggestedFix {
	ctx := in.contextAt(f)
	sel, ok := f.at.Node().(*ast.SelectorExpr)
	if f.fix == "" || ctx == "" || !ok {
		return nil
	}
	text := ctx + "." + strings.ReplaceAll(f.fix, "*", sel.Sel.Name)
	return []analysis.SuggestedFix{{
		Message:   "replace by " + text,
		TextEdits: []analysis.TextEdit{{Pos: sel.Pos(), End: sel.End(), NewText: []byte(text)}},
	}}
}

// contextAt returns the name of the nearest Context parameter around a finding, "" for none or for a shadowed name.
func (in *inspection) contextAt(f finding) string {
	for c := range f.at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		for _, field := range parameters(c.Node()) {
			for _, name := range field.Names {
				o := in.pass.TypesInfo.Defs[name]
				if o == nil || !isContext(o.Type()) || name.Name == "_" {
					continue
				}
				scope := in.pass.Pkg.Scope().Innermost(f.pos)
				if scope == nil {
					return ""
				}
				if _, seen := scope.LookupParent(name.Name, f.pos); seen != o {
					return ""
				}
				return name.Name
			}
		}
	}
	return ""
}

func parameters(n ast.Node) []*ast.Field {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Type.Params.List
	case *ast.FuncLit:
		return n.Type.Params.List
	}
	return nil
}
