package determinism

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

// dynamic checks the call of an interface method by the possible types of the interface there. Values that the
// function itself converts to an interface, or gets from its callers, have been checked at the conversion.
func (s *scan) dynamic(c inspector.Cursor, method *types.Func, f finding) {
	sel, ok := c.Node().(*ast.SelectorExpr)
	if !ok {
		return
	}
	v := s.behind(sel)
	if v == nil {
		if _, ok := ast.Unparen(sel.X).(*ast.TypeAssertExpr); ok {
			s.follow(sel, s.implementers(method), method, f)
		}
		return
	}
	if v.Pkg() != s.pass.Pkg {
		f.follow = v
		s.add(f)
		return
	}
	var concrete []types.Type
	switch {
	case s.parameters[v] && s.within(v):
		if _, own := s.own[v]; !own || !s.judged || len(s.held[v]) > 0 {
			return // its callers convert
		}
	case !v.IsField() && s.within(v):
		if _, ok := s.aliases[v].(*ast.TypeAssertExpr); !ok && s.sets[v] > 0 {
			return // the value is checked at its conversion
		}
	case v.IsField() && !s.outlives(sel.X, v):
		return
	default:
		concrete = s.concrete(v, map[any]bool{})
	}
	if len(concrete) == 0 {
		concrete = s.implementers(method)
	}
	s.follow(sel, concrete, method, f)
}

// follow follows a call of an interface's method to the methods of types.
func (s *scan) follow(sel *ast.SelectorExpr, concrete []types.Type, method *types.Func, f finding) {
	for _, t := range concrete {
		m := methodOf(t, method)
		if m == nil || m.Pkg() == nil {
			continue
		}
		f.act = "calls " + nameOf(m)
		if r, ok := s.rules.find(m); ok {
			f.follow, f.instead, f.value = nil, r.instead, r.value
		} else {
			f.follow, f.instead, f.value = m, "", false
			s.give(f.at, m, receiver, sel.X)
		}
		s.add(f)
	}
}

// behind returns the variable or field that holds the interface of a method call; nil for any other expression.
func (s *scan) behind(sel *ast.SelectorExpr) *types.Var {
	info := s.pass.TypesInfo
	if path, ok := info.Selections[sel]; ok && len(path.Index()) > 1 { // through embedded fields
		t := path.Recv()
		var field *types.Var
		for _, i := range path.Index()[:len(path.Index())-1] {
			if p, ok := t.Underlying().(*types.Pointer); ok {
				t = p.Elem()
			}
			structure, ok := t.Underlying().(*types.Struct)
			if !ok {
				return nil
			}
			field = structure.Field(i).Origin()
			t = field.Type()
		}
		return field
	}
	if id := named(sel.X); id != nil {
		if v, ok := info.Uses[id].(*types.Var); ok {
			return v.Origin()
		}
	}
	return nil
}

// concrete returns the types that the package puts behind a variable of an interface type.
func (in *inspection) concrete(v *types.Var, seen map[any]bool) []types.Type {
	if seen[v] {
		return nil
	}
	seen[v] = true
	var all []types.Type
	for _, value := range in.held[v] {
		all = append(all, in.typesOf(value, seen)...)
	}
	return all
}

func (in *inspection) typesOf(e ast.Expr, seen map[any]bool) []types.Type {
	info := in.pass.TypesInfo
	t := info.TypeOf(e)
	if t == nil || !types.IsInterface(t) {
		if t == nil || t == types.Typ[types.UntypedNil] {
			return nil
		}
		return []types.Type{t}
	}
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		if info.Types[call.Fun].IsType() {
			return in.typesOf(call.Args[0], seen)
		}
		return in.returned(callee(info, call), seen)
	}
	if id := named(e); id != nil {
		if v, ok := info.Uses[id].(*types.Var); ok {
			return in.concrete(v.Origin(), seen)
		}
	}
	return nil
}

// returned returns the types of the first result of a function of the package.
func (in *inspection) returned(f *types.Func, seen map[any]bool) []types.Type {
	if f == nil || in.bodies[f.Origin()] == nil || seen[f.Origin()] {
		return nil
	}
	seen[f.Origin()] = true
	var all []types.Type
	ast.Inspect(in.bodies[f.Origin()].Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			all = append(all, in.typesOf(r.Results[0], seen)...)
		}
		_, literal := n.(*ast.FuncLit)
		return !literal
	})
	return all
}

