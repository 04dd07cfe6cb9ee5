package determinism

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// extreme reports whether an if statement keeps a maximum or a minimum, with its related values:
//
//	if v > most { most = v }
//	if !found || v > most || v == most && k < name { most, name, found = v, k, true }
//
// Elements that compare equal must be equal in all kept values, or the order would decide between them.
func (o *orderly) extreme(s *ast.IfStmt) bool {
	kept := map[types.Object]ast.Expr{}
	for _, statement := range s.Body.List {
		set, ok := statement.(*ast.AssignStmt)
		if !ok || set.Tok != token.ASSIGN || len(set.Lhs) != len(set.Rhs) {
			return false
		}
		for i, to := range set.Lhs {
			x := local(o.info, to)
			if x == nil || o.ofRound(x) || kept[x] != nil {
				return false
			}
			kept[x] = ast.Unparen(set.Rhs[i])
		}
	}
	how := "extreme " + types.ExprString(s.Cond)
	for x := range kept {
		if before, changed := o.changed[x]; changed && before != how {
			return false
		}
	}
	cond := o.withoutFirst(ast.Unparen(s.Cond), kept)
	if !o.ordered(cond, kept) {
		return false
	}
	for x := range assigned(o.info, s.Body) {
		o.changed[x] = how
	}
	return true
}

// unlessSkipped converts if v <= most { continue }, with the following statements, to if v > most { following
// statements }; nil for anything else. It excludes floating-point numbers: a NaN is neither less nor greater.
func (o *orderly) unlessSkipped(s ast.Stmt, rest []ast.Stmt) *ast.IfStmt {
	skip, ok := s.(*ast.IfStmt)
	if !ok || skip.Init != nil || skip.Else != nil || len(skip.Body.List) != 1 || len(rest) == 0 {
		return nil
	}
	branch, ok := skip.Body.List[0].(*ast.BranchStmt)
	cond, comparison := ast.Unparen(skip.Cond).(*ast.BinaryExpr)
	if !ok || branch.Tok != token.CONTINUE || branch.Label != nil || !comparison {
		return nil
	}
	opposite := map[token.Token]token.Token{token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR}[cond.Op]
	basic, ok := o.info.TypeOf(cond.X).Underlying().(*types.Basic)
	if opposite == token.ILLEGAL || !ok || basic.Info()&(types.IsInteger|types.IsString) == 0 {
		return nil
	}
	return &ast.IfStmt{Cond: &ast.BinaryExpr{X: cond.X, Op: opposite, Y: cond.Y}, Body: &ast.BlockStmt{List: rest}}
}

// assigned returns the set of variables that a block of assignments sets.
func assigned(info *types.Info, b *ast.BlockStmt) map[types.Object]bool {
	all := map[types.Object]bool{}
	for _, s := range b.List {
		for _, to := range s.(*ast.AssignStmt).Lhs {
			all[local(info, to)] = true
		}
	}
	return all
}

// withoutFirst drops the condition for the first element: a flag that the body sets to the opposite.
func (o *orderly) withoutFirst(cond ast.Expr, kept map[types.Object]ast.Expr) ast.Expr {
	or, ok := cond.(*ast.BinaryExpr)
	if !ok || or.Op != token.LOR {
		return cond
	}
	left := ast.Unparen(or.X)
	if nested, ok := left.(*ast.BinaryExpr); ok && nested.Op == token.LOR {
		// a || b || c is (a || b) || c
		rest := o.withoutFirst(nested, kept)
		if rest == ast.Expr(nested) {
			return cond
		}
		return &ast.BinaryExpr{X: rest, Op: token.LOR, Y: or.Y}
	}
	set := "false"
	if not, ok := left.(*ast.UnaryExpr); ok && not.Op == token.NOT {
		left, set = ast.Unparen(not.X), "true"
	}
	flag := local(o.info, left)
	if flag == nil || kept[flag] == nil || o.info.Types[kept[flag]].Value == nil || o.info.Types[kept[flag]].Value.String() != set {
		return cond
	}
	delete(kept, flag)
	return ast.Unparen(or.Y)
}

// ordered reports whether a condition compares all kept values, one after the other; after the loop's key, no two
// elements are equal.
func (o *orderly) ordered(cond ast.Expr, kept map[types.Object]ast.Expr) bool {
	var tie ast.Expr
	if or, ok := cond.(*ast.BinaryExpr); ok && or.Op == token.LOR {
		cond, tie = ast.Unparen(or.X), ast.Unparen(or.Y)
	}
	from, x := o.compared(cond, kept)
	if x == nil || !o.pureBut(from, nil) || mentions(o.info, from, func(used types.Object) bool { return kept[used] != nil }) {
		return false
	}
	delete(kept, x)
	if tie != nil {
		and, ok := tie.(*ast.BinaryExpr)
		if !ok || and.Op != token.LAND || !o.equal(and.X, from, x) {
			return false
		}
		return o.ordered(ast.Unparen(and.Y), kept)
	}
	if len(kept) == 0 {
		return true
	}
	for _, value := range kept {
		if !o.pure(value) {
			return false
		}
	}
	return o.isKey(from)
}

