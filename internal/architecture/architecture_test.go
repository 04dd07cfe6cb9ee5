package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/vibedata/roundhouse/"
	root   = "../.."
	sdk    = "github.com/Azure/"
	echo   = "github.com/labstack/echo"
)

// rule says what the packages of a folder may import, out of this module and of the libraries that are kept in one
// place. A rule holds for the folders below, too, unless these have one of their own. What no rule lists is forbidden.
type rule struct {
	folder string
	may    []string
}

func rules() []rule {
	storage := []string{"tables", "queues", "blobs"}
	return []rule{
		{"tables", []string{"internal/storage"}},
		{"queues", []string{"internal/storage"}},
		{"blobs", []string{"internal/storage"}},
		{"azure", append([]string{"internal/storage", sdk}, storage...)},
		{"services/secrets", []string{"tables", "services/secrets", sdk}},
		{"services/certificates", []string{"services/certificates", "services/secrets", "tables", sdk}},
		{"tables/tablestest", []string{"tables"}},
		{"queues/queuestest", []string{"queues"}},
		{"blobs/blobstest", []string{"blobs"}},
		{"orchestrator", append([]string{"orchestrator/tasks", "internal/payload"}, storage...)},
		{"orchestrator/tasks", []string{"tables", "internal/payload"}},
		{"orchestrator/catalog", []string{"orchestrator", "tables"}},
		{"orchestrator/worker", append([]string{"orchestrator", "tables/hostlock", "internal/ncrontab", "internal/payload"}, storage...)},
		{"orchestrator/determinism", nil},
		{"orchestrator/determinism/cmd", []string{"orchestrator/determinism"}},
		{"orchestrator/orchestratortest", append([]string{"orchestrator", "orchestrator/tasks", "internal/faults"}, storage...)},
		{"engine/registry", []string{"tables"}},
		{"engine", append([]string{"orchestrator", "engine/registry", "internal/payload"}, storage...)},
		{"engine/review", []string{"engine", "orchestrator"}},
		{"engine/hmac", []string{"engine", "orchestrator", "services/secrets", "tables"}},
		{"engine/spn", []string{"engine", "services/entra", "orchestrator", "services/secrets"}},
		{"services/entra", []string{sdk}},
		{"engine/provisioning", []string{"engine", "orchestrator", "services/marketplace"}},
		{"engine/alerts", []string{"engine", "orchestrator"}},
		{"services/marketplace", []string{sdk}},
		{"engine/tls", []string{"engine", "orchestrator", "services/certificates", "services/secrets", "tables"}},
		{"engine/tls/acme", []string{"engine/tls", "services/secrets", "tables"}},
		{"engine/update", []string{"engine", "orchestrator", "engine/registry"}},
		{"engine/update/updatetest", nil},
		{"engine/updatepublisher", []string{"engine", "orchestrator", "engine/registry"}},
		{"engine/health", []string{"engine", "orchestrator", "engine/registry"}},
		{"engine/health/healthtest", nil},
		{"tables/hostlock", []string{"tables"}},
		{"outbox", append([]string{"internal/payload"}, storage...)},
		{"poller", append([]string{"internal/storage", "internal/payload"}, storage...)},
		{"poller/pollertest", []string{"poller"}},
		{"poller/sink", append([]string{"engine", "outbox", "poller", "internal/payload"}, storage...)},
		{"poller/sqlsource", []string{"poller"}},
		{"handler", append([]string{"handler/api", "handler/api/bulk", "handler/api/health", "handler/api/metrics", "handler/durable", "handler/intake", "handler/trigger", "outbox", "engine", "engine/hmac", "engine/spn", "engine/alerts", "engine/provisioning", "engine/tls", "engine/tls/acme", "engine/update", "engine/updatepublisher", "engine/health", "engine/review", "services/certificates", "engine/registry", sdk, "services/entra", "services/marketplace", "orchestrator", "orchestrator/catalog", "orchestrator/tasks", "poller", "poller/sink", "poller/sqlsource", "tables/hostlock", "services/secrets", "azure", "internal/payload", echo}, storage...)},
		{"handler/api", []string{"internal/payload", "handler/api/bulk", "handler/api/health", "handler/api/metrics", "engine", "orchestrator", "orchestrator/tasks", "outbox", "tables", echo}},
		{"handler/api/bulk", []string{"engine", "orchestrator", "outbox"}},
		{"handler/api/fresh", nil},
		{"handler/api/health", []string{"handler/api/fresh", "engine", "orchestrator/catalog", "outbox", "queues", "tables"}},
		{"handler/durable", []string{"internal/payload", "handler/api", "engine", "orchestrator", echo}},
		{"handler/api/metrics", []string{"handler/api/fresh", "engine", "orchestrator", "orchestrator/catalog", "outbox", "poller"}},
		{"handler/intake", []string{"internal/payload", "engine", "queues", echo}},
		{"handler/trigger", []string{"internal/payload", "engine", "queues", echo}},
		{"cmd/roundhouse", []string{"cmd/roundhouse/internal/cli", "cmd/roundhouse/internal/pollers"}},
		{"cmd/roundhouse/internal/pollers", []string{"cmd/roundhouse/internal/cli", "poller", "poller/sqlsource"}},
		{"cmd/roundhouse/internal/cli", append([]string{"cmd/roundhouse/internal/client", "cmd/roundhouse/internal/direct", "engine", "engine/hmac", "engine/spn", "engine/alerts", "engine/provisioning", "engine/tls", "engine/update", "engine/updatepublisher", "engine/health", "outbox", "azure", "internal/payload", sdk}, storage...)},
		{"cmd/roundhouse/internal/client", []string{"internal/payload", sdk}},
		{"cmd/roundhouse/internal/direct", []string{"handler/api", "engine", "tables", echo}},
		{"internal/storage", nil},
		{"internal/payload", []string{"internal/storage"}},
		{"internal/daemon", nil},
		{"internal/fuzzvalue", nil},
		{"internal/postgres", []string{"internal/daemon"}},
		{"internal/mariadb", []string{"internal/daemon"}},
		{"internal/azurite", []string{"azure", "internal/azurite"}},
		{"internal/localhost", []string{"internal/ncrontab", "queues", "blobs"}},
		{"internal/ncrontab", nil},
		{"internal/faults", storage},
		{"internal/appservice", nil},
		{"internal/graphfake", []string{sdk}},
		{"internal/keyvaultfake", []string{"services/certificates/certificatestest", "services/secrets/secretstest"}},
		{"internal/marketplacefake", []string{sdk}},
		{"internal/pebble", nil},
		{"internal/tlstarget", nil},
		{"examples", []string{"orchestrator", "orchestrator/worker"}},
		{"internal/acceptance", nil},
		{"internal/architecture", nil},
		{"scripts/bench", append([]string{"azure", "engine", "orchestrator", "orchestrator/tasks", "outbox", "poller", "poller/sqlsource", "internal/azurite", "internal/faults", "internal/postgres"}, storage...)},
		{"scripts/backfill", append([]string{"outbox", "azure"}, storage...)},
		{"scripts/pollers", []string{"poller"}},
		{"scripts/start", []string{"azure", "internal/azurite", "internal/localhost", "queues", "blobs"}},
	}
}