// implementers returns the types of this package, and of those that it imports, that implement the interface of a
// method. Interfaces of the standard library have too many implementations.
func (in *inspection) implementers(method *types.Func) []types.Type {
	i, ok := method.Signature().Recv().Type().Underlying().(*types.Interface)
	if !ok || method.Pkg() == nil || in.standard(method.Pkg().Path()) {
		return nil
	}
	var all []types.Type
	for _, pkg := range append([]*types.Package{in.pass.Pkg}, in.pass.Pkg.Imports()...) {
		if in.standard(pkg.Path()) || pkg.Path() == runtimePath {
			continue
		}
		for _, name := range pkg.Scope().Names() {
			n, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || n.IsAlias() || types.IsInterface(n.Type()) {
				continue
			}
			if named, ok := n.Type().(*types.Named); !ok || named.TypeParams().Len() > 0 {
				continue
			}
			if p := types.NewPointer(n.Type()); types.Implements(p, i) {
				all = append(all, p)
			}
		}
	}
	return all
}

// methodOf returns the method of t that a call of an interface's method runs; nil for those of interfaces.
func methodOf(t types.Type, method *types.Func) *types.Func {
	found, _, _ := types.LookupFieldOrMethod(t, true, method.Pkg(), method.Name())
	f, ok := found.(*types.Func)
	if !ok || types.IsInterface(f.Signature().Recv().Type()) {
		return nil
	}
	return f.Origin()
}

// bring checks a value that is converted to an interface type: its methods count as mentioned.
func (s *scan) bring(c inspector.Cursor, value ast.Expr, to types.Type) {
	for _, f := range s.brought(c, value, to) {
		s.add(f)
	}
}

func (in *inspection) brought(c inspector.Cursor, value ast.Expr, to types.Type) []finding {
	if to == nil || !carries(to) || !types.IsInterface(to) {
		return nil
	}
	from := in.pass.TypesInfo.TypeOf(value)
	if from == nil || types.IsInterface(from) || from == types.Typ[types.UntypedNil] {
		return nil
	}
	var all []finding
	for method := range to.Underlying().(*types.Interface).Methods() {
		m := methodOf(from, method)
		if m == nil || !in.judgedBySource(m) {
			continue
		}
		f := finding{at: c, pos: value.Pos(), act: "uses " + nameOf(m), follow: m}
		f.allowance = in.allowances[placeOf(in.pass.Fset, f.pos)]
		all = append(all, f)
	}
	return all
}

// returns checks the results of a return statement.
func (s *scan) returns(c inspector.Cursor, n *ast.ReturnStmt) {
	var results *types.Tuple
	for around := range c.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		var t types.Type
		switch n := around.Node().(type) {
		case *ast.FuncDecl:
			t = s.pass.TypesInfo.TypeOf(n.Name)
		case *ast.FuncLit:
			t = s.pass.TypesInfo.TypeOf(n)
		}
		if sig, ok := t.(*types.Signature); ok {
			results = sig.Results()
		}
		break
	}
	if results == nil || results.Len() != len(n.Results) {
		return
	}
	for i, value := range n.Results {
		s.bring(c, value, results.At(i).Type())
	}
}

// literal checks the elements of a composite literal.
func (s *scan) literal(c inspector.Cursor, n *ast.CompositeLit) {
	t := s.pass.TypesInfo.TypeOf(n)
	if t == nil {
		return
	}
	var element types.Type
	switch u := t.Underlying().(type) {
	case *types.Slice:
		element = u.Elem()
	case *types.Array:
		element = u.Elem()
	case *types.Map:
		element = u.Elem()
	default:
		for _, set := range fieldsOf(s.pass.TypesInfo, n) {
			s.bring(c, set.value, set.field.Type())
		}
		return
	}
	for _, value := range n.Elts {
		if pair, ok := value.(*ast.KeyValueExpr); ok {
			value = pair.Value
		}
		s.bring(c, value, element)
	}
}

// arguments checks the arguments of a call.
func (s *scan) arguments(c inspector.Cursor, call *ast.CallExpr) {
	info := s.pass.TypesInfo
	if info.Types[call.Fun].IsType() {
		s.bring(c, call.Args[0], info.TypeOf(call))
		return
	}
	sig, ok := info.TypeOf(call.Fun).(*types.Signature)
	if f := callee(info, call); f != nil {
		sig = f.Origin().Signature() // its type parameters have methods, too
	}
	if !ok {
		return
	}
	for i, arg := range call.Args {
		at := min(i, sig.Params().Len()-1)
		if at < 0 {
			continue
		}
		t := sig.Params().At(at).Type()
		if slice, ok := t.(*types.Slice); ok && sig.Variadic() && at == sig.Params().Len()-1 && !call.Ellipsis.IsValid() {
			t = slice.Elem()
		}
		s.bring(c, arg, t)
	}
}

// judgedBySource reports whether a function's source is analyzed: its package is neither of the standard library nor
// the runtime.
func (in *inspection) judgedBySource(f *types.Func) bool {
	return f.Pkg() != nil && f.Pkg().Path() != runtimePath && !in.standard(f.Pkg().Path())
}

// standard reports whether a path belongs to the standard library: it has no host, and does not share the first
// element of this package's path.
func (in *inspection) standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	own, _, _ := strings.Cut(in.pass.Pkg.Path(), "/")
	return first != own && !strings.Contains(first, ".")
}
