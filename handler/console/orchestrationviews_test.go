package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// A view that is told by how long ago things are goes on meaning them: the API gets the time of the moment.
func TestSince(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"since=hour":                     "fromDate=2026-11-26T13%3A00%3A00Z",
		"since=today&status=Failed":      "fromDate=2026-11-26T00%3A00%3A00Z&status=Failed",
		"since=week":                     "fromDate=2026-11-19T14%3A00%3A00Z",
		"since=hour&fromDate=2026-11-01": "fromDate=2026-11-01",
		"columns=tag":                    "",
	} {
		a := &calls{answers: nothing()}
		rec := get(t, newConsole(t, a, access.Control{EasyAuth: true}), orchestrationsPath+"?"+query)
		if rec.Code != http.StatusOK || len(a.got) != 1 || a.got[0].URL.RawQuery != want {
			t.Errorf("%s: %d, and the API got %v", query, rec.Code, a.got[0].URL)
		}
	}
	rec := get(t, newConsole(t, nothing(), access.Control{EasyAuth: true}), orchestrationsPath+"?since=ever")
	if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "Use hour, today or week") {
		t.Errorf("%d", rec.Code)
	}
	p := orchestrationsPage{Filter: orchestrationFilterOf(url.Values{"since": {"hour"}, "status": {"Running"}}), now: goldenNow()}
	if got := p.Purge(); got != purgePath+"?fromDate=2026-11-26T13%3A00%3A00Z" {
		t.Errorf("what is purged of it is %s", got)
	}
	running := get(t, newConsole(t, nothing(), access.Control{EasyAuth: true}), orchestrationsPath+"?since=hour&status=Running")
	if want := "roundhouse orchestration list --status=Running --from=2026-11-26T13:00:00Z"; !strings.Contains(running.Body.String(), want) {
		t.Errorf("the command is not %s", want)
	}
}

// Columns are in the address, and stay there with filters, views and pages; one at least is shown.
func TestColumns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": usualColumns, "nothing": usualColumns, "tag,status": "status,tag", "work,work,<b>": "work", usualColumns + ",tag": "orchestrator,status,waits,created,changed,tag,work",
	} {
		if got := strings.Join(columnsOf(text), ","); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	p := orchestrationsPage{Filter: orchestrationFilterOf(url.Values{"status": {"Failed"}}), columns: columnsOf("tag"), now: time.Now()}
	links := map[string]string{}
	for _, c := range p.Columns() {
		links[c.Key] = c.Link
	}
	if links["tag"] != "" || links["ended"] != orchestrationsPath+"?columns=ended%2Ctag&status=Failed" {
		t.Errorf("%v", links)
	}
	if got := p.Chips()[0].Without; got != orchestrationsPath+"?columns=tag" {
		t.Errorf("without the filter: %s", got)
	}
	for _, v := range p.Views() {
		if v.Name == "Running" && v.Link != orchestrationsPath+"?columns=tag&status=Running" || v.Current {
			t.Errorf("%+v", v)
		}
	}
}
