// Package wallclock finds test code that waits for real time: sleeps, timers, deadlines, limits and loops that read the
// clock. It leaves out code that runs in synctest bubbles only. It reads syntax trees, without types, and owns no
// storage keys.
package wallclock

import (
	"go/ast"
	"go/token"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Package holds the tests of a folder, or its test kit: the files that are compiled into tests only, by their paths.
type Package struct {
	Dir   string
	Files map[string]*ast.File
	Kit   bool // other packages call its exported functions
}

// Find returns the uses of the real clock of each "file:function". It follows references by name, from tests and from
// the exported functions of kits, to the functions of the same package, and leaves out code that only bubbles reach. A
// name that several functions share means all of them, so errors are on the side of a use.
func Find(packages []Package) map[string][]string {
	runners := runners{"synctest.Test": {1: true}}
	for range 3 { // runners that call runners
		for _, p := range packages {
			runners.find(p)
		}
	}
	found := map[string][]string{}
	for _, p := range packages {
		g := graph{pkg: p, runners: runners, edges: map[string][]string{}, uses: map[string][]use{},
			structs: map[string][]string{}}
		g.build()
		for _, u := range g.reached() {
			if !slices.Contains(found[u.place], u.what) {
				found[u.place] = append(found[u.place], u.what)
			}
		}
	}
	return found
}

// runners maps the functions, by the name that callers use, to those of their parameters that run in bubbles only.
type runners map[string]map[int]bool

// find adds the runners of a package.
func (r runners) find(p Package) {
	for _, file := range p.Files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				r.add(p, f.Name.Name, f.Type, f.Body)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && len(a.Rhs) == 1 {
				name, named := a.Lhs[0].(*ast.Ident)
				if f, ok := a.Rhs[0].(*ast.FuncLit); ok && named {
					r.add(p, name.Name, f.Type, f.Body)
				}
			}
			return true
		})
	}
}

func (r runners) add(p Package, name string, typ *ast.FuncType, body *ast.BlockStmt) {
	n := 0
	for _, field := range typ.Params.List {
		for _, param := range field.Names {
			if holdsFunc(field.Type) && r.onlyInBubbles(p, param.Name, body) {
				for _, known := range []string{p.Dir + "." + name, path.Base(p.Dir) + "." + name} {
					if known != p.Dir+"."+name && !(p.Kit && ast.IsExported(name)) {
						continue
					}
					if r[known] == nil {
						r[known] = map[int]bool{}
					}
					r[known][n] = true
				}
			}
			n++
		}
	}
}

func holdsFunc(typ ast.Expr) bool {
	switch t := typ.(type) {
	case *ast.FuncType:
		return true
	case *ast.MapType:
		return holdsFunc(t.Value)
	case *ast.ArrayType:
		return holdsFunc(t.Elt)
	case *ast.Ellipsis:
		return holdsFunc(t.Elt)
	}
	return false
}

// onlyInBubbles reports whether every use of a name within body is in a bubble, or ranges over values with such uses
// only.
func (r runners) onlyInBubbles(p Package, name string, body ast.Node) bool {
	inside, outside := 0, 0
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			bubbled := r.of(p, n)
			for i, arg := range n.Args {
				if bubbled[i] && mentions(arg, name) {
					inside++
				} else {
					ast.Inspect(arg, visit)
				}
			}
			ast.Inspect(n.Fun, visit)
			return false
		case *ast.RangeStmt:
			if id, ok := n.X.(*ast.Ident); ok && id.Name == name {
				if v, ok := n.Value.(*ast.Ident); ok && r.onlyInBubbles(p, v.Name, n.Body) {
					inside++
					return false
				}
			}
		case *ast.Ident:
			if n.Name == name {
				outside++
			}
		}
		return true
	}
	ast.Inspect(body, visit)
	return inside > 0 && outside == 0
}

// of returns the arguments of a call that run in bubbles only.
func (r runners) of(p Package, call *ast.CallExpr) map[int]bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return r[p.Dir+"."+f.Name]
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			if known := r[x.Name+"."+f.Sel.Name]; known != nil {
				return known
			}
		}
		return r[p.Dir+"."+f.Sel.Name]
	}
	return nil
}

