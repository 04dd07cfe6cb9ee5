package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// requirementsPage lists the place and the test of each requirement of the five documents.
const requirementsPage = "docs/requirements.md"

// requirementLetters are the first letters of the numbers: of the rounds document, the engine operations standard, and
// the outbox, checkpoint and persistence documents.
const requirementLetters = "REOCP"

// missing replaces the place of a requirement that is not implemented yet.
const missing = "missing"

// requirement is one row of that page.
type requirement struct {
	number  string
	missing bool
	// where implements it; differs links the decisions on deviations.
	where, differs []reference
	// tests are {package}.{test}, with a subtest after a slash.
	tests []string
}

// reference is a link of a row.
type reference struct{ text, target string }

// Each requirement has a place, and a test that would fail without it or a decision that gives the reason; and all of
// these exist.
func TestRequirements(t *testing.T) {
	t.Parallel()
	source := testenv.Must(os.ReadFile(filepath.Join(root, filepath.FromSlash(requirementsPage))))(t)
	all := requirementsOf(source)
	if len(all) < 400 {
		t.Errorf("only %d requirements are found", len(all))
	}
	r := repository{dir: root}
	for _, problem := range append(numbered(all), r.problems(all)...) {
		t.Errorf("%s: %s", requirementsPage, problem)
	}
	if want := counted(all); !strings.Contains(string(source), want) {
		t.Errorf("%s does not have these counts of what is in it:\n%s", requirementsPage, want)
	}
}

