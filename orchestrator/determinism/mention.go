package determinism

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// mention checks a name: a rule forbids its object, or the analysis follows it.
func (s *scan) mention(c inspector.Cursor, id *ast.Ident) {
	object := s.pass.TypesInfo.Uses[id]
	variable := false
	switch o := object.(type) {
	case *types.Func:
		object = o.Origin()
	case *types.Var:
		object, variable = o.Origin(), true
		if o.IsField() && isKey(c) {
			return // of a literal
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
		if r.ordered && orderedIterator(s.purity, whole) {
			return
		}
		f.instead, f.value = r.instead, r.value && (called || variable)
		if called {
			f.fix = r.fix
		}
		s.add(f)
		return
	}
	if variable {
		s.variable(whole, object.(*types.Var), f)
		return
	}
	if recv := object.(*types.Func).Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
		s.dynamic(whole, object.(*types.Func), f)
		return
	}
	f.follow = object
	s.add(f)
}

// isKey reports whether a name is the key of an element of a literal.
func isKey(c inspector.Cursor) bool {
	pair, ok := c.Parent().Node().(*ast.KeyValueExpr)
	return ok && pair.Key == c.Node()
}

// variable checks the mention of a variable or a field.
func (s *scan) variable(c inspector.Cursor, v *types.Var, f finding) {
	e := c.Node().(ast.Expr)
	if s.covered[rootName(e)] && !carries(v.Type()) {
		return // it is written, and checked for that
	}
	if types.IsInterface(elementOf(v.Type())) && callsMethod(c) {
		return // dynamic checks the method
	}
	lasts := packageLevel(v) || s.outlives(e, v)
	switch {
	case !lasts:
		return
	case isNamed(v.Type(), "context", "Context"):
		f.act, f.instead = "uses "+nameOf(v)+", a stored context.Context", insteadOfStored
	case !carries(v.Type()):
		f.act, f.follow = "reads "+nameOf(v), v
		if ofRuntime(v.Type()) {
			return
		}
		if sel, ok := c.Parent().Node().(*ast.SelectorExpr); ok && sel.X == e {
			field, ok := s.pass.TypesInfo.Uses[sel.Sel].(*types.Var)
			if ok && (ofRuntime(field.Type()) || len(s.writes[field.Origin()]) > 0 || len(s.writes[v]) == 0 && s.constantField(v, field)) {
				return // the field is checked
			}
		}
		if own, ok := s.own[s.origin(e)]; ok && v.IsField() {
			s.readField(own, v, f)
			return
		}
		if !packageLevel(v) && !v.IsField() {
			if !isFunctionNode(s.start.Node()) {
				return // it is read during construction
			}
			if w, ok := s.changedLater(v); ok {
				f.follow, f.act, f.instead = nil, f.act+", which "+isSet+setBy(w), insteadOfRead
			} else {
				return
			}
		}
	default:
		if own, ok := s.own[s.origin(e)]; ok && v.IsField() {
			s.readField(own, v, f)
		}
		f.follow = v
	}
	s.add(f)
}

// readField records that the function reads a field, behind a parameter, that others change.
func (s *scan) readField(own int, v *types.Var, f finding) {
	if writes := s.writes[v]; len(writes) > 0 {
		f.act, f.instead, f.follow = f.act+", which "+isSet+setBy(writes[0]), insteadOfRead, nil
		s.change(own, f)
	}
}

// callsMethod reports whether a method of c, or of an element of it, is selected.
func callsMethod(c inspector.Cursor) bool {
	for {
		switch p := c.Parent().Node().(type) {
		case *ast.SelectorExpr:
			return p.X == c.Node()
		case *ast.IndexExpr:
			if p.X != c.Node() {
				return false
			}
		case *ast.ParenExpr:
		default:
			return false
		}
		c = c.Parent()
	}
}

// elementOf returns the type of the elements of a collection, of collections of them, and so on; t for anything else.
func elementOf(t types.Type) types.Type {
	for {
		switch u := t.Underlying().(type) {
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		case *types.Map:
			t = u.Elem()
		default:
			return t
		}
	}
}

// constantField reports whether a variable of the package has a constant, or nothing, in a field.
func (in *inspection) constantField(v, field *types.Var) bool {
	value := in.aliases[v]
	if u, ok := value.(*ast.UnaryExpr); ok {
		value = u.X
	}
	lit, ok := value.(*ast.CompositeLit)
	if !ok {
		return false
	}
	return !slices.ContainsFunc(fieldsOf(in.pass.TypesInfo, lit), func(set fieldValue) bool {
		return set.field == field.Origin() && in.pass.TypesInfo.Types[set.value].Value == nil
	})
}

