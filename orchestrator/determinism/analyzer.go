package determinism

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// Analyzer reports operations in orchestrator code that a replay cannot repeat, at the operation or at the call that
// leads to it. Findings name the path of calls and the replacement; a mechanical replacement is a suggested fix.
var Analyzer = &analysis.Analyzer{
	Name: "determinism",
	Doc: `refuse what a replay cannot repeat in the code of orchestrators

An orchestrator is replayed: with the same results it has to decide the same again. So neither it nor what it calls may
use the clock, randomness, goroutines, channels, the order of maps, locks, input and output, addresses, or shared
state. Time, timers, identifiers, randomness and logging come from *orchestrator.Context, everything else belongs in an activity.

A comment on the line, "//determinism:allow reason", allows an exception.`,
	Run:       run,
	FactTypes: []analysis.Fact{new(taint), new(changes)},
}

// runtimePath is the package of Context. It makes replays deterministic, and is not analyzed itself.
const runtimePath = "github.com/vibedata/roundhouse/orchestrator"

func run(pass *analysis.Pass) (any, error) {
	if standardLibrary(pass) || testProgram(pass) || pass.Pkg.Path() == runtimePath {
		return nil, nil
	}
	in := &inspection{
		pass:       pass,
		files:      inspector.New(judged(pass)),
		rules:      newRulebook(),
		allowances: allowances(pass.Fset, judged(pass)),
		functions:  map[types.Object]*function{},
		effects:    map[*types.Func][]effect{},
		reported:   map[string]bool{},
	}
	in.overview = survey(in.files.Root(), pass.TypesInfo)
	in.collect()
	in.spread()
	in.report()
	return nil, nil
}

// judged returns the files of the package that are no tests.
func judged(pass *analysis.Pass) []*ast.File {
	var files []*ast.File
	for _, f := range pass.Files {
		if !strings.HasSuffix(pass.Fset.Position(f.FileStart).Filename, "_test.go") {
			files = append(files, f)
		}
	}
	return files
}

// standardLibrary reports whether the package belongs to the standard library: it has no module of its own, and no
// host in the import path.
func standardLibrary(pass *analysis.Pass) bool {
	first, _, _ := strings.Cut(pass.Pkg.Path(), "/")
	noModule := pass.Module == nil || pass.Module.Path == "" || pass.Module.Path == "std"
	return noModule && !strings.Contains(first, ".")
}

// testProgram reports whether the package is the main package that go test generates.
func testProgram(pass *analysis.Pass) bool {
	return pass.Pkg.Name() == "main" && strings.HasSuffix(pass.Pkg.Path(), ".test")
}

// takesContext reports whether a function of this type is orchestrator code: a parameter is a Context or holds one,
// or the receiver does.
func takesContext(sig *types.Signature) bool {
	for v := range sig.Params().Variables() {
		if isContext(v.Type()) || holdsContext(v.Type(), 2) {
			return true
		}
	}
	return sig.Recv() != nil && holdsContext(sig.Recv().Type(), 2)
}

// holdsContext reports whether values of t are structures with a Context in a field, in structures up to a depth.
func holdsContext(t types.Type, depth int) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, named := types.Unalias(t).(*types.Named)
	s, ok := t.Underlying().(*types.Struct)
	if !ok || depth == 0 || named && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == runtimePath {
		return false
	}
	for f := range s.Fields() {
		if isContext(f.Type()) || holdsContext(f.Type(), depth-1) {
			return true
		}
	}
	return false
}

// isContext reports whether t is *orchestrator.Context.
func isContext(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && isNamed(p.Elem(), runtimePath, "Context")
}

func isNamed(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path && n.Obj().Name() == name
}
