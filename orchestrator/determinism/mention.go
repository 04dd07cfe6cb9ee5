package determinism

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"
)

// mention judges a name: what it stands for is refused by a rule, or has to be followed.
func (s *scan) mention(c inspector.Cursor, id *ast.Ident) {
	object := s.pass.TypesInfo.Uses[id]
	switch o := object.(type) {
	case *types.Func:
		object = o.Origin()
	case *types.Var:
		if o.IsField() || s.inside(o) {
			return
		}
	default:
		return
	}
	if object.Pkg() == nil {
		return
	}
	whole, called := expression(c)
	f := finding{at: whole, pos: id.Pos(), act: "uses " + nameOf(object)}
	if qualified(s.pass.TypesInfo, whole.Node()) {
		f.pos = whole.Node().Pos()
	}
	if called {
		f.act = "calls " + nameOf(object)
	}
	if object.Pkg().Path() == runtimePath {
		if forOutside(object) {
			f.instead = insteadOfOutside
			s.add(f)
		}
		return
	}
	if r, ok := s.rules.find(object); ok {
		if r.ordered && orderedIterator(s.pass.TypesInfo, whole) {
			return
		}
		f.instead = r.instead
		if called {
			f.fix = r.fix
		}
		s.add(f)
		return
	}
	if isFunc(object) || isFunction(object.Type()) {
		f.follow = object
		s.add(f)
	}
}

// inside says whether what a variable holds is part of what is scanned anyway.
func (s *scan) inside(v *types.Var) bool {
	held := s.held[v]
	if held == nil || s.outside[held] {
		return false
	}
	n := s.start.Node()
	return n.Pos() <= held.Pos() && held.End() <= n.End()
}

// forOutside says whether something of the runtime's package is not meant for orchestrators: it takes a context.Context
// and no *Context.
func forOutside(o types.Object) bool {
	f, ok := o.(*types.Func)
	if !ok || takesContext(f.Signature()) || (f.Signature().Recv() != nil && isContext(f.Signature().Recv().Type())) {
		return false
	}
	for v := range f.Signature().Params().Variables() {
		if isNamed(v.Type(), "context", "Context") {
			return true
		}
	}
	return false
}

// expression is the whole of what a name is the end of: pkg.Name, x.method; and says whether it is called.
func expression(name inspector.Cursor) (whole inspector.Cursor, called bool) {
	whole = name
	if sel, ok := whole.Parent().Node().(*ast.SelectorExpr); ok && sel.Sel == name.Node() {
		whole = whole.Parent()
	}
	fun := whole
	for {
		switch p := fun.Parent().Node().(type) {
		case *ast.ParenExpr, *ast.IndexListExpr:
			fun = fun.Parent()
		case *ast.IndexExpr:
			if p.X != fun.Node() {
				return whole, false
			}
			fun = fun.Parent()
		case *ast.CallExpr:
			return whole, p.Fun == fun.Node()
		default:
			return whole, false
		}
	}
}

// qualified says whether n is the name of something in another package.
func qualified(info *types.Info, n ast.Node) bool {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = info.Uses[id].(*types.PkgName)
	return ok
}

// nameOf names an object for people: "time.Now", "sync.Mutex.Lock", "helper" for what is local to a function.
func nameOf(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.Pkg().Name() + "." + plainName(f)
	}
	if packageLevel(o) {
		return o.Pkg().Name() + "." + o.Name()
	}
	return o.Name()
}

// plainName is the name within the package: "Now", "Mutex.Lock".
func plainName(o types.Object) string {
	f, ok := o.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return o.Name()
	}
	t := types.Unalias(f.Signature().Recv().Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name() + "." + f.Name()
	}
	return f.Name()
}
