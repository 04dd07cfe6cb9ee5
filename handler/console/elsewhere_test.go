package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access"
)

var copied = regexp.MustCompile(`data-copy="the (id|command|curl command)">([^<]*)<`)

// copies are what a page offers for copying.
func copies(page string) map[string]string {
	out := map[string]string{}
	for _, m := range copied.FindAllStringSubmatch(page, -1) {
		out[m[1]] = html.UnescapeString(m[2])
	}
	return out
}

// What a page offers for copying asks for what the page shows, at the host that the browser has asked, and never with a key.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const key = `curl -H "x-functions-key: $ROUNDHOUSE_KEY" `
	from := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, test := range map[string]struct {
		control access.Control
		target  string
		change  func(*http.Request)
		want    map[string]string
	}{
		"a list": {access.Control{EasyAuth: true}, lettersPath + "?engine=hmac&instanceId=it%27s&fromDate=2026-11-26T13%3A00%3A00%2B01%3A00", from("X-Forwarded-Host", "app.example"), map[string]string{
			"command":      `roundhouse dlq list --engine=hmac --status=Pending '--instance=it'\''s' --from=2026-11-26T13:00:00+01:00`,
			"curl command": key + `'https://app.example/api/machine/dlq?engine=hmac&fromDate=2026-11-26T13%3A00%3A00%2B01%3A00&instanceId=it%27s&status=Pending'`}},
		"one thing": {access.Control{EasyAuth: true}, letterM1, from("X-Forwarded-Host", "app.example"), map[string]string{
			"id": "hmac/m1-20261126T120000.000000Z", "command": "roundhouse dlq show hmac m1-20261126T120000.000000Z", "curl command": key + "https://app.example/api/machine/dlq/hmac/m1-20261126T120000.000000Z"}},
		"on a developer's machine": {access.Control{Development: true, LocalKey: key}, orchestrationsPath, from("x-functions-key", key), map[string]string{
			"command": "roundhouse orchestration list", "curl command": key + "http://localhost/api/machine/orchestrations"}},
		"what cannot be seen": {access.Control{EasyAuth: true}, lettersPath + "?instanceId=%E2%80%AEabc", from("X-Forwarded-Host", "app.example"), map[string]string{
			"curl command": key + `'https://app.example/api/machine/dlq?instanceId=%E2%80%AEabc&status=Pending'`}},
		"a host that is none": {access.Control{EasyAuth: true}, orchestrationsPath, from("X-Forwarded-Host", "a$(id).example"), map[string]string{"command": "roundhouse orchestration list"}},
		"a form":              {access.Control{EasyAuth: true}, letterM1 + "/retry", from("X-Forwarded-Host", "app.example"), map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := get(t, newConsole(t, typical(), test.control), test.target, test.change)
			got := copies(rec.Body.String())
			for what, text := range test.want {
				if got[what] != text {
					t.Errorf("%s: %s, want %s", what, got[what], text)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("there are %v", got)
			}
		})
	}
}

// An id that cannot be shown as it is cannot be copied, nor can a command with it.
func TestElsewhereOfHiddenIDs(t *testing.T) {
	t.Parallel()
	l := letterData(map[string]any{"rowKey": "a\u202eb"})
	rec := get(t, newConsole(t, typical().with(answers{"/api/dlq/hmac/a\u202eb": l}), access.Control{EasyAuth: true}), letterLink("hmac", "a\u202eb"))
	got := copies(rec.Body.String())
	if rec.Code != http.StatusOK || len(got) != 1 || !strings.Contains(got["curl command"], "/hmac/a%E2%80%AEb") {
		t.Errorf("%d: %q", rec.Code, got)
	}
	for _, test := range []struct {
		ids  []string
		want Text
	}{
		{[]string{"acme", "-1"}, "roundhouse outbox show -- acme -1"},
		{[]string{"a b", "c"}, "roundhouse outbox show 'a b' c"},
		{[]string{"a\nb", "c"}, ""},
	} {
		if got := showLine("outbox show", test.ids...); got != test.want {
			t.Errorf("%q: %s, want %s", test.ids, got, test.want)
		}
	}
}

var chipLink = regexp.MustCompile(`<a class="chip" href="([^"]*)"><span class="unseen">Without </span>([^:<]*): `)