func mentions(n ast.Node, name string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}

type use struct{ place, what string }

// graph has the references of the functions, types, variables and struct fields of a package. Local variables that hold
// functions are named "function/variable".
type graph struct {
	pkg     Package
	runners runners
	edges   map[string][]string
	uses    map[string][]use
	structs map[string][]string // the fields of each
	methods []method
}

// method is an unexported method: it runs where a selector has its name and its type is made. An exported one runs
// where its type is made, because other packages may call it through an interface.
type method struct{ typ, name string }

// start is the name of the code that always runs.
const start = ""

func (g *graph) build() {
	for _, file := range g.pkg.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if _, isStruct := s.Type.(*ast.StructType); isStruct {
					g.structs[s.Name.Name] = append(g.structs[s.Name.Name], g.fields(s.Type)...)
				}
			}
			return true
		})
	}
	for path, file := range g.pkg.Files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Body != nil {
					g.function(path, d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					g.declared(path, spec)
				}
			}
		}
	}
}

func (g *graph) function(path string, d *ast.FuncDecl) {
	name, shown := d.Name.Name, d.Name.Name
	if d.Recv != nil {
		typ := receiver(d)
		shown = typ + "." + name
		if ast.IsExported(name) {
			g.edges["type "+typ] = append(g.edges["type "+typ], shown)
		} else {
			g.methods = append(g.methods, method{typ: typ, name: name})
		}
		name = shown
	} else if isStart(path, name) {
		g.edges[start] = append(g.edges[start], name)
	}
	w := walker{graph: g, place: path + ":" + shown, function: name, imports: importNames(g.pkg.Files[path]),
		locals: localFunctions(d.Body), declared: declared(d)}
	if d.Type.Results != nil {
		for _, f := range d.Type.Results.List {
			w.made(f.Type, name)
		}
	}
	w.walk(d.Body, name)
}

func receiver(d *ast.FuncDecl) string {
	name := "?"
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "?" {
			name = id.Name
		}
		return name == "?"
	})
	return name
}

// isStart reports whether the testing package, the runtime or another package calls a function.
func isStart(path, name string) bool {
	if !strings.HasSuffix(path, "_test.go") {
		return ast.IsExported(name) || name == "init"
	}
	entries := []string{"init", "Test", "Fuzz", "Benchmark", "Example"}
	return slices.ContainsFunc(entries, func(p string) bool { return strings.HasPrefix(name, p) })
}

func (g *graph) declared(path string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		ast.Inspect(s.Type, func(n ast.Node) bool { // the types of its fields are made with it
			if f, ok := n.(*ast.Field); ok {
				if id, ok := f.Type.(*ast.Ident); ok {
					g.edges["type "+s.Name.Name] = append(g.edges["type "+s.Name.Name], "type "+id.Name)
				}
			}
			return true
		})
	case *ast.ValueSpec:
		for _, id := range s.Names {
			w := walker{graph: g, place: path + ":" + id.Name, function: id.Name, imports: importNames(g.pkg.Files[path])}
			if s.Type != nil {
				w.made(s.Type, start)
			}
			w.constant(id, start)
			for _, v := range s.Values {
				w.walk(v, id.Name)
			}
		}
	}
}

// reached returns the uses that run outside of bubbles.
func (g *graph) reached() (found []use) {
	seen, next := map[string]bool{start: true}, []string{start}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		found = append(found, g.uses[name]...)
		to := slices.Clone(g.edges[name])
		for _, m := range g.methods {
			if seen["."+m.name] && seen["type "+m.typ] {
				to = append(to, m.typ+"."+m.name)
			}
		}
		for _, to := range to {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return found
}

func importNames(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, spec := range file.Imports {
		names[path.Base(strings.Trim(spec.Path.Value, `"`))] = true
		if spec.Name != nil {
			names[spec.Name.Name] = true
		}
	}
	return names
}

// declared returns the names of a function's parameters and variables.
func declared(d *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names[id.Name] = true
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names[id.Name] = true
				}
			}
		}
		return true
	})
	return names
}

