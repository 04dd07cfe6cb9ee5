package determinism

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// orderFree reports whether the range loop at c has the same result in any order. distinctKeys means that the loop's
// key differs in each round.
func orderFree(p *purity, c inspector.Cursor, distinctKeys bool) bool {
	info, loop := p.info, c.Node().(*ast.RangeStmt)
	key, value := defined(info, loop.Key), defined(info, loop.Value)
	if loop.Tok == token.ASSIGN {
		return false // the last key remains
	}
	if key == nil && value == nil {
		return true // all rounds are equal
	}
	o := &orderly{info: info, purity: p, loop: loop, changed: map[types.Object]string{}, ranged: rangedMap(info, loop)}
	if distinctKeys {
		o.key = key
	}
	// The first walk collects the changes, the second checks with them.
	for range 2 {
		if !o.block(loop.Body) {
			return false
		}
	}
	if o.exit != "" && len(o.changed) > 0 {
		return false // the rounds before the exit have effects
	}
	return !slices.ContainsFunc(o.collected, func(x types.Object) bool { return !sortedAfter(info, c, x) })
}

// rangedMap returns the variable that leads to the map behind a loop; nil for none.
func rangedMap(info *types.Info, loop *ast.RangeStmt) types.Object {
	if iterator, ok := loop.X.(*ast.CallExpr); ok && len(iterator.Args) > 0 {
		return root(info, iterator.Args[0])
	}
	return root(info, loop.X)
}

// defined returns the variable that an identifier defines; nil for the blank identifier and for none.
func defined(info *types.Info, e ast.Expr) types.Object {
	id, ok := e.(*ast.Ident)
	if !ok || id.Name == "_" {
		return nil
	}
	return info.Defs[id]
}

// orderly checks the body of a loop over a map.
type orderly struct {
	info      *types.Info
	purity    *purity
	loop      *ast.RangeStmt
	nested    int                     // loops and switches around the statement, within the loop
	exit      string                  // how the body leaves the loop early, with the assignments before
	key       types.Object            // differs in each round; nil for none
	ranged    types.Object            // the map, when it has a variable
	changed   map[types.Object]string // the body's changes, and how: two ways for one variable depend on the order
	collected []types.Object          // slices that are appended to
}

func (o *orderly) block(b *ast.BlockStmt) bool { return o.statements(b.List) }

func (o *orderly) statements(list []ast.Stmt) bool {
	if o.leaves(list) {
		return true
	}
	for i, s := range list {
		if kept := o.unlessSkipped(s, list[i+1:]); kept != nil && o.extreme(kept) {
			return true
		}
		if !o.statement(s) {
			return false
		}
	}
	return true
}

func (o *orderly) statement(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.EmptyStmt:
		return true
	case *ast.BlockStmt:
		return o.block(s)
	case *ast.BranchStmt:
		return s.Label == nil && (s.Tok == token.CONTINUE || s.Tok == token.BREAK && o.nested > 0)
	case *ast.IfStmt:
		if s.Init != nil && !o.statement(s.Init) {
			return false
		}
		if s.Else == nil && o.extreme(s) {
			return true
		}
		return o.pure(s.Cond) && o.block(s.Body) && (s.Else == nil || o.statement(s.Else))
	case *ast.SwitchStmt:
		return (s.Init == nil || o.statement(s.Init)) && (s.Tag == nil || o.pure(s.Tag)) && o.inner(s.Body)
	case *ast.CaseClause:
		return !slices.ContainsFunc(s.List, func(e ast.Expr) bool { return !o.pure(e) }) && o.statements(s.Body)
	case *ast.RangeStmt:
		return s.Tok != token.ASSIGN && o.pure(s.X) && o.inner(s.Body)
	case *ast.DeclStmt:
		return o.declares(s)
	case *ast.IncDecStmt:
		return o.integer(s.X, "add")
	case *ast.AssignStmt:
		return o.assignment(s)
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && builtinName(o.info, call) == "delete" && o.isKey(call.Args[1]) && o.changes(call.Args[0], "delete")
	}
	return false
}

func (o *orderly) assignment(s *ast.AssignStmt) bool {
	if s.Tok == token.DEFINE {
		return !slices.ContainsFunc(s.Rhs, func(e ast.Expr) bool { return !o.pure(e) })
	}
	if len(s.Lhs) != len(s.Rhs) {
		return false
	}
	for i, to := range s.Lhs {
		if !o.assigns(s, ast.Unparen(to), ast.Unparen(s.Rhs[i])) {
			return false
		}
	}
	return true
}

