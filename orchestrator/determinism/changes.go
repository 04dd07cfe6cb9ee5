package determinism

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// write is a change of a variable or a field.
type write struct {
	at       inspector.Cursor
	value    ast.Expr    // the new value; nil when unknown
	function *types.Func // function around it; nil outside of functions
}

// setting is an expression that a statement changes, and its new value; nil when unknown.
type setting struct{ target, value ast.Expr }

// changes finds the changes of variables and fields outside of orchestrator code.
func (o *overview) changes(files inspector.Cursor, info *types.Info) {
	nodes := []ast.Node{(*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.RangeStmt)(nil), (*ast.CallExpr)(nil)}
	for c := range files.Preorder(nodes...) {
		for _, set := range changed(info, c.Node()) {
			if outermost(info, c) == nil || runsOutside(info, c) {
				o.change(info, c, set)
			}
		}
	}
}

// changed returns the expressions that a statement or call changes.
func changed(info *types.Info, n ast.Node) []setting {
	var all []setting
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, target := range n.Lhs {
			if n.Tok == token.DEFINE && info.Defs[named(target)] != nil {
				continue
			}
			set := setting{target: target}
			if len(n.Lhs) == len(n.Rhs) {
				set.value = n.Rhs[i]
			}
			all = append(all, set)
		}
	case *ast.IncDecStmt:
		all = append(all, setting{target: n.X})
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			all = append(all, setting{target: n.Key}, setting{target: n.Value})
		}
	case *ast.CallExpr:
		switch builtinName(info, n) {
		case "clear", "copy", "delete":
			all = append(all, setting{target: n.Args[0]})
		}
		if callee(info, n) == nil && !info.Types[n.Fun].IsType() && builtinName(info, n) == "" {
			for _, arg := range n.Args { // the callee is unknown
				if u, ok := ast.Unparen(arg).(*ast.UnaryExpr); ok && u.Op == token.AND && packageLevel(root(info, u.X)) {
					all = append(all, setting{target: u.X})
				}
			}
		}
		if target := changedByLibrary(info, n); target != nil {
			all = append(all, setting{target: target})
		}
	}
	return slices.DeleteFunc(all, func(s setting) bool { return s.target == nil })
}

// change records a change.
func (o *overview) change(info *types.Info, c inspector.Cursor, set setting) {
	x, _ := root(info, set.target).(*types.Var)
	if x == nil {
		return
	}
	w := write{at: c, value: set.value, function: functionAround(info, c)}
	o.writes[x] = append(o.writes[x], w)
	if o.isMaking(info, c, x) || o.parameters[x] && !leadsOn(info, set.target) {
		return
	}
	for e := ast.Unparen(set.target); ; {
		switch n := e.(type) {
		case *ast.SelectorExpr:
			if field, ok := info.Uses[n.Sel].(*types.Var); ok && field.IsField() {
				o.writes[field.Origin()] = append(o.writes[field.Origin()], w)
			}
			e = ast.Unparen(n.X)
		case *ast.IndexExpr:
			e = ast.Unparen(n.X)
		case *ast.StarExpr:
			e = ast.Unparen(n.X)
		case *ast.UnaryExpr:
			e = ast.Unparen(n.X)
		default:
			return
		}
	}
}

// runsOutside reports whether code in the middle of an orchestrator runs elsewhere, as an activity or a side effect.
func runsOutside(info *types.Info, c inspector.Cursor) bool {
	for around := range c.Enclosing((*ast.FuncLit)(nil)) {
		if call, ok := around.Parent().Node().(*ast.CallExpr); ok && leadsOutside(info, call) {
			return true
		}
	}
	return false
}