// localFunctions returns the local variables that function literals are assigned to, alone or within a composite
// literal.
func localFunctions(body ast.Node) map[string]bool {
	locals := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, v := range a.Rhs {
				if name := assigned(a.Lhs[i]); name != "" && holdsLiteral(v) {
					locals[name] = true
				}
			}
		}
		return true
	})
	return locals
}

// assigned returns the variable of the left side of an assignment, x or x[i].
func assigned(e ast.Expr) string {
	if i, ok := e.(*ast.IndexExpr); ok {
		e = i.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func holdsLiteral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncLit:
		return true
	case *ast.CompositeLit:
		return slices.ContainsFunc(e.Elts, func(e ast.Expr) bool {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			return holdsLiteral(e)
		})
	}
	return false
}

// walker records the uses and references of one function.
type walker struct {
	*graph
	place, function string
	imports         map[string]bool
	locals          map[string]bool // local variables that hold function literals
	declared        map[string]bool // parameters and variables, which hide functions of the package
}

// bubble owns code that runs in bubbles: nothing reaches it.
const bubble = "in a bubble"

func (w *walker) walk(n ast.Node, owner string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			bubbled := w.runners.of(w.pkg, n)
			w.walk(n.Fun, owner)
			for i, arg := range n.Args {
				if bubbled[i] {
					w.walk(arg, bubble)
				} else {
					w.walk(arg, owner)
				}
			}
			return false
		case *ast.AssignStmt:
			w.assign(n, owner)
			return false
		case *ast.KeyValueExpr:
			w.field(n, owner)
			return false
		case *ast.SelectorExpr:
			w.selector(n, owner)
			return false
		case *ast.CompositeLit:
			w.made(n.Type, owner)
			if fields := w.fields(n.Type); fields != nil && owner != bubble {
				w.table(n, fields, owner)
				return false
			}
			if text := expression(n.Type); text == "http.Client" {
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && expression(kv.Key) == "Timeout" {
						w.use("http.Client.Timeout", owner)
					}
				}
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				w.constant(id, owner)
			}
			w.made(n.Type, owner)
		case *ast.ForStmt:
			if readsClock(n.Cond, "Now", "Since", "Until") || leavesByClock(n.Body) {
				w.use("loop until a time", owner)
			}
		case *ast.IfStmt:
			if readsClock(n.Init, "Since") || readsClock(n.Cond, "Since") {
				w.use("comparison with the time", owner)
			}
		case *ast.Ident:
			w.refer(n.Name, owner)
		}
		return true
	})
}

// assign walks an assignment: function literals belong to the variable, whose uses decide where they run.
func (w *walker) assign(a *ast.AssignStmt, owner string) {
	for i, v := range a.Rhs {
		belongs := owner
		if len(a.Lhs) == len(a.Rhs) && owner != bubble && w.locals[assigned(a.Lhs[i])] {
			belongs = w.function + "/" + assigned(a.Lhs[i])
		}
		w.walk(v, belongs)
	}
	for _, v := range a.Lhs {
		if id, ok := v.(*ast.Ident); ok {
			w.constant(id, owner)
		} else if name := assigned(v); name == "" || !w.locals[name] {
			w.walk(v, owner)
		}
	}
}

// field walks a key with its value: a function literal of a struct's field belongs to the field.
func (w *walker) field(kv *ast.KeyValueExpr, owner string) {
	id, isName := kv.Key.(*ast.Ident)
	if _, isFunction := kv.Value.(*ast.FuncLit); isName && isFunction && owner != bubble {
		w.walk(kv.Value, "field "+id.Name)
		w.edges[owner] = append(w.edges[owner], "type of "+id.Name)
		w.fieldOf(id.Name)
		return
	}
	if !isName {
		w.walk(kv.Key, owner)
	}
	w.walk(kv.Value, owner)
}

// fields returns the names of the fields of a struct, or of the structs in a slice or map, in their order.
func (g *graph) fields(typ ast.Expr) (names []string) {
	switch t := typ.(type) {
	case *ast.ArrayType:
		return g.fields(t.Elt)
	case *ast.MapType:
		return g.fields(t.Value)
	case *ast.Ident:
		return g.structs[t.Name]
	case *ast.StructType:
		for _, f := range t.Fields.List {
			for _, id := range f.Names {
				names = append(names, id.Name)
			}
		}
	}
	return names
}

