package determinism

import (
	"go/ast"
	"go/token"
	"go/types"
)

// purity knows the functions of the package that have no effect, and return the same result for the same arguments
// while nothing changes.
type purity struct {
	info   *types.Info
	bodies map[*types.Func]*ast.FuncDecl
	held   map[*types.Var][]ast.Expr
	known  map[ast.Node]bool
}

// call reports whether a call has no effect.
func (p *purity) call(call *ast.CallExpr) bool {
	if p.info.Types[call.Fun].IsType() {
		return true
	}
	switch builtinName(p.info, call) {
	case "len", "cap", "min", "max", "make", "new", "append", "real", "imag", "complex":
		return true
	}
	if f := callee(p.info, call); f != nil {
		body := p.bodies[f.Origin()]
		return harmlessLibrary(f) || body != nil && !takesContext(f.Signature()) && p.function(body)
	}
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := p.info.Uses[id].(*types.Var)
	if !ok || len(p.held[v]) == 0 {
		return false
	}
	for _, value := range p.held[v] {
		if lit, ok := value.(*ast.FuncLit); !ok || !p.function(lit) {
			return false
		}
	}
	return true
}

// function reports whether a function changes only its own variables, and calls only such functions.
func (p *purity) function(n ast.Node) bool {
	if pure, ok := p.known[n]; ok {
		return pure
	}
	p.known[n] = true // in a recursion, the other statements decide
	pure := true
	ast.Inspect(n, func(inner ast.Node) bool {
		switch inner := inner.(type) {
		case *ast.GoStmt, *ast.DeferStmt, *ast.SendStmt, *ast.SelectStmt:
			pure = false
		case *ast.FuncLit:
			pure = pure && inner == n
		case *ast.UnaryExpr:
			pure = pure && inner.Op != token.ARROW
		case *ast.CallExpr:
			pure = pure && p.call(inner)
		}
		for _, set := range changed(p.info, inner) {
			x := root(p.info, set.target)
			own := x != nil && n.Pos() <= x.Pos() && x.Pos() < n.End() || types.ExprString(set.target) == "_"
			pure = pure && own && !leadsOn(p.info, set.target)
		}
		return pure
	})
	p.known[n] = pure
	return pure
}

// harmlessLibrary reports whether a function of a library has no effect, and the same result for the same arguments.
func harmlessLibrary(f *types.Func) bool {
	if f.Pkg() == nil {
		return false
	}
	if recv := f.Signature().Recv(); recv != nil {
		switch f.Pkg().Path() {
		case "time":
			return (isNamed(recv.Type(), "time", "Time") || isNamed(recv.Type(), "time", "Duration")) && f.Name() != "Local"
		case "regexp":
			return true
		}
		return false
	}
	switch f.Pkg().Path() {
	case "strings", "strconv", "path", "unicode", "unicode/utf8", "math", "math/bits", "cmp":
		return true
	case "slices":
		switch f.Name() {
		case "Contains", "Index", "Equal", "Compare", "Max", "Min", "IsSorted":
			return true
		}
	case "fmt":
		return f.Name() == "Sprint" || f.Name() == "Sprintf" || f.Name() == "Sprintln" || f.Name() == "Errorf"
	case "errors":
		return f.Name() == "New" || f.Name() == "Is"
	case runtimePath:
		return f.Name() == "Permanent"
	}
	return false
}