// plain reports whether values of a type are data alone: values of basic types, times, and collections and structures
// of such. Their origin shows in them.
func plain(t types.Type, depth int) bool {
	if depth < 0 {
		return false
	}
	if isNamed(t, "time", "Time") {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Slice:
		return plain(u.Elem(), depth-1)
	case *types.Array:
		return plain(u.Elem(), depth-1)
	case *types.Map:
		return plain(u.Key(), depth-1) && plain(u.Elem(), depth-1)
	case *types.Struct:
		for f := range u.Fields() {
			if !plain(f.Type(), depth-1) {
				return false
			}
		}
		return true
	}
	return false
}

// ofRuntime reports whether values of a type are those of the runtime, which stand for a name: activities,
// orchestrators, and collections of them.
func ofRuntime(t types.Type) bool {
	t = elementOf(t)
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == runtimePath
}

// outlives reports whether the variable or field v, mentioned by e, may be set outside of the function, or was set in
// unchecked code: it is around an orchestrator, or a field of a value from elsewhere.
func (s *scan) outlives(e ast.Expr, v *types.Var) bool {
	if !v.IsField() {
		if s.outside[s.heldOnce(v)] {
			return true
		}
		return !s.within(v) && (!s.perRun || carries(v.Type()))
	}
	r := s.origin(e)
	if r == nil || r.IsField() {
		return carries(v.Type())
	}
	if packageLevel(r) || s.captured(r) {
		return true
	}
	if !carries(v.Type()) && !isNamed(v.Type(), "context", "Context") {
		_, isOwn := s.own[r]
		return isOwn
	}
	return !s.madeHere(r)
}

// heldOnce returns the function in a variable that is set once.
func (s *scan) heldOnce(v *types.Var) ast.Node {
	for _, value := range s.held[v] {
		if s.outside[value] {
			return value
		}
	}
	return nil
}

// madeHere reports whether a variable of the function holds a value of a literal in it, so that the literal is
// checked.
func (s *scan) madeHere(v *types.Var) bool {
	if s.parameters[v] || !s.within(v) {
		return false
	}
	value, known := s.aliases[v]
	if u, ok := value.(*ast.UnaryExpr); ok {
		value = u.X
	}
	_, ok := value.(*ast.CompositeLit)
	return ok || !known && s.sets[v] == 0
}

func isFunctionNode(n ast.Node) bool {
	switch n.(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return true
	}
	return false
}

// changedLater finds a change of a variable around an orchestrator that can follow the beginning of a run.
func (s *scan) changedLater(v *types.Var) (write, bool) {
	for _, w := range s.writes[v] {
		if w.at.Node().Pos() > s.home.End() {
			return w, true
		}
		for lit := range w.at.Enclosing((*ast.FuncLit)(nil)) {
			if n := lit.Node(); v.Pos() < n.Pos() || n.End() <= v.Pos() {
				return w, true
			}
		}
	}
	return write{}, false
}

// isSet begins the description of an assignment to a variable.
const isSet = "is set "

func setBy(w write) string {
	if w.function == nil {
		return "elsewhere"
	}
	return "by " + nameOf(w.function)
}

// setElsewhere returns a finding for a variable of the package, or a field, that changes after the initialization.
func (in *inspection) setElsewhere(v *types.Var) []finding {
	if !packageLevel(v) && (!v.IsField() || carries(v.Type())) || ofRuntime(v.Type()) {
		return nil
	}
	for _, w := range in.writes[v] {
		if w.function != nil && packageLevel(v) && in.initial[w.function] {
			continue
		}
		f := finding{at: w.at, pos: w.at.Node().Pos(), act: isSet + setBy(w), instead: insteadOfRead, value: true}
		f.allowance = in.allowances[placeOf(in.pass.Fset, f.pos)]
		return []finding{f}
	}
	return nil
}

// initialValues returns the values of a variable of the package during the initialization of the package.
func (in *inspection) initialValues(v *types.Var) []ast.Expr {
	if !plain(v.Type(), 3) {
		return nil
	}
	var values []ast.Expr
	if value := in.aliases[v]; value != nil {
		values = append(values, value)
	}
	for _, w := range in.writes[v] {
		if w.value != nil && !carries(in.pass.TypesInfo.TypeOf(w.value)) && w.function != nil && in.initial[w.function] && (len(values) == 0 || values[0] != w.value) {
			values = append(values, w.value)
		}
	}
	return values
}

// forOutside reports whether an object of the runtime's package is not for orchestrators: it takes a context.Context
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

// expression returns the whole expression that a name ends: pkg.Name, x.method; and reports whether it is called.
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

// qualified reports whether n names an object of another package.
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

// nameOf returns an object's name for messages: "time.Now", "sync.Mutex.Lock", "helper" for an object local to a
// function.
func nameOf(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.Pkg().Name() + "." + plainName(f)
	}
	if isField(o) {
		return "the field " + o.Name()
	}
	if packageLevel(o) {
		return o.Pkg().Name() + "." + o.Name()
	}
	return o.Name()
}

// plainName returns the name within the package: "Now", "Mutex.Lock".
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