// compared returns the value that a comparison compares with a variable, which the value is then assigned to: v and
// most in v > most and in v.After(most).
func (o *orderly) compared(cond ast.Expr, kept map[types.Object]ast.Expr) (from ast.Expr, x types.Object) {
	var a, b ast.Expr
	switch cond := cond.(type) {
	case *ast.BinaryExpr:
		if !slices.Contains([]token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}, cond.Op) {
			return nil, nil
		}
		a, b = cond.X, cond.Y
	case *ast.CallExpr:
		f := callee(o.info, cond)
		sel, ok := ast.Unparen(cond.Fun).(*ast.SelectorExpr)
		if !ok || f == nil || (f.FullName() != "(time.Time).After" && f.FullName() != "(time.Time).Before") {
			return nil, nil
		}
		a, b = sel.X, cond.Args[0]
	default:
		return nil, nil
	}
	for _, pair := range [][2]ast.Expr{{a, b}, {b, a}} {
		x := local(o.info, pair[1])
		if x != nil && kept[x] != nil && types.ExprString(kept[x]) == types.ExprString(ast.Unparen(pair[0])) {
			return pair[0], x
		}
	}
	return nil, nil
}

// equal reports whether an expression is from == x, or from.Equal(x).
func (o *orderly) equal(e, from ast.Expr, x types.Object) bool {
	var a, b ast.Expr
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		if e.Op != token.EQL {
			return false
		}
		a, b = e.X, e.Y
	case *ast.CallExpr:
		f := callee(o.info, e)
		sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
		if !ok || f == nil || f.FullName() != "(time.Time).Equal" {
			return false
		}
		a, b = sel.X, e.Args[0]
	default:
		return false
	}
	text := types.ExprString(ast.Unparen(from))
	return types.ExprString(ast.Unparen(a)) == text && local(o.info, b) == x || types.ExprString(ast.Unparen(b)) == text && local(o.info, a) == x
}

// accumulates accepts assignments whose order has no effect: all = all && v, any = any || v, most = max(most, v).
func (o *orderly) accumulates(to, from ast.Expr) bool {
	x := local(o.info, to)
	if x == nil {
		return false
	}
	var parts []ast.Expr
	how := ""
	switch from := from.(type) {
	case *ast.BinaryExpr:
		parts, how = []ast.Expr{from.X, from.Y}, from.Op.String()
		switch from.Op {
		case token.LAND, token.LOR:
		case token.ADD, token.MUL, token.AND, token.OR, token.XOR:
			if b, ok := x.Type().Underlying().(*types.Basic); !ok || b.Info()&types.IsInteger == 0 {
				return false
			}
			how = strings.Replace(from.Op.String()+"=", "+=", "add", 1)
		default:
			return false
		}
	case *ast.CallExpr:
		how = builtinName(o.info, from)
		if how != "min" && how != "max" {
			return false
		}
		parts = from.Args
	}
	own := slices.IndexFunc(parts, func(e ast.Expr) bool { return local(o.info, e) == x })
	if own < 0 {
		return false
	}
	for i, part := range parts {
		if i != own && (!o.pure(part) || mentions(o.info, part, func(used types.Object) bool { return used == x })) {
			return false
		}
	}
	return o.changes(to, how)
}

// setsSame accepts a variable that all rounds set to the same value.
func (o *orderly) setsSame(to, from ast.Expr) bool {
	return local(o.info, to) != nil && o.same(from) && o.changes(to, "set to "+types.ExprString(from))
}

// leaves accepts a list of statements that ends the loop, if all such lists do the same: they set variables to the
// same values, and return the same values or break.
func (o *orderly) leaves(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	var texts []string
	switch last := list[len(list)-1].(type) {
	case *ast.ReturnStmt:
		for _, e := range last.Results {
			if !o.same(e) {
				return false
			}
			texts = append(texts, types.ExprString(e))
		}
		texts = []string{"return " + strings.Join(texts, ", ")}
	case *ast.BranchStmt:
		if last.Tok != token.BREAK || last.Label != nil || o.nested > 0 {
			return false
		}
		texts = []string{"break"}
	default:
		return false
	}
	for _, s := range list[:len(list)-1] {
		set, ok := s.(*ast.AssignStmt)
		if !ok || set.Tok != token.ASSIGN || len(set.Lhs) != len(set.Rhs) {
			return false
		}
		for i, to := range set.Lhs {
			if local(o.info, to) == nil || !o.same(set.Rhs[i]) {
				return false
			}
			texts = append(texts, types.ExprString(to)+" = "+types.ExprString(set.Rhs[i]))
		}
	}
	exit := strings.Join(texts, "; ")
	if o.exit != "" && o.exit != exit {
		return false
	}
	o.exit = exit
	return true
}

// inner checks the body of a loop or a switch within the loop, where break refers to another statement.
func (o *orderly) inner(b *ast.BlockStmt) bool {
	o.nested++
	defer func() { o.nested-- }()
	return o.block(b)
}

// declares accepts declarations of variables of a round.
func (o *orderly) declares(s *ast.DeclStmt) bool {
	pure := true
	ast.Inspect(s, func(n ast.Node) bool {
		if e, ok := n.(*ast.ValueSpec); ok {
			pure = pure && !slices.ContainsFunc(e.Values, func(e ast.Expr) bool { return !o.pure(e) })
		}
		return pure
	})
	return pure
}