// governing is the rule of a package: the one for the nearest folder.
func governing(pkg string) (rule, bool) {
	best, found := rule{}, false
	for _, r := range rules() {
		if (pkg == r.folder || strings.HasPrefix(pkg, r.folder+"/")) && len(r.folder) >= len(best.folder) {
			best, found = r, true
		}
	}
	return best, found
}

// Imports point down only. Tests may import what they need.
func TestImports(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachFile(t, parser.ImportsOnly, func(pkg, path string, file *ast.File) {
		r, ok := governing(pkg)
		if !ok {
			t.Errorf("%s: no rule says what %s may import", path, pkg)
			return
		}
		used[r.folder] = true
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			target, ours := strings.CutPrefix(name, module)
			kept := ours || strings.HasPrefix(name, sdk) || strings.HasPrefix(name, echo)
			if kept && !slices.ContainsFunc(r.may, func(m string) bool { return target == m || (!ours && strings.HasPrefix(target, m)) }) {
				t.Errorf("%s: %s must not import %s", path, pkg, name)
			}
		}
	})
	for _, r := range rules() {
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

// exportedReceiver says whether a function can be seen from outside: methods of unexported types cannot.
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

// undocumented are the exported names of a declaration that neither it nor its group explains.
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

// eachFile parses every Go file that is no test.
func eachFile(t *testing.T, mode parser.Mode, visit func(pkg, path string, file *ast.File)) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "dist") {
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
