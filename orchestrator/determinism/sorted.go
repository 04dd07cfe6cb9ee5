package determinism

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// orderedIterator reports whether the order of maps.Keys and its variants has no effect at c.
func orderedIterator(p *purity, c inspector.Cursor) bool {
	info := p.info
	iterator := around(c)
	call, ok := iterator.Node().(*ast.CallExpr)
	if !ok || named(call.Fun) != named(c.Node().(ast.Expr)) {
		return false
	}
	outer := around(iterator)
	switch n := outer.Node().(type) {
	case *ast.RangeStmt:
		return n.X == call && orderFree(p, outer, named(call.Fun).Name != "Values")
	case *ast.CallExpr:
		f := callee(info, n)
		if f == nil || f.Pkg() == nil || n.Fun == call {
			return false
		}
		switch f.Pkg().Path() + "." + f.Name() {
		case "slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc", "maps.Collect", "maps.Insert":
			return true
		case "slices.Collect", "slices.AppendSeq":
			if extremeOf(info, around(outer).Node()) {
				return true
			}
			set, ok := around(outer).Node().(*ast.AssignStmt)
			if !ok || len(set.Lhs) != 1 {
				return false
			}
			x := defined(info, set.Lhs[0])
			if x == nil {
				x = local(info, set.Lhs[0])
			}
			return x != nil && sortedAfter(info, around(outer), x)
		}
	}
	return false
}

// extremeOf reports whether n takes the maximum or the minimum of a slice.
func extremeOf(info *types.Info, n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	f := callee(info, call)
	return f != nil && (f.FullName() == "slices.Max" || f.FullName() == "slices.Min")
}

// around returns the parent of c without parentheses and instantiations.
func around(c inspector.Cursor) inspector.Cursor {
	for p := c.Parent(); ; p = p.Parent() {
		switch p.Node().(type) {
		case *ast.ParenExpr, *ast.IndexExpr, *ast.IndexListExpr:
		default:
			return p
		}
	}
}

// sortedAfter reports whether the slice x is sorted behind the statement at c, before any other use.
func sortedAfter(info *types.Info, c inspector.Cursor, x types.Object) bool {
	start := c.Node()
	for ; ; c = c.Parent() {
		around := c.Parent().Node()
		switch around.(type) {
		case *ast.FuncDecl, *ast.FuncLit, *ast.File:
			return false
		case *ast.ForStmt, *ast.RangeStmt:
			if usedOutside(info, around, start, x) {
				return false
			}
		}
		for _, s := range following(c) {
			if sorts(info, s, x) {
				return true
			}
			if disturbs(info, s, x) {
				return false
			}
		}
	}
}

// following returns the statements after the one at c, in the same list.
func following(c inspector.Cursor) []ast.Stmt {
	s, ok := c.Node().(ast.Stmt)
	if !ok {
		return nil
	}
	var list []ast.Stmt
	switch p := c.Parent().Node().(type) {
	case *ast.BlockStmt:
		list = p.List
	case *ast.CaseClause:
		list = p.Body
	case *ast.CommClause:
		list = p.Body
	}
	return list[slices.Index(list, s)+1:]
}

// sorts reports whether a statement sorts all of x.
func sorts(info *types.Info, s ast.Stmt, x types.Object) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	f := callee(info, call)
	if f == nil || f.Pkg() == nil {
		return false
	}
	switch f.Pkg().Path() + "." + f.Name() {
	case "sort.Strings", "sort.Ints", "sort.Float64s", "sort.Slice", "sort.SliceStable", "sort.Sort", "sort.Stable",
		"slices.Sort", "slices.SortFunc", "slices.SortStableFunc":
		return wraps(info, call.Args[0], x)
	}
	return false
}

// wraps reports whether an expression is x, or x in conversions and sort.Reverse.
func wraps(info *types.Info, e ast.Expr, x types.Object) bool {
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		f := callee(info, call)
		reverse := f != nil && f.Pkg() != nil && f.Pkg().Path() == "sort" && f.Name() == "Reverse"
		return (reverse || info.Types[call.Fun].IsType()) && wraps(info, call.Args[0], x)
	}
	return local(info, e) == x
}

// disturbs reports whether a statement can see the order of x, or skip the sort and still use x.
func disturbs(info *types.Info, s ast.Node, x types.Object) bool {
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if b := builtinName(info, n); (b == "len" || b == "cap") && local(info, n.Args[0]) == x {
				return false
			}
		case *ast.BranchStmt:
			found = found || n.Tok != token.FALLTHROUGH
		case *ast.ReturnStmt:
			found = found || len(n.Results) == 0
		case *ast.Ident:
			found = found || info.Uses[n] == x
		}
		return !found
	})
	return found
}

// usedOutside reports whether a surrounding loop uses x outside of one part of it: its next round would see the
// order.
func usedOutside(info *types.Info, loop, part ast.Node, x types.Object) bool {
	found := false
	ast.Inspect(loop, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && info.Uses[id] == x {
			found = true
		}
		return n != part
	})
	return found
}
