package determinism

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

const (
	insteadOfCondition  = "a condition may be called any number of times; change it behind the wait"
	insteadOfSideEffect = "a replay does not run that; return the value instead"
)

// receiver is the number of the receiver among the parameters.
const receiver = -1

// effect is a change of the value behind a parameter, or a read of a value there that others change.
type effect struct {
	Param   int
	Act     string // a verb and its object
	Instead string
}

// changes is the fact that a function affects its parameters.
type changes struct{ Effects []effect }

// AFact marks changes as a fact that packages export.
func (*changes) AFact() {}

func (c *changes) String() string {
	text := ""
	for _, e := range c.Effects {
		text += e.Act + ";"
	}
	return text
}

// change is a change of the value behind a parameter, or a read of a value there that others change.
type change struct {
	param int
	at    finding
}

// passed is an argument of a call that refers to a parameter of the caller, or to shared state.
type passed struct {
	to     *types.Func
	param  int // of to
	own    int // of the function
	root   *types.Var
	shared bool // it refers to state that all runs share, instead
	apart  bool // it refers to state that an isolated function must not change, instead
	at     finding
}

// write checks the change in a statement. Package variables, and variables around an orchestrator, outlive a run, and
// other runs read them.
func (s *scan) write(c inspector.Cursor) {
	for _, set := range changed(s.pass.TypesInfo, c.Node()) {
		if id := rootName(set.target); id != nil {
			s.covered[id] = true
		}
		f := finding{at: c, pos: c.Node().Pos(), instead: insteadOfShared}
		v := s.origin(set.target)
		if v == nil {
			continue
		}
		own, isOwn := s.own[v]
		switch {
		case packageLevel(v):
			f.act = "writes the package variable " + nameOf(v)
			s.add(f)
		case s.captured(v):
			f.act = "changes " + types.ExprString(set.target) + ", which all runs share"
			s.add(f)
		case isOwn && s.indirect(set.target):
			f.act = "changes " + types.ExprString(set.target)
			s.change(own, f)
		}
	}
}

func (s *scan) change(own int, f finding) {
	f.allowance = s.allowances[placeOf(s.pass.Fset, f.pos)]
	s.changes = append(s.changes, change{own, f})
}

// origin returns the variable behind an expression, through variables that are set once.
func (s *scan) origin(e ast.Expr) *types.Var {
	v, _ := root(s.pass.TypesInfo, e).(*types.Var)
	for range 5 {
		if v == nil || packageLevel(v) || s.parameters[v] || s.aliases[v] == nil || !refers(v.Type()) {
			return v
		}
		next, _ := root(s.pass.TypesInfo, s.aliases[v]).(*types.Var)
		if next == nil || next == v {
			return v
		}
		v = next
	}
	return v
}

// refers reports whether a change of the value behind a variable shows in its copies.
func refers(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Interface, *types.Signature, *types.Chan:
		return true
	}
	return false
}

// indirect reports whether an expression that begins with a parameter refers to a value that the caller sees as well.
func (s *scan) indirect(e ast.Expr) bool {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		v, _ := s.pass.TypesInfo.ObjectOf(id).(*types.Var)
		_, own := s.own[v]
		return v != nil && !own && s.aliases[v] != nil
	}
	return leadsOn(s.pass.TypesInfo, e)
}

// leadsOn reports whether an expression reaches another value from its root, through a pointer, a map or a slice.
func leadsOn(info *types.Info, e ast.Expr) bool {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
			continue
		case *ast.StarExpr:
			return true
		default:
			return false
		}
		if t := info.TypeOf(e); t != nil && refers(t) {
			return true
		}
	}
}

// captured reports whether a variable is declared around the orchestrator, so that all runs share it.
func (s *scan) captured(v *types.Var) bool {
	return !s.perRun && !packageLevel(v) && !v.IsField() && v.Pkg() == s.pass.Pkg && !s.within(v)
}

func (s *scan) within(v *types.Var) bool { return s.home.Pos() <= v.Pos() && v.Pos() < s.home.End() }

