package determinism

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"
)

// overview holds facts about a package that are collected before the analysis.
type overview struct {
	// outside holds expressions that are not orchestrator code even inside of it: the functions given to NewActivity
	// and SideEffect.
	outside map[ast.Node]bool
	// held lists the values of variables and fields that carry functions: those of a function or interface type, and
	// slices, arrays and maps of them. For a parameter it lists the arguments in this package.
	held map[*types.Var][]ast.Expr
	// aliases maps each variable that is set once to its value.
	aliases map[*types.Var]ast.Expr
	// sets counts the assignments to a variable.
	sets map[*types.Var]int
	// parameters are those of all functions, receivers included.
	parameters map[*types.Var]bool
	// bodies are the functions of the package.
	bodies map[*types.Func]*ast.FuncDecl
	// purity knows the functions without effects.
	purity *purity
	// entries holds methods that are used as values outside of orchestrator code, to register an orchestrator.
	entries map[*types.Func]bool
	// perRun holds functions that orchestrator code mentions: values that they create may belong to one run.
	perRun map[*types.Func]bool
	// initial holds functions that run only during the initialization of the package.
	initial map[*types.Func]bool
	// making holds methods that are called only on values under construction.
	making map[*types.Func]bool
	// writes holds the changes of variables and fields outside of orchestrator code.
	writes map[*types.Var][]write
}

func survey(files inspector.Cursor, info *types.Info) *overview {
	o := &overview{
		outside:    map[ast.Node]bool{},
		held:       map[*types.Var][]ast.Expr{},
		aliases:    map[*types.Var]ast.Expr{},
		sets:       map[*types.Var]int{},
		parameters: map[*types.Var]bool{},
		bodies:     map[*types.Func]*ast.FuncDecl{},
		entries:    map[*types.Func]bool{},
		perRun:     map[*types.Func]bool{},
		initial:    map[*types.Func]bool{},
		making:     map[*types.Func]bool{},
		writes:     map[*types.Var][]write{},
	}
	o.purity = &purity{info: info, bodies: o.bodies, held: o.held, known: map[ast.Node]bool{}}
	o.functions(files, info)
	o.settings(files, info)
	o.mentions(files, info)
	o.changes(files, info)
	for c := range files.Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		if !leadsOutside(info, call) {
			continue
		}
		for _, arg := range call.Args {
			if !isFunction(info.TypeOf(arg)) {
				continue
			}
			o.outside[arg] = true
			if id, ok := ast.Unparen(arg).(*ast.Ident); ok {
				if v, ok := info.Uses[id].(*types.Var); ok {
					for _, value := range o.held[v] {
						o.outside[value] = true
					}
				}
			}
		}
	}
	return o
}

// leadsOutside reports whether the function arguments of a call run outside of orchestrators.
func leadsOutside(info *types.Info, call *ast.CallExpr) bool {
	f := callee(info, call)
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != runtimePath {
		return false
	}
	return f.Name() == "NewActivity" || f.Name() == "SideEffect"
}