// table walks a composite literal of structs: a function literal belongs to its field, named or not.
func (w *walker) table(lit *ast.CompositeLit, fields []string, owner string) {
	for i, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if inner, ok := kv.Value.(*ast.CompositeLit); ok && inner.Type == nil {
				w.walk(kv.Key, owner)
				w.table(inner, fields, owner)
			} else {
				w.walk(kv, owner)
			}
			continue
		}
		inner, isLit := e.(*ast.CompositeLit)
		_, isFunc := e.(*ast.FuncLit)
		switch {
		case isLit && inner.Type == nil:
			w.table(inner, fields, owner)
		case isFunc && i < len(fields):
			w.field(&ast.KeyValueExpr{Key: ast.NewIdent(fields[i]), Value: e}, owner)
		default:
			w.walk(e, owner)
		}
	}
}

// fieldOf makes a selector of this name run the field's functions; if the name is exported, any code of other packages
// runs them.
func (w *walker) fieldOf(name string) {
	w.edges["."+name] = append(w.edges["."+name], "field "+name)
	if ast.IsExported(name) {
		w.edges["type of "+name] = append(w.edges["type of "+name], "field "+name)
	}
}

func (w *walker) selector(s *ast.SelectorExpr, owner string) {
	switch text := expression(s); text {
	case "time.Sleep", "time.After", "time.NewTimer", "time.Tick", "time.NewTicker", "time.AfterFunc",
		"context.WithTimeout", "context.WithTimeoutCause", "context.WithDeadline", "context.WithDeadlineCause":
		w.use(text, owner)
	case "net.DialTimeout":
		w.use(text, owner)
	default:
		if name := s.Sel.Name; name == "SetDeadline" || name == "SetReadDeadline" || name == "SetWriteDeadline" {
			w.use(name, owner)
		}
		w.walk(s.X, owner)
		w.edges[owner] = append(w.edges[owner], "."+s.Sel.Name)
		if x, ok := s.X.(*ast.Ident); ok && w.imports[x.Name] { // the package of an external test
			w.edges[owner] = append(w.edges[owner], s.Sel.Name)
		}
	}
}

func (w *walker) refer(name, owner string) {
	switch {
	case w.locals[name]:
		w.edges[owner] = append(w.edges[owner], w.function+"/"+name)
	case !w.declared[name]:
		w.edges[owner] = append(w.edges[owner], name, "type "+name)
	}
}

// made records that values of a type are made.
func (w *walker) made(typ ast.Expr, owner string) {
	if typ == nil {
		return
	}
	ast.Inspect(typ, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			w.edges[owner] = append(w.edges[owner], "type "+id.Name)
		}
		return true
	})
}

func (w *walker) use(what, owner string) {
	w.uses[owner] = append(w.uses[owner], use{w.place, what})
}

// constant finds the names of limits.
func (w *walker) constant(id *ast.Ident, owner string) {
	if id.Obj == nil || id.Obj.Kind == ast.Con || id.Obj.Kind == ast.Var {
		if id.Name == "patience" || strings.HasSuffix(id.Name, "Timeout") || strings.HasSuffix(id.Name, "Patience") {
			w.use(id.Name, owner)
		}
	}
}

// readsClock reports whether a statement or expression calls one of these functions of package time.
func readsClock(n ast.Node, functions ...string) (found bool) {
	if n == nil || reflect.ValueOf(n).IsNil() {
		return false
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			found = found || slices.ContainsFunc(functions, func(f string) bool { return expression(s) == "time."+f })
		}
		return !found
	})
	return found
}

// leavesByClock reports whether a condition within a loop reads the time.
func leavesByClock(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		i, ok := n.(*ast.IfStmt)
		found = found || ok && readsClock(i.Cond, "Now", "Until")
		_, isFunction := n.(*ast.FuncLit)
		return !isFunction
	})
	return found
}

// expression returns the text of a name or a selector of a name.
func expression(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}