func rootName(e ast.Expr) *ast.Ident {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// hand records arguments of a call that refer to shared state or to parameters of the caller.
func (s *scan) hand(c inspector.Cursor, call *ast.CallExpr) {
	f := callee(s.pass.TypesInfo, call)
	if f == nil || f.Pkg() == nil || f.Pkg().Path() == runtimePath {
		return
	}
	f = f.Origin()
	sig := f.Signature()
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && sig.Recv() != nil {
		s.give(c, f, receiver, sel.X)
	}
	for i, arg := range call.Args {
		if at := min(i, sig.Params().Len()-1); at >= 0 && refers(s.pass.TypesInfo.TypeOf(arg)) {
			s.give(c, f, at, arg)
		}
	}
}

// give records that a parameter of the callee at c refers to the value of an expression.
func (s *scan) give(c inspector.Cursor, to *types.Func, param int, e ast.Expr) {
	v := s.origin(e)
	if v == nil {
		return
	}
	p := passed{to: to, param: param, root: v, at: finding{at: c, pos: c.Node().Pos(), act: "calls " + nameOf(to), instead: insteadOfShared}}
	own, isOwn := s.own[v]
	switch {
	case packageLevel(v) || s.captured(v):
		p.shared = true
	case isOwn && (refers(v.Type()) || s.indirect(e)):
		p.own = own
	default:
		return
	}
	p.at.allowance = s.allowances[placeOf(s.pass.Fset, p.at.pos)]
	s.passes = append(s.passes, p)
}

// spreadChanges propagates effects on parameters from callees to callers.
func (in *inspection) spreadChanges() {
	for _, f := range in.all {
		if object, ok := f.object.(*types.Func); ok {
			for _, c := range f.changes {
				if c.at.allowed() {
					c.at.allowance.used = true
				} else {
					in.addEffect(object, effect{c.param, c.at.act, c.at.instead})
				}
			}
		}
	}
	for grown := true; grown; {
		grown = false
		for _, f := range in.all {
			object, ok := f.object.(*types.Func)
			if !ok {
				continue
			}
			for _, p := range f.passes {
				if p.shared || p.apart || p.at.allowed() {
					continue
				}
				for _, e := range in.effectsOf(p.to, p.param) {
					grown = in.addEffect(object, effect{p.own, p.at.act + ", which " + e.Act, e.Instead}) || grown
				}
			}
		}
	}
	for _, f := range in.all {
		object, _ := f.object.(*types.Func)
		for _, p := range f.passes {
			if p.shared && !f.judged && object != nil && packageLevel(p.root) && slices.ContainsFunc(in.effectsOf(p.to, p.param), effect.shared) {
				in.writes[p.root] = append(in.writes[p.root], write{at: p.at.at, function: object})
			}
		}
		if effects := in.effects[object]; len(effects) > 0 {
			in.pass.ExportObjectFact(object, &changes{effects})
		}
	}
}

func (e effect) shared() bool { return e.Instead == insteadOfShared }

// concludeChanges turns the effects on shared state into findings.
func (in *inspection) concludeChanges() {
	for _, f := range in.all {
		object, _ := f.object.(*types.Func)
		entry := object != nil && in.entries[object]
		for _, c := range f.changes {
			if entry && c.param == receiver {
				c.at.act += ofAll(c.at.instead)
				f.findings = append(f.findings, c.at)
			}
		}
		for _, p := range f.passes {
			if !p.shared && !p.apart && (!entry || p.own != receiver) {
				continue
			}
			for _, e := range in.effectsOf(p.to, p.param) {
				at := p.at
				at.act += ", which " + e.Act
				if p.apart && e.Instead == insteadOfRead {
					continue
				}
				if !p.apart {
					at.act, at.instead = at.act+ofAll(e.Instead), e.Instead
				}
				f.findings = append(f.findings, at)
			}
		}
	}
}

// addEffect records an effect, unless one on the same parameter is known.
func (in *inspection) addEffect(f *types.Func, e effect) bool {
	if slices.ContainsFunc(in.effects[f], func(known effect) bool { return known.Param == e.Param && known.Instead == e.Instead }) {
		return false
	}
	in.effects[f] = append(in.effects[f], e)
	return true
}

// effectsOf returns the effects of a function on a parameter.
func (in *inspection) effectsOf(f *types.Func, param int) []effect {
	effects := in.effects[f]
	if f.Pkg() != in.pass.Pkg {
		var fact changes
		if in.pass.ImportObjectFact(f, &fact) {
			effects = fact.Effects
		}
	}
	effects = slices.DeleteFunc(slices.Clone(effects), func(e effect) bool { return e.Param != param })
	if i := slices.IndexFunc(effects, effect.shared); i >= 0 {
		return effects[i : i+1] // other reads do not matter
	}
	return effects
}

// ofAll ends the description of a change.
func ofAll(instead string) string {
	if instead == insteadOfShared {
		return ", which all runs share"
	}
	return ""
}

// isolated checks the function arguments of the runtime that must change nothing around them: conditions, side
// effects and activities.
func (s *scan) isolated(c inspector.Cursor, call *ast.CallExpr) {
	f := callee(s.pass.TypesInfo, call)
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != runtimePath {
		return
	}
	where, instead := "", ""
	switch f.Name() {
	case "WaitUntil":
		where, instead = "a condition", insteadOfCondition
	case "SideEffect":
		where, instead = "a side effect", insteadOfSideEffect
	case "NewActivity":
		if outermost(s.pass.TypesInfo, c) == nil {
			return
		}
		where, instead = "an activity", insteadOfSideEffect
	default:
		return
	}
	for _, arg := range call.Args {
		if !isFunction(s.pass.TypesInfo.TypeOf(arg)) {
			continue
		}
		i := &isolation{scan: s, where: where, instead: instead, seen: map[ast.Node]bool{}}
		i.function(c, arg)
	}
}

// isolation is the search for changes of variables around a function.
type isolation struct {
	*scan
	where, instead string
	seen           map[ast.Node]bool
}

// function checks a function, given as a name or a literal.
func (i *isolation) function(c inspector.Cursor, e ast.Expr) {
	info := i.pass.TypesInfo
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		if at, ok := i.files.Root().FindNode(e); ok && !i.seen[e] {
			i.seen[e] = true
			i.literal(at, e)
		}
	case *ast.Ident:
		if v, ok := info.Uses[e].(*types.Var); ok {
			for _, value := range i.held[v] {
				if lit, ok := value.(*ast.FuncLit); ok {
					i.function(c, lit)
				}
			}
		}
	case *ast.SelectorExpr: // a method
		if f, ok := info.Uses[e.Sel].(*types.Func); ok && f.Signature().Recv() != nil {
			i.passes = append(i.passes, passed{to: f.Origin(), param: receiver, apart: true,
				at: finding{at: c, pos: e.Pos(), act: "uses " + nameOf(f) + " as " + i.where, instead: i.instead}})
		}
	}
}