// functions finds the functions and all parameters.
func (o *overview) functions(files inspector.Cursor, info *types.Info) {
	for c := range files.Preorder((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		fields := parameters(c.Node())
		if d, ok := c.Node().(*ast.FuncDecl); ok {
			if f, ok := info.Defs[d.Name].(*types.Func); ok && d.Body != nil {
				o.bodies[f] = d
			}
			if d.Recv != nil {
				fields = append(d.Recv.List[:len(d.Recv.List):len(d.Recv.List)], fields...)
			}
		}
		for _, field := range fields {
			for _, name := range field.Names {
				if v, ok := info.Defs[name].(*types.Var); ok {
					o.parameters[v] = true
				}
			}
		}
	}
}

// settings finds the values of variables.
func (o *overview) settings(files inspector.Cursor, info *types.Info) {
	set := func(target, value ast.Expr) {
		id := named(target)
		if id == nil {
			return
		}
		v, ok := info.ObjectOf(id).(*types.Var)
		if !ok {
			return
		}
		v = v.Origin()
		if ast.Unparen(target) == ast.Expr(id) {
			o.sets[v]++
			if o.aliases[v] = value; o.sets[v] > 1 {
				delete(o.aliases, v)
			}
		}
		o.hold(info, v, value)
	}
	setAll := func(targets, from []ast.Expr) {
		for i, target := range targets {
			if len(from) == len(targets) {
				set(target, from[i])
			} else if assertion, ok := only(from).(*ast.TypeAssertExpr); ok && i == 0 {
				set(target, assertion)
			} else {
				set(target, nil)
			}
		}
	}
	nodes := []ast.Node{(*ast.ValueSpec)(nil), (*ast.AssignStmt)(nil), (*ast.RangeStmt)(nil), (*ast.CompositeLit)(nil), (*ast.CallExpr)(nil)}
	for c := range files.Preorder(nodes...) {
		switch n := c.Node().(type) {
		case *ast.ValueSpec:
			if len(n.Values) > 0 { // a zero value cannot be called
				setAll(expressions(n.Names), n.Values)
			}
		case *ast.AssignStmt:
			setAll(n.Lhs, n.Rhs)
		case *ast.RangeStmt:
			setAll([]ast.Expr{n.Key, n.Value}, nil)
		case *ast.CompositeLit:
			for _, set := range fieldsOf(info, n) {
				o.hold(info, set.field, set.value)
			}
		case *ast.CallExpr:
			o.passes(info, n)
		}
	}
}

// only returns the only expression of a list, nil for any other number.
func only(list []ast.Expr) ast.Expr {
	if len(list) != 1 {
		return nil
	}
	return ast.Unparen(list[0])
}

// hold records a value of a variable or field that carries functions.
func (o *overview) hold(info *types.Info, v *types.Var, value ast.Expr) {
	if value != nil && carries(v.Type()) {
		o.put(info, v, v.Type(), value)
	}
}

// put records a value of type t of a variable, or its elements.
func (o *overview) put(info *types.Info, v *types.Var, t types.Type, value ast.Expr) {
	element := t
	switch u := t.Underlying().(type) {
	case *types.Slice:
		element = u.Elem()
	case *types.Array:
		element = u.Elem()
	case *types.Map:
		element = u.Elem()
	}
	switch e := ast.Unparen(value).(type) {
	case *ast.CompositeLit:
		if element == t {
			break
		}
		for _, value := range e.Elts {
			if pair, ok := value.(*ast.KeyValueExpr); ok {
				value = pair.Value
			}
			o.put(info, v, element, value)
		}
		return
	case *ast.CallExpr:
		if builtinName(info, e) == "append" {
			for _, value := range e.Args {
				o.put(info, v, element, value)
			}
			return
		}
		o.putReturned(info, v, callee(info, e))
	case *ast.Ident:
		if info.Uses[e] == types.Object(v) {
			return
		}
	}
	o.held[v] = append(o.held[v], ast.Unparen(value))
}

// putReturned records the function literals that a function of the package returns.
func (o *overview) putReturned(info *types.Info, v *types.Var, f *types.Func) {
	if f == nil || o.bodies[f.Origin()] == nil {
		return
	}
	ast.Inspect(o.bodies[f.Origin()].Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			for _, result := range r.Results {
				if lit, ok := ast.Unparen(result).(*ast.FuncLit); ok && types.Identical(info.TypeOf(lit), v.Type().Underlying()) {
					o.held[v] = append(o.held[v], lit)
				}
			}
		}
		_, literal := n.(*ast.FuncLit)
		return !literal
	})
}

// passes records the arguments of a call to a function of the package.
func (o *overview) passes(info *types.Info, call *ast.CallExpr) {
	f := callee(info, call)
	if f == nil || o.bodies[f.Origin()] == nil {
		return
	}
	sig := f.Origin().Signature()
	for i, arg := range call.Args {
		at := min(i, sig.Params().Len()-1)
		if at >= 0 {
			o.hold(info, sig.Params().At(at), arg)
		}
	}
}

// fieldValue is a field of a composite literal and its value.
type fieldValue struct {
	field *types.Var
	value ast.Expr
}

