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
	insteadOfOutside = "that is for activities and for code outside of orchestrations; call an activity or another orchestrator"
)

// scan is the search for findings in one function.
type scan struct {
	*inspection
	start    inspector.Cursor
	covered  map[ast.Node]bool // channel operations that belong to a select
	findings []finding
}

// scan finds what a function does, the literals inside it included, except those that run outside of orchestrators.
func (in *inspection) scan(start inspector.Cursor) []finding {
	s := &scan{inspection: in, start: start, covered: map[ast.Node]bool{}}
	start.Inspect(nil, func(c inspector.Cursor) bool {
		if c.Node() != start.Node() && in.outside[c.Node()] {
			return false
		}
		s.visit(c)
		return true
	})
	return s.findings
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
		if n.Tok == token.ASSIGN {
			s.write(c, n.Key, n.Value)
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			s.write(c, n.Lhs...)
		}
	case *ast.IncDecStmt:
		s.write(c, n.X)
	case *ast.CallExpr:
		s.builtin(c, n)
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
	case is[*types.Map](t) && !orderFree(s.pass.TypesInfo, c, true):
		s.refuse(c, "ranges over a map", insteadOfMap)
	}
}

// is says whether the underlying type is a T, for a type parameter whether it can be one.
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

// builtin judges the calls of builtin functions.
func (s *scan) builtin(c inspector.Cursor, call *ast.CallExpr) {
	switch builtinName(s.pass.TypesInfo, call) {
	case "make":
		if is[*types.Chan](s.pass.TypesInfo.TypeOf(call)) {
			s.refuse(c, "makes a channel", insteadOfChannel)
		}
	case "close":
		s.refuse(c, "closes a channel", insteadOfChannel)
	case "clear", "copy", "delete":
		s.write(c, call.Args[0])
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

// write judges what is written to: variables of packages outlive the orchestration, and others see them.
func (s *scan) write(c inspector.Cursor, targets ...ast.Expr) {
	for _, target := range targets {
		v, ok := root(s.pass.TypesInfo, target).(*types.Var)
		if ok && packageLevel(v) {
			s.refuse(c, "writes the package variable "+nameOf(v), insteadOfShared)
		}
	}
}

func packageLevel(o types.Object) bool { return o.Pkg() != nil && o.Parent() == o.Pkg().Scope() }

// root is the variable that an expression is a part of, or that leads to it: x in x.f[i], nil when there is none.
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
		default:
			return nil
		}
	}
}
