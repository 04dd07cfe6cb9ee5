package determinism

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

const insteadOfAddress = "addresses differ in every process; print the value, or a key of it"

// addresses reports calls and conversions that show an address: %p, %v of a pointer, a conversion to uintptr.
func (s *scan) addresses(c inspector.Cursor, call *ast.CallExpr) {
	info := s.pass.TypesInfo
	if target := info.Types[call.Fun]; target.IsType() {
		if isBasic(target.Type, types.Uintptr) && isBasic(info.TypeOf(call.Args[0]), types.UnsafePointer) {
			s.refuse(c, "converts an address to a number", insteadOfAddress)
		}
		return
	}
	sig, ok := info.TypeOf(call.Fun).(*types.Signature)
	if !ok || !sig.Variadic() || call.Ellipsis.IsValid() {
		return
	}
	first := sig.Params().Len() - 1 // of the operands
	slice, ok := sig.Params().At(first).Type().(*types.Slice)
	if !ok || !types.IsInterface(slice.Elem()) || len(call.Args) < first {
		return
	}
	f := callee(info, call)
	prints := f != nil && f.Pkg() != nil && f.Pkg().Path() == "fmt" && !strings.Contains(f.Name(), "can")
	operands := call.Args[first:]
	for _, operand := range operands {
		if prints {
			s.printed(c, operand)
		}
	}
	if first > 0 && (!prints || strings.HasSuffix(f.Name(), "f")) {
		format := info.Types[call.Args[first-1]].Value
		if format == nil || format.Kind() != constant.String {
			return
		}
		for _, v := range verbs(constant.StringVal(format)) {
			shows := v.verb == 'p'
			if prints && v.operand < len(operands) && v.verb != 'T' && v.verb != 'w' {
				shows = shows || showsAddress(info.TypeOf(operands[v.operand]), 0, true)
			}
			if shows {
				s.refuse(c, "formats an address with %"+string(v.verb), insteadOfAddress)
				return
			}
		}
		return
	}
	for _, operand := range operands {
		if prints && showsAddress(info.TypeOf(operand), 0, true) {
			s.refuse(c, "formats an address", insteadOfAddress)
			return
		}
	}
}

// printed checks the method by which a value prints itself.
func (s *scan) printed(c inspector.Cursor, operand ast.Expr) {
	t := s.pass.TypesInfo.TypeOf(operand)
	if t == nil || types.IsInterface(t) {
		return
	}
	for _, name := range []string{"Error", "String"} {
		found, _, _ := types.LookupFieldOrMethod(t, false, s.pass.Pkg, name)
		if m, ok := found.(*types.Func); ok && s.judgedBySource(m) {
			s.add(finding{at: c, pos: operand.Pos(), act: "uses " + nameOf(m), follow: m.Origin()})
			return
		}
	}
}

func isBasic(t types.Type, kind types.BasicKind) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Kind() == kind
}

// verb is a verb of a format and the number of its operand.
type verb struct {
	verb    rune
	operand int
}

func verbs(format string) []verb {
	var all []verb
	operand := 0
	runes := []rune(format)
	for i := 0; i < len(runes); i++ {
		if runes[i] != '%' {
			continue
		}
		for i++; i < len(runes) && strings.ContainsRune("+-# 0123456789.*[]", runes[i]); i++ {
			switch runes[i] {
			case '*':
				operand++
			case '[':
				operand = 0
				for i++; i < len(runes) && '0' <= runes[i] && runes[i] <= '9'; i++ {
					operand = 10*operand + int(runes[i]-'0')
				}
				operand--
			}
		}
		if i < len(runes) && runes[i] != '%' {
			all = append(all, verb{runes[i], max(operand, 0)})
			operand++
		}
	}
	return all
}

// showsAddress reports whether fmt prints an address for a value of this type. The value in an interface is unknown.
// reachable means that fmt can call methods: it cannot for values of unexported fields.
func showsAddress(t types.Type, depth int, reachable bool) bool {
	if t == nil || depth > 5 || reachable && formatsItself(t) {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Chan, *types.Signature:
		return true
	case *types.Basic:
		return u.Kind() == types.UnsafePointer
	case *types.Pointer:
		switch u.Elem().Underlying().(type) {
		case *types.Struct, *types.Slice, *types.Array, *types.Map:
			return depth > 0 || showsAddress(u.Elem(), depth+1, reachable)
		}
		return true
	case *types.Slice:
		return showsAddress(u.Elem(), depth+1, reachable)
	case *types.Array:
		return showsAddress(u.Elem(), depth+1, reachable)
	case *types.Map:
		return showsAddress(u.Key(), depth+1, reachable) || showsAddress(u.Elem(), depth+1, reachable)
	case *types.Struct:
		for f := range u.Fields() {
			if showsAddress(f.Type(), depth+1, reachable && f.Exported()) {
				return true
			}
		}
	}
	return false
}

func formatsItself(t types.Type) bool {
	methods := types.NewMethodSet(t)
	for _, name := range []string{"Error", "String", "Format"} {
		if methods.Lookup(nil, name) != nil {
			return true
		}
	}
	return false
}
