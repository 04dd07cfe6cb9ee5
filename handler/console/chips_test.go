package console

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/handler/access"
)

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
