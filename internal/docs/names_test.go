package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Code that the documents name exists: identifiers of the public packages, methods of an orchestrator's context, tests,
// and functions of the host.
func TestNames(t *testing.T) {
	t.Parallel()
	known := declared(t)
	identifier := regexp.MustCompile(`\b(orchestrator|orchestratortest|engine|outbox|poller)\.([A-Z]\w*)`)
	method := regexp.MustCompile(`\bctx\.([A-Z]\w*)`)
	test := regexp.MustCompile(`\bTest[A-Z]\w*`)
	function := regexp.MustCompile(`^[a-z]+(-[a-z]+)*-(timer|trigger)$`)
	found := 0
	for _, p := range pages(t) {
		complain := func(ok bool, name, what string) {
			found++
			if !ok {
				t.Errorf("%s names %s: there is no such %s", p.path, name, what)
			}
		}
		for _, span := range p.spans {
			for _, m := range identifier.FindAllStringSubmatch(span, -1) {
				if strings.HasPrefix(m[2], "Test") { // of the package, below
					continue
				}
				complain(known.names[m[1]+"."+m[2]], m[0], "identifier")
			}
			for _, m := range method.FindAllStringSubmatch(span, -1) {
				complain(known.names["orchestrator.Context."+m[1]], m[0], "method")
			}
			for _, name := range test.FindAllString(span, -1) {
				complain(strings.Contains(known.tests, "func "+name), name, "test") // go test -run takes the beginning of a name
			}
			if function.MatchString(span) {
				_, err := os.Stat(filepath.Join(root, "functions", span))
				complain(err == nil, span, "function")
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d names were found", found)
	}
}

// declarations are those of the program.
type declarations struct {
	// names are package.Name and package.Type.Method of exported ones.
	names map[string]bool
	// tests is the text of all test files.
	tests string
}

func declared(t *testing.T) declarations {
	t.Helper()
	d := declarations{names: map[string]bool{}}
	var tests strings.Builder
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "node_modules" || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && path != root):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			noteDeclarations(d.names, file.Name.Name+".", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.tests = tests.String()
	return d
}