// literal checks a literal, and the local functions that it calls.
func (i *isolation) literal(at inspector.Cursor, lit *ast.FuncLit) {
	around := func(v *types.Var) bool {
		return v != nil && !packageLevel(v) && (v.Pos() < lit.Pos() || lit.End() <= v.Pos())
	}
	at.Inspect(nil, func(c inspector.Cursor) bool {
		for _, set := range changed(i.pass.TypesInfo, c.Node()) {
			if v := i.origin(set.target); around(v) && !v.IsField() {
				i.add(finding{at: c, pos: c.Node().Pos(), act: "changes " + types.ExprString(set.target) + " in " + i.where, instead: i.instead})
			}
		}
		call, ok := c.Node().(*ast.CallExpr)
		if !ok {
			return true
		}
		if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
			i.function(c, id)
		}
		f := callee(i.pass.TypesInfo, call)
		if f == nil || f.Pkg() == nil || f.Pkg().Path() == runtimePath {
			return true
		}
		give := func(param int, e ast.Expr) {
			if around(i.origin(e)) {
				i.passes = append(i.passes, passed{to: f.Origin(), param: param, apart: true,
					at: finding{at: c, pos: call.Pos(), act: "calls " + nameOf(f) + " in " + i.where, instead: i.instead}})
			}
		}
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && f.Signature().Recv() != nil {
			give(receiver, sel.X)
		}
		for n, arg := range call.Args {
			if p := min(n, f.Signature().Params().Len()-1); p >= 0 && refers(i.pass.TypesInfo.TypeOf(arg)) {
				give(p, arg)
			}
		}
		return true
	})
}
