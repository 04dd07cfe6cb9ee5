package determinism

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"
)

// survey looks over a package before anything is judged.
//
// outside holds the expressions that are no orchestrator code even in the middle of one: the functions given to
// NewActivity and SideEffect. held maps each variable that is set exactly once, to a function, to the expression for it.
func survey(files inspector.Cursor, info *types.Info) (outside map[ast.Node]bool, held map[*types.Var]ast.Expr) {
	values := settings(files, info)
	held = map[*types.Var]ast.Expr{}
	for v, all := range values {
		if len(all) != 1 || all[0] == nil {
			continue
		}
		switch e := ast.Unparen(all[0]).(type) {
		case *ast.FuncLit, *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr:
			held[v] = e
		}
	}
	outside = map[ast.Node]bool{}
	for c := range files.Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		if !leadsOutside(info, call) {
			continue
		}
		for _, arg := range call.Args {
			if !isFunction(info.TypeOf(arg)) {
				continue
			}
			outside[arg] = true
			if id, ok := ast.Unparen(arg).(*ast.Ident); ok {
				if v, ok := info.Uses[id].(*types.Var); ok && held[v] != nil {
					outside[held[v]] = true
				}
			}
		}
	}
	return outside, held
}

// leadsOutside says whether the functions that a call is given run outside of orchestrators.
func leadsOutside(info *types.Info, call *ast.CallExpr) bool {
	f := callee(info, call)
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != runtimePath {
		return false
	}
	return f.Name() == "NewActivity" || f.Name() == "SideEffect"
}

// settings lists what each variable of a function type is set to. A nil stands for what cannot be followed.
func settings(files inspector.Cursor, info *types.Info) map[*types.Var][]ast.Expr {
	values := map[*types.Var][]ast.Expr{}
	set := func(target, value ast.Expr) {
		id := named(target)
		if id == nil {
			return
		}
		if v, ok := info.ObjectOf(id).(*types.Var); ok && !v.IsField() && isFunction(v.Type()) {
			values[v] = append(values[v], value)
		}
	}
	setAll := func(targets, from []ast.Expr) {
		for i, target := range targets {
			if len(from) == len(targets) {
				set(target, from[i])
			} else {
				set(target, nil)
			}
		}
	}
	nodes := []ast.Node{(*ast.ValueSpec)(nil), (*ast.AssignStmt)(nil), (*ast.RangeStmt)(nil), (*ast.UnaryExpr)(nil), (*ast.FuncType)(nil)}
	for c := range files.Preorder(nodes...) {
		switch n := c.Node().(type) {
		case *ast.ValueSpec:
			if len(n.Values) > 0 { // nobody can call a zero value
				setAll(expressions(n.Names), n.Values)
			}
		case *ast.AssignStmt:
			setAll(n.Lhs, n.Rhs)
		case *ast.RangeStmt:
			setAll([]ast.Expr{n.Key, n.Value}, nil)
		case *ast.UnaryExpr:
			if n.Op == token.AND { // whoever has the address can set it
				set(n.X, nil)
			}
		case *ast.FuncType:
			for _, parameter := range n.Params.List { // each call sets it
				setAll(expressions(parameter.Names), nil)
			}
		}
	}
	return values
}

func expressions(names []*ast.Ident) []ast.Expr {
	all := make([]ast.Expr, len(names))
	for i, name := range names {
		all[i] = name
	}
	return all
}

func isFunction(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// callee is the declared function or method that a call names; nil for all others.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	if id := named(call.Fun); id != nil {
		f, _ := info.Uses[id].(*types.Func)
		return f
	}
	return nil
}

// named is the identifier of a possibly qualified, possibly instantiated name.
func named(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return named(e.X)
	case *ast.IndexListExpr:
		return named(e.X)
	}
	return nil
}
