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

// workbookItem is a part of a workbook, as far as we use it.
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

// workbookParameter is how a query of a workbook refers to a parameter.
var workbookParameter = regexp.MustCompile(`\{(\w+)\}`)

// readWorkbook is the workbook, as the group of all its items.
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

// all are the items of a group and of the groups in it.
func (i workbookItem) all() []workbookItem {
	var all []workbookItem
	for _, inner := range i.Content.Items {
		all = append(append(all, inner), inner.all()...)
	}
	return all
}

// queries are the items that ask something.
func (i workbookItem) queries() []workbookItem {
	return slices.DeleteFunc(i.all(), func(i workbookItem) bool { return i.Type != queryItem })
}

// inWorkbook is the query of a file as the workbook asks it: with its parameters in place of the values.
func inWorkbook(text string) string {
	return strings.Replace(text, `let correlationId = "";`, `let correlationId = "{CorrelationId}";`, 1)
}

// updateWorkbook writes the queries of the files into the workbook.
const updateWorkbook = "ROUNDHOUSE_UPDATE_WORKBOOK"

// The workbook asks what the files ask: each item has the name of a file and its query. All files but one are in it: metrics are there
// only where somebody sends them.
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

// fillIn gives all items below a part of the workbook the queries of their files.
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

// The workbook is whole: every item is of a kind that we know, has a name of its own, and asks the workspace over the time that is chosen;
// every tab leads to a group and every group has a tab; and what queries refer to are parameters that there are.
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
