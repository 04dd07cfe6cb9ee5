package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	markdown "github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// repository is the code that implements the requirements.
type repository struct {
	dir string
	// packages are the test functions of requested packages, files the declarations of Go files.
	packages map[string]map[string]*ast.FuncDecl
	files    map[string]map[string]bool
}

// testName is {package}.{test}, with a subtest after a slash.
var testName = regexp.MustCompile(`^([a-z][a-z0-9/]*)\.((?:Test|Fuzz|Example)[A-Za-z0-9_]*)(?:/(.+))?$`)

// problems returns the wrong statements of the requirements.
func (r *repository) problems(all []requirement) []string {
	var problems []string
	for _, q := range all {
		complain := func(format string, args ...any) {
			problems = append(problems, q.number+": "+fmt.Sprintf(format, args...))
		}
		if q.missing {
			if len(q.tests)+len(q.differs) > 0 {
				complain("what is missing has no test and no decision")
			}
			continue
		}
		if len(q.where) == 0 {
			complain("nothing that keeps it is linked")
		}
		if len(q.tests) == 0 && len(q.differs) == 0 {
			complain("it has neither a test nor a decision")
		}
		for _, problem := range r.missing(q) {
			complain("%s", problem)
		}
	}
	return problems
}

// missing returns the names in a requirement that do not exist.
func (r *repository) missing(q requirement) []string {
	var problems []string
	note := func(problem string) {
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	for _, to := range q.where {
		note(r.place(to))
	}
	for _, name := range q.tests {
		note(r.test(name))
	}
	for _, to := range q.differs {
		note(r.decision(to))
	}
	return problems
}

// place returns the problem of a link to code: its text names the folder, or a declaration or text in the file.
func (r *repository) place(to reference) string {
	file := path.Join("docs", to.target)
	info, err := os.Stat(filepath.Join(r.dir, filepath.FromSlash(file)))
	switch {
	case err == nil && info.IsDir() || err != nil && path.Ext(file) == "":
		if to.text != file {
			return fmt.Sprintf("the folder %s is named %s", file, to.text)
		}
	case strings.HasSuffix(file, ".go") && !r.declares(file)[to.text]:
		return fmt.Sprintf("%s declares no %s", file, to.text)
	}
	return ""
}

// declares returns the declarations of a Go file, fields and methods as Type.Name; nothing for an unreadable file.
func (r *repository) declares(file string) map[string]bool {
	if names, ok := r.files[file]; ok {
		return names
	}
	names := map[string]bool{}
	if parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(r.dir, filepath.FromSlash(file)), nil, 0); err == nil {
		noteDeclarations(names, "", parsed)
	}
	if r.files == nil {
		r.files = map[string]map[string]bool{}
	}
	r.files[file] = names
	return names
}

// noteDeclarations records the declarations of a file, fields and methods as Type.Name, with a prefix before each.
func noteDeclarations(names map[string]bool, prefix string, file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[prefix+receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				noteSpec(names, prefix, spec)
			}
		}
	}
}

func noteSpec(names map[string]bool, prefix string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[prefix+name.Name] = true
		}
	case *ast.TypeSpec:
		names[prefix+s.Name.Name] = true
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				names[prefix+s.Name.Name+"."+name.Name] = true
			}
		}
	}
}

// receiver returns the type of a method followed by a dot, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// test returns the problem of a test's name. The name of a subtest has to occur in its test as a text.
func (r *repository) test(name string) string {
	m := testName.FindStringSubmatch(name)
	if m == nil {
		return name + " is no test of a package"
	}
	test := r.tests(m[1])[m[2]]
	switch {
	case test == nil:
		return fmt.Sprintf("%s has no %s", m[1], m[2])
	case m[3] != "" && !hasText(test, m[3]):
		return fmt.Sprintf("%s.%s has no subtest %q", m[1], m[2], m[3])
	}
	return ""
}

// tests returns the functions in the test files of a package; none for a missing package.
func (r *repository) tests(folder string) map[string]*ast.FuncDecl {
	if tests, ok := r.packages[folder]; ok {
		return tests
	}
	tests := map[string]*ast.FuncDecl{}
	files, _ := filepath.Glob(filepath.Join(r.dir, filepath.FromSlash(folder), "*_test.go")) // the pattern is valid
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			continue // the compiler reports it
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = f
			}
		}
	}
	if r.packages == nil {
		r.packages = map[string]map[string]*ast.FuncDecl{}
	}
	r.packages[folder] = tests
	return tests
}

// hasText reports whether a text occurs in a function.
func hasText(f *ast.FuncDecl, want string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			found = found || err == nil && value == want
		}
		return !found
	})
	return found
}

// decision returns the problem of a link to a decision: its text is the beginning of a bold text in the section.
func (r *repository) decision(to reference) string {
	file, anchor, _ := strings.Cut(to.target, "#")
	source, err := os.ReadFile(filepath.Join(r.dir, "docs", filepath.FromSlash(file)))
	if err != nil || !decisionsOf(source, anchor, to.text) {
		return fmt.Sprintf("%s has no decision that begins %q", to.target, to.text)
	}
	return ""
}

// decisionsOf reports whether a section of a page has a bold text with this beginning.
func decisionsOf(source []byte, anchor, beginning string) (found bool) {
	p, here := page{anchors: map[string]bool{}}, ""
	document := goldmark.DefaultParser().Parse(text.NewReader(source))
	_ = markdown.Walk(document, func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
		if !entering {
			return markdown.WalkContinue, nil
		}
		switch n := n.(type) {
		case *markdown.Heading:
			here = p.newAnchor(plain(source, n))
			p.anchors[here] = true
		case *markdown.Emphasis:
			found = found || n.Level == 2 && here == anchor && strings.HasPrefix(oneLine(source, n), beginning)
		}
		return markdown.WalkContinue, nil
	})
	return found
}

// oneLine returns the text of a node with its lines joined by blanks.
func oneLine(source []byte, n markdown.Node) string {
	var out strings.Builder
	_ = markdown.Walk(n, func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
		if t, ok := n.(*markdown.Text); ok && entering {
			out.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				out.WriteByte(' ')
			}
		}
		return markdown.WalkContinue, nil
	})
	return out.String()
}
