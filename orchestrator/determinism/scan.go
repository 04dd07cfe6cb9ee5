package determinism

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"
)

const (
	insteadOfGo      = "call an activity, or use orchestrator.Go"
	insteadOfChannel = "wait for futures with Await, All or Any"
	insteadOfSelect  = "use orchestrator.Any over futures"
	insteadOfMap     = "range over slices.Sorted(maps.Keys(m))"
	insteadOfShared  = "keep it in a local variable, or return it from an activity"
	insteadOfRead    = "hand it in with the input, or return it from an activity"
	insteadOfStored  = "what takes a context.Context belongs in an activity"
	insteadOfOutside = "that is for activities and for code outside of orchestrations; call an activity or another orchestrator"
)

// scan is the search for findings in one function.
type scan struct {
	*inspection
	*function
	start   inspector.Cursor
	home    ast.Node           // the outermost orchestrator code around, or else the function itself
	perRun  bool               // variables around home belong to one run
	own     map[*types.Var]int // the parameters of the function; its receiver is receiver
	covered map[ast.Node]bool  // channel operations of a select, and names that are written
}

// scan finds the findings of a function, the literals inside it included, except those that run outside of
// orchestrators.
func (in *inspection) scan(start inspector.Cursor, f *function) *function {
	s := &scan{inspection: in, function: f, start: start, home: start.Node(), own: map[*types.Var]int{}, covered: map[ast.Node]bool{}}
	if around := outermost(in.pass.TypesInfo, start); around != nil {
		s.home = around
	}
	if around := functionAround(in.pass.TypesInfo, start); around != nil {
		s.perRun = in.perRun[around]
	}
	if declared, ok := f.object.(*types.Func); ok {
		for i := range declared.Signature().Params().Len() {
			s.own[declared.Signature().Params().At(i)] = i
		}
		if recv := declared.Signature().Recv(); recv != nil {
			s.own[recv] = receiver
		}
	}
	start.Inspect(nil, func(c inspector.Cursor) bool {
		if c.Node() != start.Node() && in.outside[c.Node()] || f.values && !runsNow(c) {
			return false
		}
		s.visit(c)
		return true
	})
	return f
}

// runsNow reports whether a node is not a function that is only passed on, without a call in place.
func runsNow(c inspector.Cursor) bool {
	lit, ok := c.Node().(*ast.FuncLit)
	if !ok {
		return true
	}
	call, ok := c.Parent().Node().(*ast.CallExpr)
	return ok && call.Fun == ast.Expr(lit)
}

func (s *scan) visit(c inspector.Cursor) {
	switch n := c.Node().(type) {
	case *ast.GoStmt:
		s.refuse(c, "starts a goroutine", insteadOfGo)
	case *ast.SelectStmt:
		s.refuse(c, "selects over channels", insteadOfSelect)
		s.cover(n)
	case *ast.SendStmt:
		if !s.covered[n] {
			s.refuse(c, "sends on a channel", insteadOfChannel)
		}
	case *ast.UnaryExpr:
		if n.Op == token.ARROW && !s.covered[n] {
			s.refuse(c, "receives from a channel", insteadOfChannel)
		}
	case *ast.RangeStmt:
		s.rangeOver(c, n)
		s.write(c)
	case *ast.AssignStmt:
		s.write(c)
		if n.Tok == token.ASSIGN {
			for i, target := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) {
					s.bring(c, n.Rhs[i], s.pass.TypesInfo.TypeOf(target))
				}
			}
		}
	case *ast.IncDecStmt:
		s.write(c)
	case *ast.ValueSpec:
		for _, value := range n.Values {
			if n.Type != nil {
				s.bring(c, value, s.pass.TypesInfo.TypeOf(n.Type))
			}
		}
	case *ast.ReturnStmt:
		s.returns(c, n)
	case *ast.CompositeLit:
		s.literal(c, n)
	case *ast.CallExpr:
		s.builtin(c, n)
		s.write(c)
		s.hand(c, n)
		s.isolated(c, n)
		s.arguments(c, n)
		s.addresses(c, n)
	case *ast.Ident:
		s.mention(c, n)
	}
}

func (s *scan) refuse(c inspector.Cursor, act, instead string) {
	s.add(finding{at: c, pos: c.Node().Pos(), act: act, instead: instead})
}

func (s *scan) add(f finding) {
	f.allowance = s.allowances[placeOf(s.pass.Fset, f.pos)]
	for around := range f.at.Enclosing((*ast.FuncLit)(nil)) {
		if around.Node() == s.start.Node() || !s.start.Contains(around) {
			break
		}
		f.later = f.later || !runsNow(around)
	}
	s.findings = append(s.findings, f)
}

// cover marks the channel operations that the cases of a select wait for.
func (s *scan) cover(n *ast.SelectStmt) {
	for _, clause := range n.Body.List {
		switch comm := clause.(*ast.CommClause).Comm.(type) {
		case *ast.SendStmt:
			s.covered[comm] = true
		case *ast.ExprStmt:
			s.covered[ast.Unparen(comm.X)] = true
		case *ast.AssignStmt:
			s.covered[ast.Unparen(comm.Rhs[0])] = true
		}
	}
}

func (s *scan) rangeOver(c inspector.Cursor, n *ast.RangeStmt) {
	t := s.pass.TypesInfo.TypeOf(n.X)
	switch {
	case is[*types.Chan](t):
		s.refuse(c, "ranges over a channel", insteadOfChannel)
	case is[*types.Map](t) && !orderFree(s.purity, c, true):
		s.add(finding{at: c, pos: n.Pos(), act: "ranges over a map", instead: insteadOfMap, value: true})
	}
}

// is reports whether the underlying type is a T, or can be one for a type parameter.
func is[T types.Type](t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return hasTerm[T](p.Constraint())
	}
	_, ok := t.Underlying().(T)
	return ok
}

func hasTerm[T types.Type](constraint types.Type) bool {
	switch t := constraint.Underlying().(type) {
	case *types.Interface:
		for e := range t.EmbeddedTypes() {
			if union, ok := e.(*types.Union); ok {
				for term := range union.Terms() {
					if hasTerm[T](term.Type()) {
						return true
					}
				}
			} else if hasTerm[T](e) {
				return true
			}
		}
		return false
	default:
		_, ok := t.(T)
		return ok
	}
}

// builtin checks the calls of builtin functions.
func (s *scan) builtin(c inspector.Cursor, call *ast.CallExpr) {
	switch builtinName(s.pass.TypesInfo, call) {
	case "make":
		if is[*types.Chan](s.pass.TypesInfo.TypeOf(call)) {
			s.refuse(c, "makes a channel", insteadOfChannel)
		}
	case "close":
		s.refuse(c, "closes a channel", insteadOfChannel)
	case "print", "println":
		s.refuse(c, "prints", insteadOfLog)
	}
}

func builtinName(info *types.Info, call *ast.CallExpr) string {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

func packageLevel(o types.Object) bool {
	return o != nil && o.Pkg() != nil && o.Parent() == o.Pkg().Scope()
}

// root returns the variable of which an expression is a part, or that leads to it: x in x.f[i], nil for none.
func root(info *types.Info, e ast.Expr) types.Object {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return info.ObjectOf(x)
		case *ast.SelectorExpr:
			if o := info.Uses[x.Sel]; o != nil && packageLevel(o) {
				return o
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.UnaryExpr:
			if x.Op != token.AND {
				return nil
			}
			e = x.X
		default:
			return nil
		}
	}
}
