package check

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// workbookItem is a part of a workbook, limited to the members that the tests use.
type workbookItem struct {
	Type    int
	Name    string
	Content struct {
		Query, Title, ResourceType, TimeContextFromParameter string
		Items                                                []workbookItem
		Parameters                                           []struct{ Name string }
		Links                                                []struct{ CellValue, LinkTarget, SubTarget string }
	}
	ConditionalVisibility struct{ ParameterName, Comparison, Value string }
}

// Types of items of workbooks.
const (
	textItem       = 1
	queryItem      = 3
	parametersItem = 9
	linksItem      = 11
	groupItem      = 12
)

// workbookParameter matches a reference to a parameter in a query of a workbook.
var workbookParameter = regexp.MustCompile(`\{(\w+)\}`)

// readWorkbook returns the workbook as a group of all its items.
func readWorkbook(t *testing.T) workbookItem {
	t.Helper()
	var whole workbookItem
	if err := json.Unmarshal([]byte(workbookText(t)), &whole.Content); err != nil {
		t.Fatal(err)
	}
	return whole
}

func workbookText(t *testing.T) string {
	return text(t, "deploy", "check", azureMonitor, "workbook.json")
}

// all returns the items of a group and of the groups in it.
func (i workbookItem) all() []workbookItem {
	var all []workbookItem
	for _, inner := range i.Content.Items {
		all = append(append(all, inner), inner.all()...)
	}
	return all
}

// queries returns the items with a query.
func (i workbookItem) queries() []workbookItem {
	return slices.DeleteFunc(i.all(), func(i workbookItem) bool { return i.Type != queryItem })
}

// inWorkbook returns the query of a file in the workbook's form: with its parameters instead of the values.
func inWorkbook(text string) string {
	return strings.Replace(text, `let correlationId = "";`, `let correlationId = "{CorrelationId}";`, 1)
}

// updateWorkbook is the environment variable that makes the test write the queries of the files into the workbook.
const updateWorkbook = "ROUNDHOUSE_UPDATE_WORKBOOK"

// The workbook's queries are those of the files: each item has the name of a file and its query. All files but one
// are in the workbook; the exception queries metrics, which exist only where they are exported to the workspace.
func TestWorkbookQueries(t *testing.T) {
	t.Parallel()
	files := queryFiles(t, "queries")
	if os.Getenv(updateWorkbook) != "" {
		writeWorkbook(t, files)
	}
	shown := map[string]bool{"metrics": true}
	for _, i := range readWorkbook(t).queries() {
		shown[i.Name] = true
		if diff := cmp.Diff(inWorkbook(files[i.Name]), i.Content.Query); diff != "" {
			t.Errorf("%s is not what the file asks; run %s=1 go test -run '^TestWorkbookQueries$' .\n%s", i.Name, updateWorkbook, diff)
		}
	}
	for name := range files {
		if !shown[name] {
			t.Errorf("the workbook does not show %s", name)
		}
	}
}

func writeWorkbook(t *testing.T, files map[string]string) {
	t.Helper()
	var whole any
	if err := json.Unmarshal([]byte(workbookText(t)), &whole); err != nil {
		t.Fatal(err)
	}
	fillIn(whole, files)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(whole); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(azureMonitor, "workbook.json"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fillIn sets the queries of all items below a part of the workbook to those of their files.
func fillIn(part any, files map[string]string) {
	switch part := part.(type) {
	case []any:
		for _, inner := range part {
			fillIn(inner, files)
		}
	case map[string]any:
		name, _ := part["name"].(string)
		if content, ok := part["content"].(map[string]any); ok && content["query"] != nil {
			content["query"] = inWorkbook(files[name])
		}
		for _, inner := range part {
			fillIn(inner, files)
		}
	}
}

// The workbook is consistent. Every item has a known kind and a unique name, and queries the workspace over the
// selected time. Tabs and groups match each other. Queries refer only to existing parameters.
func TestWorkbook(t *testing.T) {
	t.Parallel()
	names, parameters := map[string]bool{}, map[string]bool{"workspace": true}
	var tabs, groups []string
	all := readWorkbook(t).all()
	for _, i := range all {
		if names[i.Name] || i.Name == "" {
			t.Errorf("the name %q is not one of its own", i.Name)
		}
		names[i.Name] = true
		switch i.Type {
		case textItem, queryItem:
		case parametersItem:
			for _, p := range i.Content.Parameters {
				parameters[p.Name] = true
			}
		case linksItem:
			for _, link := range i.Content.Links {
				if link.CellValue != "Tab" || link.LinkTarget != "parameter" {
					t.Errorf("%s: %+v", i.Name, link)
				}
				tabs = append(tabs, link.SubTarget)
			}
		case groupItem:
			if v := i.ConditionalVisibility; v.ParameterName != "Tab" || v.Comparison != "isEqualTo" {
				t.Errorf("%s: %+v", i.Name, v)
			}
			groups = append(groups, i.ConditionalVisibility.Value)
		default:
			t.Errorf("%s is of the type %d", i.Name, i.Type)
		}
	}
	if diff := cmp.Diff(tabs, groups); diff != "" || len(tabs) < 5 {
		t.Errorf("tabs and groups: %s", diff)
	}
	for _, i := range readWorkbook(t).queries() {
		if i.Content.Title == "" || i.Content.ResourceType != "microsoft.operationalinsights/workspaces" || i.Content.TimeContextFromParameter != "TimeRange" {
			t.Errorf("%s: %+v", i.Name, i.Content)
		}
	}
	for _, m := range workbookParameter.FindAllStringSubmatch(workbookText(t), -1) {
		if !parameters[m[1]] {
			t.Errorf("%s is no parameter", m[0])
		}
	}
}
