package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
)

// Somebody notes something, once however often the form is sent, and takes a dead letter, which the list of what is his has then;
// somebody else is told that the page was of another version, who has the dead letter, and may be given it.
func TestNotesAndAssignments(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	b.bury(t, "work-2", "", "the disk is full")
	form := b.hiddenForm(t, path, ann("Operator"))
	for range 2 {
		if rec := b.post(t, path+"/notes", url.Values{"key": {form.Get("key")}, "note": {"we wait until Friday"}}, ann("Operator")); rec.Code != http.StatusSeeOther {
			t.Fatalf("%d: %s", rec.Code, rec.Body)
		}
	}
	old := b.hiddenForm(t, path, ann("Operator"))
	if rec := b.post(t, path+"/claim", old, ann("Operator")); rec.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	_, text := b.Do(http.MethodGet, path, "", ann("Operator").Sign)
	if strings.Count(text, "we wait until Friday") != 1 || !strings.Contains(text, "You do, since") {
		t.Errorf("the page says %s", text)
	}
	for query, want := range map[string]string{"me": "the vault answered 503", "nobody": "the disk is full"} {
		_, text := b.Do(http.MethodGet, letters+"?assignee="+query, "", ann("Operator").Sign)
		if strings.Contains(text, "the vault answered 503") != (query == "me") || !strings.Contains(text, want) || strings.Contains(text, "all of the filter") {
			t.Errorf("%s: %s", query, text)
		}
	}
	bob := accesstest.Caller{Tenant: "home", Object: "bob", Name: "bob@example.com", AppRoles: []string{"Roundhouse.Operator"}}
	if rec := b.post(t, path+"/claim", url.Values{}, bob); rec.Code != http.StatusConflict || !strings.Contains(rec.Body.String(), "ann@example.com has it since") {
		t.Errorf("%d: %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, path+"/assign", url.Values{"etag": {old.Get("etag")}, "assignee": {bob.ID()}}, bob); rec.Code != http.StatusPreconditionFailed || !strings.Contains(rec.Body.String(), `value="`+bob.ID()) {
		t.Errorf("stale: %d: %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, path+"/assign", url.Values{"assignee": {bob.ID()}}, bob); rec.Code != http.StatusSeeOther {
		t.Errorf("%d: %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, path+"/release", b.hiddenForm(t, path, bob), bob); rec.Code != http.StatusSeeOther {
		t.Errorf("%d: %s", rec.Code, rec.Body)
	}
	if got := b.acts(t, ann("")); len(got) != 3 || got[0] != "ann@example.com claim Done" || got[2] != "ann@example.com note Done" {
		t.Errorf("audit log: %q", got)
	}
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	theirs := b.bury(t, "theirs", accesstest.ID("blue"), "secret failure of blue")
	for _, caller := range []accesstest.Caller{ann("Reader"), red} {
		for _, action := range []string{"notes", "claim", "assign", "release"} {
			rec := b.post(t, theirs+"/"+action, url.Values{"note": {"x"}, "assignee": {"y"}}, caller)
			if rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound || caller.Tenant == "red" && strings.Contains(rec.Body.String(), "secret") {
				t.Errorf("%s: %s: %d", caller.Name, action, rec.Code)
			}
		}
	}
}
