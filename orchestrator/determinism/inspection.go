package determinism

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// inspection is the analysis of one package.
type inspection struct {
	pass       *analysis.Pass
	files      *inspector.Inspector
	rules      rulebook
	allowances map[place]*allowance
	*overview
	effects   map[*types.Func][]effect   // see effects.go
	functions map[types.Object]*function // objects that findings can name
	all       []*function                // in the order of the source
	reported  map[string]bool
}

// function is a function of the package, a variable that holds one, or the literal of an orchestrator.
type function struct {
	object   types.Object // nil for a literal
	judged   bool         // orchestrator code by its own type; its findings are reported in place
	values   bool         // a variable; only values that differ matter
	findings []finding
	changes  []change // of the values behind its parameters
	passes   []passed
	taint    *taint
}

// finding is a forbidden operation in a function. Either instead is set, or the finding depends on the function or
// variable that it names.
type finding struct {
	at        inspector.Cursor
	pos       token.Pos
	act       string // a verb and its object
	instead   string
	value     bool         // it yields a value that differs, rather than an effect
	later     bool         // it is in a function that is passed on, not called
	fix       string       // see rule.fix
	follow    types.Object // nil when instead is set
	allowance *allowance
}

// collect finds all functions, and variables that stand for functions, and scans them.
func (in *inspection) collect() {
	info := in.pass.TypesInfo
	for c := range in.files.Root().Preorder((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		switch n := c.Node().(type) {
		case *ast.FuncDecl:
			if f, ok := info.Defs[n.Name].(*types.Func); ok && n.Body != nil {
				in.add(in.scan(c, &function{object: f, judged: takesContext(f.Signature())}))
			}
		case *ast.FuncLit:
			if sig, ok := info.TypeOf(n).(*types.Signature); ok && takesContext(sig) {
				in.add(in.scan(c, &function{judged: true}))
			}
		}
	}
	in.spreadChanges()
	for c := range in.files.Root().Preorder((*ast.Ident)(nil)) {
		if v, ok := info.Defs[c.Node().(*ast.Ident)].(*types.Var); ok {
			in.variable(v)
		}
	}
	in.concludeChanges()
}

// variable scans the values of a variable.
func (in *inspection) variable(v *types.Var) {
	f := &function{object: v}
	switch values := in.held[v]; {
	case len(values) > 0:
		if sig, ok := v.Type().Underlying().(*types.Signature); ok {
			// A function that takes a Context has been scanned as orchestrator code.
			f.judged = takesContext(sig)
		}
		for _, value := range values {
			if c, ok := in.files.Root().FindNode(value); ok {
				in.scan(c, f)
				f.findings = append(f.findings, in.brought(c, value, elementOf(v.Type()))...)
			}
		}
	case packageLevel(v) && !carries(v.Type()):
		f.values = true
		for _, value := range in.initialValues(v) {
			if c, ok := in.files.Root().FindNode(value); ok {
				in.scan(c, f)
			}
		}
	}
	f.findings = append(f.findings, in.setElsewhere(v)...)
	if len(f.findings) > 0 {
		in.add(f)
	}
}

func (in *inspection) add(f *function) {
	in.all = append(in.all, f)
	if f.object != nil {
		in.functions[f.object] = f
	}
}

// spread propagates taints from callees to callers, the nearest first, and exports them as facts.
func (in *inspection) spread() {
	type call struct {
		from *function
		at   finding
	}
	calls := map[*function][]call{}
	var queue []*function
	for _, f := range in.all {
		for _, at := range f.findings {
			if t := in.known(at); t != nil && !at.allowed() && f.taint == nil && (t.Value || !f.values) {
				f.taint = t
				queue = append(queue, f)
			}
			if to := in.local(at); to != nil && !at.allowed() {
				calls[to] = append(calls[to], call{f, at})
			}
		}
	}
	for len(queue) > 0 {
		tainted := queue[0]
		queue = queue[1:]
		for _, c := range calls[tainted] {
			if c.from.taint == nil && (tainted.taint.Value || !c.from.values) {
				c.from.taint = c.at.after(tainted.taint)
				queue = append(queue, c.from)
			}
		}
	}
	for _, f := range in.all {
		if f.taint != nil && f.object != nil && (isFunc(f.object) || packageLevel(f.object) || isField(f.object) && carries(f.object.Type())) {
			in.pass.ExportObjectFact(f.object, f.taint)
		}
	}
}

// known returns the taint of a finding that does not depend on this package.
func (in *inspection) known(f finding) *taint {
	if f.follow == nil {
		return &taint{Steps: []string{f.act}, Instead: f.instead, Value: f.value && !f.later}
	}
	var t taint
	if f.follow.Pkg() != in.pass.Pkg && in.pass.ImportObjectFact(f.follow, &t) {
		return f.after(&t)
	}
	return nil
}

// local returns the function of this package that a finding depends on. Findings of orchestrator code are reported in
// place, not again at its calls.
func (in *inspection) local(f finding) *function {
	if f.follow == nil {
		return nil
	}
	if to := in.functions[f.follow]; to != nil && !to.judged {
		return to
	}
	return nil
}

// after returns the taint of a caller or reader of something with the taint t. The value shows at the call or the
// read, and already at the assignment if others can set it.
func (f finding) after(t *taint) *taint {
	value := t.Value && !f.later && !strings.HasPrefix(f.act, "uses ") && !strings.HasPrefix(t.Steps[0], isSet)
	return &taint{Steps: append([]string{f.act}, t.Steps...), Instead: t.Instead, Value: value}
}

func isField(o types.Object) bool {
	v, ok := o.(*types.Var)
	return ok && v.IsField()
}

func isFunc(o types.Object) bool {
	_, ok := o.(*types.Func)
	return ok
}

// report reports the findings of orchestrator code, and unused or unexplained allowances.
func (in *inspection) report() {
	for _, f := range in.all {
		for _, at := range f.findings {
			t := in.known(at)
			if to := in.local(at); to != nil && to.taint != nil {
				t = at.after(to.taint)
			}
			if t == nil {
				continue
			}
			if at.allowed() {
				at.allowance.used = true
				continue
			}
			if f.judged {
				in.diagnose(at, t)
			}
		}
	}
	for _, a := range slices.SortedFunc(maps.Values(in.allowances), inSource) {
		switch {
		case a.reason == "":
			in.pass.ReportRangef(a.comment, "%s needs a reason: write it behind, on the same line", allowPrefix)
		case !a.used:
			in.pass.ReportRangef(a.comment, "%s allows nothing: there is no finding on this line", allowPrefix)
		}
	}
}

func inSource(a, b *allowance) int { return cmp.Compare(a.comment.Pos(), b.comment.Pos()) }

// diagnose reports a finding once, for any number of literals around it.
func (in *inspection) diagnose(f finding, t *taint) {
	message := fmt.Sprintf("orchestrator code %s: %s", route(t.Steps), t.Instead)
	key := fmt.Sprint(f.pos, message)
	if in.reported[key] {
		return
	}
	in.reported[key] = true
	in.pass.Report(analysis.Diagnostic{
		Pos:            f.pos,
		End:            f.at.Node().End(),
		Message:        message,
		SuggestedFixes: in.fixes(f),
	})
}