// isMaking reports whether x belongs to a value under construction at c: a variable of the function, the receiver of
// a method that returns it or only serves constructors, or the parameter of an option.
func (o *overview) isMaking(info *types.Info, c inspector.Cursor, x *types.Var) bool {
	f := functionAround(info, c)
	if packageLevel(x) {
		return f == nil || o.initial[f]
	}
	for around := range c.Enclosing((*ast.FuncLit)(nil)) {
		lit := around.Node().(*ast.FuncLit)
		if x.Pos() < lit.Pos() || lit.End() <= x.Pos() {
			return false // a closure changes it later
		}
		_, returned := around.Parent().Node().(*ast.ReturnStmt)
		return !o.parameters[x] || returned && lit.Type.Params.NumFields() == 1
	}
	if !o.parameters[x] {
		return true
	}
	if f == nil || o.initial[f] || o.making[f] {
		return f != nil
	}
	recv, results := f.Signature().Recv(), f.Signature().Results()
	return recv != nil && results.Len() == 1 && types.Identical(results.At(0).Type(), recv.Type())
}

// mentioned is the place of a function name.
type mentioned struct {
	at     inspector.Cursor
	called bool
}

// made finds the methods that are called only during the construction of their receiver.
func (o *overview) made(info *types.Info, sites map[*types.Func][]mentioned) {
	for grown := true; grown; {
		grown = false
		for f, all := range sites {
			if o.making[f] || f.Signature().Recv() == nil || ast.IsExported(f.Name()) {
				continue
			}
			later := slices.ContainsFunc(all, func(m mentioned) bool {
				sel, ok := m.at.Node().(*ast.SelectorExpr)
				if !ok || !m.called {
					return true
				}
				x, ok := root(info, sel.X).(*types.Var)
				return !ok || outermost(info, m.at) != nil || !o.isMaking(info, m.at, x)
			})
			if !later {
				o.making[f], grown = true, true
			}
		}
	}
}

// libraryChanges returns the functions of the standard library that change an argument, or their receiver (-1).
func libraryChanges() []struct {
	pkg      string
	names    []string
	argument int
} {
	return []struct {
		pkg      string
		names    []string
		argument int
	}{
		{"math/rand", []string{"Rand.*", "Zipf.*"}, -1},
		{"math/rand", []string{"New", "NewZipf"}, 0}, // changes the source, when it is used
		{"math/rand/v2", []string{"New", "NewZipf"}, 0},
		{"math/rand/v2", []string{"Rand.*", "Zipf.*", "PCG.*", "ChaCha8.*"}, -1},
		{"bytes", []string{"Buffer.Read*", "Buffer.Write*", "Buffer.Reset", "Buffer.Truncate", "Buffer.Next"}, -1},
		{"strings", []string{"Builder.Write*", "Builder.Reset"}, -1},
		{"container/list", []string{"List.Push*", "List.Remove", "List.Move*", "List.Insert*", "List.Init"}, -1},
		{"container/heap", []string{"*"}, 0},
		{"encoding/json", []string{"Unmarshal"}, 1},
		{"encoding/json", []string{"Decoder.Decode"}, 0},
		{"encoding/xml", []string{"Unmarshal"}, 1},
		{"encoding/gob", []string{"Decoder.Decode"}, 0},
		{"flag", []string{"*Var", "FlagSet.*Var"}, 0},
		{"sort", []string{"Strings", "Ints", "Float64s", "Slice*", "Sort", "Stable"}, 0},
		{"slices", []string{"Sort*", "Reverse"}, 0},
		{"maps", []string{"Copy", "DeleteFunc", "Insert"}, 0},
	}
}

// changedByLibrary returns the expression that a call of the standard library changes; nil for none.
func changedByLibrary(info *types.Info, call *ast.CallExpr) ast.Expr {
	f := callee(info, call)
	if f == nil || f.Pkg() == nil {
		return nil
	}
	switch f.Pkg().Path() { // most calls end here
	case "math/rand", "math/rand/v2", "bytes", "strings", "container/list", "container/heap":
	case "encoding/json", "encoding/xml", "encoding/gob", "flag", "sort", "slices", "maps":
	default:
		return nil
	}
	for _, change := range libraryChanges() {
		if change.pkg != f.Pkg().Path() || !matches(change.names, f) {
			continue
		}
		if change.argument >= 0 && change.argument < len(call.Args) {
			return call.Args[change.argument]
		}
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && change.argument < 0 {
			return sel.X
		}
	}
	return nil
}
