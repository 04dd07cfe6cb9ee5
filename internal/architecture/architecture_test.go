package architecture

import (
	_ "embed" // the rules
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	module = "github.com/vibedata/roundhouse/"
	root   = "../.."
	sdk    = "github.com/Azure/"
	echo   = "github.com/labstack/echo"
)

// imports is the list of rules; its first lines explain it.
//
//go:embed imports.txt
var imports string

// rule lists the allowed imports of the packages of a folder.
type rule struct {
	folder string
	may    []string
	line   int
}

// rules reads the list.
func rules(t *testing.T) []rule {
	t.Helper()
	words := map[string][]string{"storage": {"tables", "queues", "blobs"}, "[azure]": {sdk}, "[echo]": {echo}}
	var all []rule
	for n, line := range strings.Split(imports, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		folders, may, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("imports.txt, line %d: there is no =", n+1)
		}
		for _, folder := range strings.Fields(folders) {
			r := rule{folder: folder, line: n + 1}
			for _, word := range strings.Fields(may) {
				if meant, ok := words[word]; ok {
					r.may = append(r.may, meant...)
				} else {
					r.may = append(r.may, word)
				}
			}
			all = append(all, r)
		}
	}
	return all
}

// A package may import only packages that the list has above it, so imports point in one direction.
func TestImportsPointUp(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{sdk: true, echo: true}
	for _, r := range rules(t) {
		seen[r.folder] = true
		for _, name := range r.may {
			above := seen[name]
			for parent := name; !above && strings.Contains(parent, "/"); {
				parent = parent[:strings.LastIndex(parent, "/")]
				above = seen[parent]
			}
			if !above {
				t.Errorf("imports.txt, line %d: %s may import %s, which does not stand above it", r.line, r.folder, name)
			}
		}
	}
}

// governing returns the rule of a package: the one for the nearest folder.
func governing(all []rule, pkg string) (rule, bool) {
	best, found := rule{}, false
	for _, r := range all {
		if (pkg == r.folder || strings.HasPrefix(pkg, r.folder+"/")) && len(r.folder) >= len(best.folder) {
			best, found = r, true
		}
	}
	return best, found
}

// Imports point down only. Tests may import any package.
func TestImports(t *testing.T) {
	t.Parallel()
	used, all := map[string]bool{}, rules(t)
	eachFile(t, parser.ImportsOnly, func(pkg, path string, file *ast.File) {
		r, ok := governing(all, pkg)
		if !ok {
			t.Errorf("%s: no rule says what %s may import", path, pkg)
			return
		}
		used[r.folder] = true
		for _, spec := range file.Imports {
			name := testenv.Must(strconv.Unquote(spec.Path.Value))(t)
			target, ours := strings.CutPrefix(name, module)
			kept := ours || strings.HasPrefix(name, sdk) || strings.HasPrefix(name, echo)
			if kept && !slices.ContainsFunc(r.may, func(m string) bool { return target == m || (!ours && strings.HasPrefix(target, m)) }) {
				t.Errorf("%s: %s must not import %s", path, pkg, name)
			}
		}
	})
	for _, r := range all {
		if !used[r.folder] {
			t.Errorf("the rule for %s governs nothing", r.folder)
		}
	}
}

// Every exported name of a package has a doc comment, and so has every package.
func TestEverythingExportedIsDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	eachFile(t, parser.ParseComments, func(pkg, path string, file *ast.File) {
		documented[pkg] = documented[pkg] || file.Doc != nil
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
					t.Errorf("%s: %s has no doc comment", path, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					for _, name := range undocumented(d, spec) {
						t.Errorf("%s: %s has no doc comment", path, name)
					}
				}
			}
		}
	})
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment", pkg)
		}
	}
}

// exportedReceiver reports whether a function is visible outside: methods of unexported types are not.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}

// undocumented returns the exported names of a declaration without a comment on it or its group.
func undocumented(d *ast.GenDecl, spec ast.Spec) []string {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
			return []string{s.Name.Name}
		}
	case *ast.ValueSpec:
		if s.Doc != nil || s.Comment != nil || d.Doc != nil {
			return nil
		}
		var names []string
		for _, n := range s.Names {
			if n.IsExported() {
				names = append(names, n.Name)
			}
		}
		return names
	}
	return nil
}

// eachFile parses every Go file that is not a test.
func eachFile(t *testing.T, mode parser.Mode, visit func(pkg, path string, file *ast.File)) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		files++
		visit(filepath.ToSlash(pkg), path, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("only %d files were found", files)
	}
}