// assigns checks one of the assignments of a statement.
func (o *orderly) assigns(s *ast.AssignStmt, to, from ast.Expr) bool {
	if x := local(o.info, to); o.ofRound(x) && x != o.key {
		return o.pure(from)
	}
	switch s.Tok {
	case token.ADD_ASSIGN, token.SUB_ASSIGN:
		return o.pure(from) && o.integer(to, "add")
	case token.OR_ASSIGN, token.AND_ASSIGN, token.XOR_ASSIGN, token.MUL_ASSIGN:
		return o.pure(from) && o.integer(to, s.Tok.String())
	case token.ASSIGN:
		if index, ok := to.(*ast.IndexExpr); ok {
			return o.sets(index, from)
		}
		return o.appends(to, from) || o.accumulates(to, from) || o.setsSame(to, from)
	}
	return false
}

// integer accepts a commutative operation on an integer, which gives the same result in any order.
func (o *orderly) integer(to ast.Expr, how string) bool {
	basic, ok := o.info.TypeOf(to).Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsInteger == 0 {
		return false
	}
	switch x := ast.Unparen(to).(type) {
	case *ast.Ident:
		return o.changes(x, how)
	case *ast.IndexExpr:
		return o.elsewhere(x) && o.pure(x.Index) && o.changes(x.X, how)
	}
	return false
}

// sets accepts that each round sets another element, or all set elements to the same constant.
func (o *orderly) sets(to *ast.IndexExpr, from ast.Expr) bool {
	if !o.pure(from) {
		return false
	}
	if o.isKey(to.Index) {
		return o.changes(to.X, "set by key")
	}
	if !o.elsewhere(to) || !o.pure(to.Index) {
		return false
	}
	if v := o.info.Types[from].Value; v != nil {
		return o.changes(to.X, "set to "+v.ExactString())
	}
	literal, ok := from.(*ast.CompositeLit)
	return ok && len(literal.Elts) == 0 && o.changes(to.X, "set to zero")
}

// appends accepts an append to a slice that is sorted later.
func (o *orderly) appends(to, from ast.Expr) bool {
	call, ok := from.(*ast.CallExpr)
	if !ok || builtinName(o.info, call) != "append" {
		return false
	}
	x, again := local(o.info, to), local(o.info, call.Args[0])
	if x == nil || x != again || slices.ContainsFunc(call.Args[1:], func(e ast.Expr) bool { return !o.pure(e) }) {
		return false
	}
	o.collected = append(o.collected, x)
	return o.changes(to, "append")
}

// local returns the variable of a function that an expression names.
func local(info *types.Info, e ast.Expr) types.Object {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := info.Uses[id].(*types.Var)
	if !ok || packageLevel(v) {
		return nil
	}
	return v
}

func (o *orderly) isKey(e ast.Expr) bool { return o.key != nil && local(o.info, e) == o.key }

// same reports whether an expression has the same value in all rounds: it is pure and names nothing of a round.
func (o *orderly) same(e ast.Expr) bool {
	return o.pure(e) && !mentions(o.info, e, o.ofRound)
}

// ofRound reports whether each round has its own instance of a variable.
func (o *orderly) ofRound(x types.Object) bool {
	return x != nil && o.loop.Pos() <= x.Pos() && x.Pos() < o.loop.End()
}

func mentions(info *types.Info, n ast.Node, wanted func(types.Object) bool) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			found = found || wanted(info.Uses[id])
		}
		return !found
	})
	return found
}

// elsewhere reports whether an element belongs to another map than the ranged one: a range may or may not visit new
// elements.
func (o *orderly) elsewhere(e *ast.IndexExpr) bool {
	r := root(o.info, e.X)
	return r != nil && r != o.ranged
}

// changes records that the body changes a variable, and reports whether it does so in this way only.
func (o *orderly) changes(target ast.Expr, how string) bool {
	x := root(o.info, target)
	if x == nil || x == o.key || !o.pureBut(target, x) {
		return false
	}
	if before, ok := o.changed[x]; ok && before != how {
		return false
	}
	o.changed[x] = how
	return true
}

// pure reports whether an expression has the same value in any order of the rounds, and no effect.
func (o *orderly) pure(e ast.Expr) bool { return o.pureBut(e, nil) }

func (o *orderly) pureBut(e ast.Expr, but types.Object) bool {
	pure := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			x := o.info.Uses[n]
			if _, changed := o.changed[x]; changed && x != but {
				pure = false
			}
		case *ast.CallExpr:
			pure = pure && o.harmless(n)
		case *ast.UnaryExpr:
			pure = pure && n.Op != token.ARROW && n.Op != token.AND
		case *ast.FuncLit:
			pure = false
		}
		return pure
	})
	return pure
}

// harmless reports whether a call has no effect, and the same result for the same arguments.
func (o *orderly) harmless(call *ast.CallExpr) bool {
	switch builtinName(o.info, call) {
	case "len", "cap", "min", "max":
		return true
	case "append":
		return o.ofRound(local(o.info, call.Args[0]))
	}
	return builtinName(o.info, call) == "" && o.purity.call(call)
}
