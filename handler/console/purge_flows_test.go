package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/tables"
)

const purging = console.Root + "/purge"

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// purgeForm opens the page that counts, and gives what its form sends.
func (b bench) purgeForm(t *testing.T, path string, as accesstest.Caller) (form url.Values, text string) {
	t.Helper()
	status, text := b.Do(http.MethodGet, path, "", as.Sign)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	form = url.Values{}
	for _, m := range hiddenInput.FindAllStringSubmatch(text, -1) {
		form.Set(m[1], m[2])
	}
	return form, text
}

// Somebody purges what has ended, after he was told how many that is: once, under his name, and what goes on stays.
func TestPurgeByFilter(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	b.begin("work-2", "")
	const ended, goesOn = runs + "/ask-work-1", runs + "/ask-work-2"
	b.command(t, ended, "terminate", nil, ended+"?done=terminate")
	b.index()
	form, text := b.purgeForm(t, purging+"?orchestrator=ask", ann("Administrator"))
	if form.Get("of") != "1" || !strings.Contains(text, "1 orchestration that ended before") {
		t.Fatalf("%v %s", form, text)
	}
	if b.standing(t, ended) != "Terminated" {
		t.Error("counting has changed something")
	}
	first := b.post(t, purging, form, ann("Administrator"))
	again := b.post(t, purging, form, ann("Administrator"))
	to := first.Header().Get("Location")
	if first.Code != http.StatusSeeOther || !strings.HasPrefix(to, console.Root+"/operations/") || again.Header().Get("Location") != to {
		t.Fatalf("%d to %s, then %d to %s: %s", first.Code, to, again.Code, again.Header().Get("Location"), first.Body)
	}
	b.Deliver()
	if status, text := b.Do(http.MethodGet, to, "", ann("Administrator").Sign); status != http.StatusOK || !strings.Contains(text, "Succeeded") {
		t.Errorf("the operation: %d %s", status, text)
	}
	if status, _ := b.Do(http.MethodGet, ended, "", ann("Reader").Sign); status != http.StatusNotFound {
		t.Errorf("what had ended is there: %d", status)
	}
	if got := b.standing(t, goesOn); got != "Running" {
		t.Errorf("what goes on is %s", got)
	}
	if acts := b.acts(t, ann("")); !slices.Contains(acts, "ann@example.com purge Done") {
		t.Errorf("audit log: %q", acts)
	}
}

// Who may not purge is told how many there are, and why he cannot; whatever he sends is refused.
func TestReaderPurgesNothing(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	b.command(t, path, "terminate", nil, path+"?done=terminate")
	b.index()
	form, text := b.purgeForm(t, purging, ann("Operator"))
	if !strings.Contains(text, "orchestrations.purge") {
		t.Errorf("the page does not say why: %s", text)
	}
	for _, send := range []url.Values{form, {}} {
		if rec := b.post(t, purging, send, ann("Operator")); rec.Code != http.StatusForbidden {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	if rec := b.post(t, path+"/force-purge", url.Values{"reason": {"why"}}, ann("Operator")); rec.Code != http.StatusForbidden {
		t.Errorf("by force: %d %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, purging, url.Values{"orchestrator": {"ask"}}, ann("Administrator")); rec.Code != http.StatusBadRequest {
		t.Errorf("without a time: %d %s", rec.Code, rec.Body)
	}
	b.Deliver()
	if got := b.standing(t, path); got != "Terminated" {
		t.Errorf("it is %s", got)
	}
}

// Of another tenant's orchestrations nobody counts or purges any.
func TestForeignTenantPurgesNothing(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "of-blue", accesstest.ID("blue"))
	const path = runs + "/ask-of-blue"
	b.command(t, path, "terminate", nil, path+"?done=terminate")
	b.index()
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	if _, text := b.purgeForm(t, purging, red); !strings.Contains(text, "0 orchestrations") {
		t.Errorf("he is told of more: %s", text)
	}
	if rec := b.post(t, purging, url.Values{"key": {"k"}, "endedBefore": {time.Now().UTC().Format(time.RFC3339)}}, red); rec.Code != http.StatusForbidden {
		t.Errorf("%d", rec.Code)
	}
	if status, _ := b.Do(http.MethodGet, path+"/force-purge", "", red.Sign); status != http.StatusNotFound {
		t.Errorf("by force: %d", status)
	}
	if got := b.standing(t, path); got != "Terminated" {
		t.Errorf("it is %s", got)
	}
}

// What is damaged says so, leads to its purge by force, and is gone after that, with the reason in the audit log.
func TestForcePurge(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	b.damage(t, "ask-work-1")
	if status, text := b.Do(http.MethodGet, path, "", ann("Reader").Sign); status != http.StatusInternalServerError || !strings.Contains(text, `href="`+path+`/force-purge"`) {
		t.Fatalf("%d %s", status, text)
	}
	if rec := b.post(t, path+"/force-purge", url.Values{}, ann("Administrator")); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "needs a reason") {
		t.Errorf("without a reason: %d %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, path+"/force-purge", url.Values{"reason": {"no backup has it"}}, ann("Administrator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != runs+"?done=purged" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if status, _ := b.Do(http.MethodGet, path, "", ann("Reader").Sign); status != http.StatusNotFound {
		t.Errorf("it is there: %d", status)
	}
	if acts := b.acts(t, ann("")); !slices.Contains(acts, "ann@example.com forcePurge Done") {
		t.Errorf("audit log: %q", acts)
	}
}

// damage deletes the first round of a run, which nobody can go on without.
func (b bench) damage(t *testing.T, id string) {
	t.Helper()
	if err := b.Tables.Apply(t.Context(), "orchestrations", tables.Delete(tables.Key{Partition: tables.EscapeKey(id), Row: "r-00000001-00000001"}, "")); err != nil {
		t.Fatal(err)
	}
}