// Each filter of a list that is set is a chip, and its link leads to the list without that filter, and with all others.
func TestChips(t *testing.T) {
	t.Parallel()
	api := typical().with(answers{"/api/tasks": list(), "/api/registry": list(), "/api/audit": list(), "/api/operations": list(), "/api/workflow/outbox/metrics": map[string]any{},
		"/api/workflow/outbox/circuits": list(), "/api/workflow/outbox/backlog": list()})
	for name, test := range map[string]struct {
		path, query string
		want        []string
		kept        string // what stays although it is no filter
	}{
		"dead letters":           {lettersPath, "status=any&engine=hmac&instanceId=i%3C1&correlationId=c&errorSignature=s&assignee=me&fromDate=2026-11-21&toDate=2026-11-22", []string{"Status", "Engine", "Instance", "Correlation id", "Cause", "Taken by", "Failed from", "Failed until"}, ""},
		"pending dead letters":   {lettersPath, "status=Pending", nil, ""},
		"causes":                 {causesPath, "status=any&engine=hmac&errorSignature=s&assignee=me", []string{"Status", "Engine"}, ""},
		"all tasks":              {tasksPath, "view=all&status=Completed&assignee=a&role=r&engine=hmac&tenantId=t&dueBefore=2026-11-21", []string{"Status", "Who has it", "Role", "Engine", "Tenant", "Due before"}, "view=all"},
		"my tasks":               {tasksPath, "status=Completed&assignee=a&role=r", []string{"Role"}, "view=mine"},
		"events":                 {outboxPath, "status=dead&tenant=acme&eventType=e&correlationId=c&fromDate=2026-11-21&toDate=2026-11-22", []string{"Status", "Tenant", "Event type", "Correlation id", "Published from", "Published until"}, ""},
		"events with any status": {outboxPath, "status=any", nil, ""},
		"operations":             {operationsPath, "status=Open&by=ada", []string{"Status", "By"}, ""},
		"audit":                  {auditPath, "target=t&principal=p&fromDate=2026-11-21&toDate=2026-11-22", []string{"Target", "Who", "From", "Until"}, ""},
		"registry":               {registryPath, "tenantId=t&ring=r&locked=true", []string{"Tenant", "Ring", "Lock"}, ""},
		"orchestrations":         {orchestrationsPath, "status=Failed&tag=a&columns=status", []string{"Status", "Business reference"}, "columns=status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			console := newConsole(t, api, access.Control{EasyAuth: true})
			chips := func(target string) (names []string, links map[string]string) {
				links = map[string]string{}
				for _, m := range chipLink.FindAllStringSubmatch(strings.SplitN(get(t, console, target).Body.String(), `<details class="filter"`, 2)[0], -1) {
					names, links[m[2]] = append(names, m[2]), html.UnescapeString(m[1])
				}
				return names, links
			}
			names, links := chips(test.path + "?" + test.query)
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("chips (-want +got):\n%s", diff)
			}
			for name, link := range links {
				rest, _ := chips(link)
				want := slices.DeleteFunc(slices.Clone(test.want), func(other string) bool { return other == name })
				if diff := cmp.Diff(want, rest); diff != "" && len(want)+len(rest) > 0 {
					t.Errorf("without %s (-want +got):\n%s", name, diff)
				}
				at, err := url.Parse(link)
				if err != nil || at.Path != test.path || !strings.Contains(at.RawQuery, test.kept) {
					t.Errorf("without %s: %s, %v", name, link, err)
				}
			}
		})
	}
}

// sketch is a tree in one line.
func sketch(n *treeNode) string {
	if n == nil {
		return "none"
	}
	if n.Kind == "" {
		return string(n.Name) + "=" + string(n.Value)
	}
	var all []string
	for _, c := range n.Children {
		all = append(all, sketch(c))
	}
	if n.Left > 0 {
		all = append(all, fmt.Sprintf("+%d", n.Left))
	}
	return string(n.Name) + "(" + strings.Join(all, " ") + ")"
}

// A tree has what a document has: numbers and texts as they came, in their order, and what is there twice, twice.
func TestTree(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"b": 123456789012345678901234567890, "a": [1.10, "x\u202ey", null], "b": {}}`: `(b=123456789012345678901234567890 a(0=1.10 1="x\u202ey" 2=null) b())`,
		` [true] `: `(0=true)`,
		``:         "none", `7`: "none", `"{}"`: "none", `{`: "none", `{"a": 1} x`: "none",
		`{"n": "` + strings.Repeat("é", maxLeaf) + `"}`: `(n="` + strings.Repeat("é", maxLeaf/2-1) + `…)`,
	} {
		if got := sketch(treeOf([]byte(document))); got != want {
			t.Errorf("%.60s: %s, want %s", document, got, want)
		}
	}
}

// A tree has limits, and says what it leaves out.
func TestTreeIsBounded(t *testing.T) {
	t.Parallel()
	wide := treeOf([]byte(`[` + strings.TrimSuffix(strings.Repeat(`1,`, maxTreeNodes+99), ",") + `]`))
	if len(wide.Children) != maxTreeNodes-1 || wide.Left != 100 || wide.Count() != "499 elements" || wide.Open {
		t.Errorf("%d children, %d left, %s, open %v", len(wide.Children), wide.Left, wide.Count(), wide.Open)
	}
	deep := treeOf([]byte(strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)))
	levels := 0
	for n := deep; len(n.Children) > 0; n = n.Children[0] {
		levels++
	}
	if levels != maxTreeDepth {
		t.Errorf("%d levels", levels)
	}
	if one := treeOf([]byte(`{"a": [2]}`)); one.Count() != "1 member" || !one.Open || !one.Children[0].Open || one.Children[0].Count() != "1 element" {
		t.Errorf("%+v", one)
	}
}
