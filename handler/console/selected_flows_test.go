package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

var choice = regexp.MustCompile(`<input type="checkbox" name="row" value="([^"]*)"`)

// choices are what can be selected on a page.
func (b bench) choices(t *testing.T, path string, as accesstest.Caller) (values []string) {
	t.Helper()
	_, text := b.Do(http.MethodGet, path, "", as.Sign)
	for _, m := range choice.FindAllStringSubmatch(text, -1) {
		values = append(values, html.UnescapeString(m[1]))
	}
	return values
}

// selectedForm selects, and gives the form of the page that asks.
func (b bench) selectedForm(t *testing.T, action string, choices []string, as accesstest.Caller) url.Values {
	t.Helper()
	rec := b.post(t, letters+"/selected", url.Values{"action": {action}, "row": choices, "filter": {"engine=store"}}, as)
	out := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(rec.Body.String(), -1) {
		out.Add(m[1], html.UnescapeString(m[2]))
	}
	if rec.Code != http.StatusOK || out.Get("key") == "" {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	return out
}

// What was selected is sent again, or expired, as one operation, and nothing else is.
func TestSelected(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	for _, id := range []string{"work-1", "work-2", "work/3", "work-4"} {
		b.bury(t, id, "", "the vault answered 503")
	}
	b.mended.Store(true)
	admin := ann("Administrator")
	all := b.choices(t, letters+"?engine=store", admin)
	if len(all) != 4 {
		t.Fatalf("%d can be selected", len(all))
	}
	of := func(ids ...string) (some []string) {
		for _, c := range all {
			for _, id := range ids {
				if name, _ := url.QueryUnescape(c); strings.HasPrefix(name, "store/"+url.PathEscape(id)) || strings.HasPrefix(name, "store/"+strings.ReplaceAll(id, "/", "=2F")) {
					some = append(some, c)
				}
			}
		}
		if len(some) != len(ids) {
			t.Fatalf("%q are not all in %q", ids, all)
		}
		return some
	}
	form := b.selectedForm(t, "retry", of("work-1", "work/3"), admin)
	at := map[string]bool{}
	for range 2 {
		rec := b.post(t, letters+"/retry", form, admin)
		if rec.Code != http.StatusSeeOther {
			t.Fatalf("%d: %s", rec.Code, rec.Body)
		}
		at[rec.Header().Get("Location")] = true
	}
	b.post(t, letters+"/expire", b.selectedForm(t, "expire", of("work-4"), admin), admin)
	b.Deliver()
	want := map[string]engine.DeadLetterStatus{"work-1": engine.StatusResolved, "work-2": engine.StatusPending, "work/3": engine.StatusResolved, "work-4": engine.StatusExpired}
	for id, status := range b.statuses() {
		if status != want[id] {
			t.Errorf("%s is %s", id, status)
		}
	}
	if len(at) != 1 {
		t.Errorf("operations %v", at)
	}
	for operation := range at {
		if _, text := b.Do(http.MethodGet, operation, "", ann("Reader").Sign); !strings.Contains(text, "2 of 2 done") || !strings.Contains(text, "2 by hand") {
			t.Errorf("the page of the operation says %s", text)
		}
	}
}

// Nothing, too much, and what no page has made is refused; who may not is shown why, and cannot; what belongs to another tenant is left alone.
func TestSelectedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "theirs", accesstest.ID("blue"), "secret failure of blue")
	admin := ann("Administrator")
	theirs := b.choices(t, letters, admin)
	many := make([]string, 101)
	for n := range many {
		many[n] = "store/" + strings.Repeat("x", n+1)
	}
	for name, form := range map[string]url.Values{"nothing": {"action": {"retry"}}, "no action": {"row": theirs}, "too many": {"action": {"retry"}, "row": many}, "no row": {"action": {"retry"}, "row": {"store"}}, "bad escape": {"action": {"retry"}, "row": {"store/%zz"}}} {
		if rec := b.post(t, letters+"/selected", form, admin); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "Back to the list") {
			t.Errorf("%s: %d: %s", name, rec.Code, rec.Body)
		}
	}
	if rec := b.post(t, letters+"/retry", url.Values{"key": {"k"}, "row": many}, admin); rec.Code != http.StatusBadRequest {
		t.Errorf("too many at once: %d", rec.Code)
	}
	if rec := b.post(t, letters+"/selected", url.Values{"action": {"retry"}, "row": theirs}, ann("Operator")); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "<button disabled") || !strings.Contains(rec.Body.String(), "deadletters.bulk") {
		t.Errorf("an operator is shown %d: %s", rec.Code, rec.Body)
	}
	form := b.selectedForm(t, "retry", theirs, admin)
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	if got := b.choices(t, letters, red); len(got) != 0 {
		t.Errorf("another tenant can select %q", got)
	}
	for _, caller := range []accesstest.Caller{ann("Operator"), red} {
		if rec := b.post(t, letters+"/retry", form, caller); rec.Code != http.StatusForbidden {
			t.Errorf("%s: %d: %s", caller.Name, rec.Code, rec.Body)
		}
	}
	b.Deliver()
	if got := b.statuses()["theirs"]; got != engine.StatusPending {
		t.Errorf("it is %s", got)
	}
}

// Dead letters are selected and sent by keyboard alone, in a browser that runs no scripts for it.
func TestBrowserSelected(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	for _, id := range []string{"work-1", "work-2"} {
		bench.bury(t, id, "", "the vault answered 503")
	}
	bench.mended.Store(true)
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	b.Open(console.Root + "/?code=" + localKey)
	b.Look(map[string]string{"select": letters + "?engine=store", "select-all": letters + "?engine=store&select=page"}, nil)
	b.Do(chromedp.EmulateViewport(1280, 800))
	b.Open(letters + "?engine=store")
	b.TabTo("Select this page")
	b.Enter()
	if n := browser.Eval[int](b, `document.querySelectorAll("[name=row]:checked").length`); n != 2 {
		t.Errorf("%d are selected", n)
	}
	browser.Eval[bool](b, `document.querySelector("[name=row]").focus(); true`)
	b.Do(chromedp.KeyEvent(" "))
	browser.Eval[bool](b, `document.querySelector("button[value=retry]").focus(); true`)
	b.Enter()
	accessibleNow(b, t, "selected")
	b.TabTo("Retry 1")
	b.Enter()
	bench.Deliver()
	b.Do(chromedp.WaitVisible(`[data-status=Succeeded]`))
	resolved := 0
	for _, status := range bench.statuses() {
		if status == engine.StatusResolved {
			resolved++
		}
	}
	if resolved != 1 {
		t.Errorf("%v", bench.statuses())
	}
}