// counted returns the table with the numbers of requirements by document.
func counted(all []requirement) string {
	var b strings.Builder
	b.WriteString("| document | holds | differs | missing |\n| --- | --- | --- | --- |\n")
	for i, document := range []string{"rounds", "engine operations standard", "outbox", "checkpoint (pollers)", "persistence"} {
		var holds, differs, lacks int
		for _, r := range all {
			switch {
			case r.number[0] != requirementLetters[i]:
			case r.missing:
				lacks++
			case len(r.differs) > 0:
				differs++
			default:
				holds++
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", document, holds, differs, lacks)
	}
	return b.String()
}

// Wrong statements in a row are found.
func TestRequirementsThatAreNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"docs/decisions.md": "# Decisions\n\n## Messages\n\n**A message waits** for its turn, and\n**is never\nlost**.\n\n## Other\n",
		"work/work.go":      "package work\n\ntype Job struct{ Name string }\n\nfunc (j *Job) Do() {}\n\nconst Limit = 5\n",
		"work/job_test.go":  "package work\n\nfunc TestJob(t *testing.T) { t.Run(\"well\", nil) }\n\nvar other = \"ill\"\n\nfunc helpTest() {}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testenv.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testenv.OK(t, os.WriteFile(path, []byte(content), 0o600))
	}
	const where, test, differs = "[`Job.Do`](../work/work.go)", "`work.TestJob/well`", "[A message waits](decisions.md#messages)"
	for name, tt := range map[string]struct{ row, want string }{
		"all is well":         {"| E1 | Work. | " + where + " | " + test + " | " + differs + " |", ""},
		"several":             {"| E1 | Work. | " + where + ", [`work`](../work), [`Limit`](../work/work.go), [`Job.Name`](../work/work.go) | " + test + ", `work.TestJob` | [is never lost](decisions.md#messages) |", ""},
		"a test alone":        {"| E1 | Work. | " + where + " | " + test + " | |", ""},
		"a deviation alone":   {"| E1 | Work. | " + where + " | | " + differs + " |", ""},
		"nothing keeps it":    {"| E1 | Work. | work | " + test + " | |", "E1: nothing that keeps it is linked"},
		"missing":             {"| E1 | Work. | missing | | |", ""},
		"missing and tested":  {"| E1 | Work. | missing | " + test + " | |", "E1: what is missing has no test and no decision"},
		"no test":             {"| E1 | Work. | " + where + " | a test | |", "E1: it has neither a test nor a decision"},
		"another test":        {"| E1 | Work. | " + where + " | `work.TestPlay` | |", "E1: work has no TestPlay"},
		"another package":     {"| E1 | Work. | " + where + " | `play.TestJob` | |", "E1: play has no TestJob"},
		"no package":          {"| E1 | Work. | " + where + " | `TestJob` | |", "E1: TestJob is no test of a package"},
		"another subtest":     {"| E1 | Work. | " + where + " | `work.TestJob/ill` | |", `E1: work.TestJob has no subtest "ill"`},
		"no test function":    {"| E1 | Work. | " + where + " | `work.helpTest` | |", "E1: work.helpTest is no test of a package"},
		"another symbol":      {"| E1 | Work. | [`Job.Rest`](../work/work.go) | " + test + " | |", "E1: work/work.go declares no Job.Rest"},
		"another file":        {"| E1 | Work. | [`Job`](../work/play.go) | " + test + " | |", "E1: work/play.go declares no Job"},
		"another folder":      {"| E1 | Work. | [`work`](../play) | " + test + " | |", "E1: the folder play is named work"},
		"another decision":    {"| E1 | Work. | " + where + " | | [A message flies](decisions.md#messages) |", `E1: decisions.md#messages has no decision that begins "A message flies"`},
		"another section":     {"| E1 | Work. | " + where + " | | [A message waits](decisions.md#other) |", `E1: decisions.md#other has no decision that begins "A message waits"`},
		"a number twice":      {"| E1 | Work. | " + where + " | " + test + " | |\n| E1 | Rest. | " + where + " | " + test + " | |", "E1 stands where E2 is due"},
		"a number is missing": {"| E2 | Work. | " + where + " | " + test + " | |", "E2 stands where E1 is due"},
		"a letter of its own": {"| E1 | Work. | " + where + " | " + test + " | |\n| C1 | Rest. | " + where + " | " + test + " | |", ""},
		"no such document":    {"| X1 | Work. | " + where + " | " + test + " | |", "X1 is no number of a requirement"},
		"no number":           {"| one | Work. | " + where + " | " + test + " | |", "one is no number of a requirement"},
	} {
		source := []byte("| | requirement | where | test | differs |\n| --- | --- | --- | --- | --- |\n" + tt.row + "\n")
		r := repository{dir: dir}
		all := requirementsOf(source)
		if got := strings.Join(append(numbered(all), r.problems(all)...), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// requirementsOf reads the rows of all tables of a page with five columns.
func requirementsOf(source []byte) []requirement {
	var all []requirement
	document := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		row, ok := n.(*east.TableRow)
		if !ok || !entering || row.ChildCount() != 5 {
			return ast.WalkContinue, nil
		}
		var cells []ast.Node
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, cell)
		}
		all = append(all, requirement{number: plain(source, cells[0]), missing: plain(source, cells[2]) == missing, where: references(source, cells[2]), tests: codes(source, cells[3]), differs: references(source, cells[4])})
		return ast.WalkSkipChildren, nil
	})
	return all
}

// references returns the links in a cell.
func references(source []byte, cell ast.Node) []reference {
	var all []reference
	_ = ast.Walk(cell, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			all = append(all, reference{text: plain(source, link), target: string(link.Destination)})
		}
		return ast.WalkContinue, nil
	})
	return all
}

// codes returns the code spans in a cell.
func codes(source []byte, cell ast.Node) []string {
	var all []string
	_ = ast.Walk(cell, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if span, ok := n.(*ast.CodeSpan); ok && entering {
			all = append(all, plain(source, span))
		}
		return ast.WalkContinue, nil
	})
	return all
}

// numbered returns the gaps in the numbers of requirements, for each letter separately.
func numbered(all []requirement) []string {
	var problems []string
	last := map[byte]int{}
	for _, r := range all {
		var letter byte
		var n int
		if _, err := fmt.Sscanf(r.number, "%c%d", &letter, &n); err != nil || !strings.ContainsRune(requirementLetters, rune(letter)) {
			problems = append(problems, r.number+" is no number of a requirement")
			continue
		}
		last[letter]++
		if n != last[letter] {
			problems = append(problems, fmt.Sprintf("%s stands where %c%d is due", r.number, letter, last[letter]))
		}
	}
	return problems
}
