package check

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/deploy/check/kql"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// azureMonitor is the folder of the log queries for Azure.
var azureMonitor = filepath.Join("..", "observability", "azure")

// queryFiles returns the queries of a folder of azureMonitor by name.
func queryFiles(t *testing.T, folder string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(azureMonitor, folder, "*.kql"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%q: %v", paths, err)
	}
	files := map[string]string{}
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), ".kql")] = text(t, "deploy", "check", path)
	}
	return files
}

// allQueries returns the queries of all files, of the deployed rules, and of the workbook with its parameters filled
// in.
func allQueries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"queries", "alerts"} {
		for name, text := range queryFiles(t, folder) {
			all[folder+"/"+name] = text
		}
	}
	for _, r := range logAlerts(t, template) {
		all["rule "+r.name] = r.query
	}
	for _, i := range readWorkbook(t).queries() {
		all["workbook "+i.Name] = workbookParameter.ReplaceAllString(i.Content.Query, "value")
	}
	return all
}

// checked returns the parser's results for the queries, and its findings as name:line: finding.
func checked(t *testing.T, queries map[string]string) (results map[string]kql.Result, found []string) {
	t.Helper()
	testenv.Long(t) // it starts Node.js
	names := slices.Sorted(maps.Keys(queries))
	var texts []string
	for _, name := range names {
		texts = append(texts, queries[name])
	}
	all, err := kql.Check(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	results = map[string]kql.Result{}
	for i, name := range names {
		results[name] = all[i]
		for _, f := range all[i].Findings {
			found = append(found, fmt.Sprintf("%s:%v", name, f))
		}
	}
	return results, found
}

// Kusto's parser accepts every query with the published tables and columns. The result of a rule contains the name of
// the app.
func TestQueries(t *testing.T) {
	t.Parallel()
	results, found := checked(t, allQueries(t))
	for _, finding := range found {
		t.Error(finding)
	}
	for name, r := range results {
		if strings.HasPrefix(name, "alerts/") && !slices.Contains(r.Columns, "app") {
			t.Errorf("%s has the columns %q, and no app, by which alerts are told apart", name, r.Columns)
		}
	}
}

// The tests find a mistake in a query, and the finding names it.
func TestQueryMistakes(t *testing.T) {
	t.Parallel()
	files := queryFiles(t, "queries")
	broken, want := map[string]string{}, map[string]string{}
	for name, c := range map[string]struct{ file, old, with, want string }{
		"an unknown table":             {"latency", "AppRequests", "AppRequest", "'AppRequest' does not refer to any known table"},
		"an unknown column":            {"latency", "DurationMs, 50", "Duration, 50", "'Duration' does not refer to any known column"},
		"a column of another table":    {"exceptions", "ItemCount", "ResultCode", "'ResultCode' does not refer to any known column"},
		"a misspelt operator":          {"latency", "| order by", "| ordre by", "Query operator expected"},
		"an unknown function":          {"storage-metrics", "avgif(", "averageif(", "'averageif' does not refer to any known function"},
		"a parameter that is not let":  {"late-messages", "let late = 5m;", "", "'late' does not refer to any known column"},
		"a column that is gone by now": {"exceptions", "order by exceptions", "order by ItemCount", "'ItemCount' does not refer to any known column"},
		"a word of the language":       {"takeovers", "project at =", "project time =", "needs to be bracketed"},
		"a parenthesis too few":        {"latency", "not(Success))", "not(Success)", "Expected: )"},
	} {
		if strings.Count(files[c.file], c.old) == 0 {
			t.Fatalf("%s has no %q", c.file, c.old)
		}
		broken[name], want[name] = strings.Replace(files[c.file], c.old, c.with, 1), c.want
	}
	_, found := checked(t, broken)
	for name := range broken {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, name+":") && strings.Contains(f, want[name]) }) {
			t.Errorf("%s: %q is not in what was found:\n%s", name, want[name], strings.Join(found, "\n"))
		}
	}
}

// Each file begins with the question that its query answers; the files for operators also list their parameters.
func TestQueryComments(t *testing.T) {
	t.Parallel()
	for folder, first := range map[string]string{"queries": `^// [A-Z][^\n]*\?`, "alerts": `^// [A-Z][^\n]*[.:]`} {
		for name, text := range queryFiles(t, folder) {
			comment := regexp.MustCompile(`^(//[^\n]*\n)+`).FindString(text)
			if !regexp.MustCompile(first).MatchString(comment) {
				t.Errorf("%s/%s does not begin with what it asks:\n%s", folder, name, comment)
			}
			parameters := regexp.MustCompile(`(?m)^let (\w+) = [^\n|]*;$`).FindAllStringSubmatch(text, -1)
			if folder == "queries" && (len(parameters) == 0) != strings.Contains(comment, "// Parameters: none.") {
				t.Errorf("%s has %d parameters:\n%s", name, len(parameters), comment)
			}
			for _, p := range parameters {
				if folder == "queries" && !strings.Contains(comment, "// Parameter: "+p[1]+",") {
					t.Errorf("%s does not say what %s is:\n%s", name, p[1], comment)
				}
			}
		}
	}
}

// documentedFields returns the fields in the table of the chapter Logs.
func documentedFields(t *testing.T) []string {
	t.Helper()
	_, chapter, ok := strings.Cut(text(t, "docs", "observability.md"), "\n## Logs\n")
	if !ok {
		t.Fatal("docs/observability.md has no chapter Logs")
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var fields []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(chapter, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			fields = append(fields, name[1])
		}
	}
	return fields
}

// Queries read only documented fields of the handler's log lines.
func TestQueryFields(t *testing.T) {
	t.Parallel()
	documented := documentedFields(t)
	read := regexp.MustCompile(`(?:\bline|parse_json\(Message\))(?:\.(\w+)|\["(\w+)"\])`)
	found := 0
	for name, text := range allQueries(t) {
		for _, m := range read.FindAllStringSubmatch(text, -1) {
			found++
			if field := m[1] + m[2]; !slices.Contains(documented, field) {
				t.Errorf("%s reads %s, which is no field of the log", name, field)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d fields were found", found)
	}
}

// Queries search only for texts that the program logs.
func TestQueryTexts(t *testing.T) {
	t.Parallel()
	program := programText(t)
	compared := regexp.MustCompile(`\b(?:msg|outcome|fate|status) (==|startswith|in) (\([^)]*\)|"[^"]*")`)
	quoted := regexp.MustCompile(`"([^"]*)"`)
	found := 0
	for name, text := range allQueries(t) {
		for _, m := range compared.FindAllStringSubmatch(text, -1) {
			for _, literal := range quoted.FindAllStringSubmatch(m[2], -1) {
				found++
				said := `"` + literal[1]
				if m[1] != "startswith" {
					said += `"`
				}
				if !strings.Contains(program, said) {
					t.Errorf("%s looks for %s, which the program does not say", name, said)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d texts were found", found)
	}
}

// programText returns the source of the packages that run in an app.
func programText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"engine", "handler", "internal/outage", "orchestrator", "outbox", "poller"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