// fieldsOf returns the fields that a composite literal sets, in the order of the source.
func fieldsOf(info *types.Info, n *ast.CompositeLit) []fieldValue {
	t := info.TypeOf(n)
	if p, ok := t.Underlying().(*types.Pointer); ok { // a literal within a literal may leave out &T
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	var fields []fieldValue
	for i, element := range n.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			fields = append(fields, fieldValue{s.Field(i).Origin(), element})
		} else if field, ok := info.Uses[named(pair.Key)].(*types.Var); ok {
			fields = append(fields, fieldValue{field.Origin(), pair.Value})
		}
	}
	return fields
}

// carries reports whether values of a type may lead to functions: they are functions, have methods behind an
// interface, or are collections of such.
func carries(t types.Type) bool {
	if t == nil || types.Identical(t, types.Universe.Lookup("error").Type()) {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Signature:
		return true
	case *types.Interface:
		return u.NumMethods() > 0 && !isNamed(t, "context", "Context")
	case *types.Slice:
		return carries(u.Elem())
	case *types.Array:
		return carries(u.Elem())
	case *types.Map:
		return carries(u.Elem())
	}
	return false
}

// mentions finds the places where functions are mentioned.
func (o *overview) mentions(files inspector.Cursor, info *types.Info) {
	from := map[*types.Func]map[*types.Func]bool{} // nil means the declaration of a variable
	dynamic := map[string]bool{}                   // names of methods that are called through interfaces
	sites := map[*types.Func][]mentioned{}
	for c := range files.Preorder((*ast.Ident)(nil)) {
		f, ok := info.Uses[c.Node().(*ast.Ident)].(*types.Func)
		if ok && f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
			dynamic[f.Name()] = true
		}
		if !ok || o.bodies[f.Origin()] == nil {
			continue
		}
		f = f.Origin()
		judged := outermost(info, c) != nil
		if judged {
			o.perRun[f] = true
		}
		whole, called := expression(c)
		if !called && !judged && f.Signature().Recv() != nil && takesContext(f.Signature()) {
			o.entries[f] = true
		}
		if from[f] == nil {
			from[f] = map[*types.Func]bool{}
		}
		from[f][functionAround(info, c)] = true
		sites[f] = append(sites[f], mentioned{whole, called})
	}
	for f := range o.bodies {
		switch {
		case f.Name() == "init" && f.Signature().Recv() == nil:
			o.initial[f] = true
		case from[f] == nil && !dynamic[f.Name()] && formOfOrchestrator(f.Signature()):
			o.entries[f] = true // another package registers it
		}
	}
	o.made(info, sites)
	for grown := true; grown; {
		grown = false
		for f := range o.bodies {
			if o.initial[f] || ast.IsExported(f.Name()) || len(from[f]) == 0 {
				continue
			}
			always := true
			for around := range from[f] {
				always = always && (around == nil || o.initial[around])
			}
			if always {
				o.initial[f], grown = true, true
			}
		}
	}
}

// formOfOrchestrator reports whether a method has the parameters and results of an orchestrator. A receiver that
// holds a Context belongs to one run.
func formOfOrchestrator(sig *types.Signature) bool {
	return sig.Recv() != nil && !holdsContext(sig.Recv().Type(), 2) && sig.Params().Len() == 2 && isContext(sig.Params().At(0).Type()) && sig.Results().Len() == 2
}

// outermost returns the outermost orchestrator code around a node, nil for none.
func outermost(info *types.Info, c inspector.Cursor) (outermost ast.Node) {
	for around := range c.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		var t types.Type
		switch n := around.Node().(type) {
		case *ast.FuncDecl:
			t = info.TypeOf(n.Name)
		case *ast.FuncLit:
			t = info.TypeOf(n)
		}
		if sig, ok := t.(*types.Signature); ok && takesContext(sig) {
			outermost = around.Node()
		}
	}
	return outermost
}

// functionAround returns the declared function around a node.
func functionAround(info *types.Info, c inspector.Cursor) *types.Func {
	for around := range c.Enclosing((*ast.FuncDecl)(nil)) {
		f, _ := info.Defs[around.Node().(*ast.FuncDecl).Name].(*types.Func)
		return f
	}
	return nil
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

// callee returns the declared function or method that a call names; nil for all others.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	if id := named(call.Fun); id != nil {
		f, _ := info.Uses[id].(*types.Func)
		return f
	}
	return nil
}

// named returns the identifier of a possibly qualified, possibly instantiated name.
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
