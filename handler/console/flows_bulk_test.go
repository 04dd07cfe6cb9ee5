package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// hiddenForm opens a page that asks, and gives the hidden fields of its form.
func (b bench) hiddenForm(t *testing.T, path string, as accesstest.Caller) url.Values {
	t.Helper()
	status, text := b.Do(http.MethodGet, path, "", as.Sign)
	out := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(text, -1) {
		out.Set(m[1], html.UnescapeString(m[2]))
	}
	if status != http.StatusOK || out.Get("key") == "" {
		t.Fatalf("%s: %d, a form with %v: %s", path, status, out, text)
	}
	return out
}

// get asks for a page.
func (b bench) get(t *testing.T, path string, as accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host = "app.example"
	as.Sign(r)
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	return rec
}

// statuses are the dead letters of the bench by their correlation ids.
func (b bench) statuses() map[string]engine.DeadLetterStatus {
	out := map[string]engine.DeadLetterStatus{}
	for _, d := range b.DeadLetters("store") {
		out[d.CorrelationID] = d.Status
	}
	return out
}

// All that a filter meant when somebody looked is sent again, once however often the form is sent, under the name of whoever sent
// it; what failed afterwards, or has another cause, is left alone. The page of the operation follows it to its end, and no further.
func TestRetryAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	for _, id := range []string{"work-1", "work-2", "work-3"} {
		b.bury(t, id, "", "the vault answered 503")
	}
	b.bury(t, "other", "", "the disk is full")
	b.mended.Store(true)
	admin := ann("Administrator")
	_, text := b.Do(http.MethodGet, letters+"/causes", "", admin.Sign)
	cause := regexp.MustCompile(`href="([^"]*)"><bdi>the vault answered 503`).FindStringSubmatch(text)
	_, text = b.Do(http.MethodGet, html.UnescapeString(cause[1]), "", admin.Sign)
	link := regexp.MustCompile(`href="([^"]*)">Retry all of the filter`).FindStringSubmatch(text)
	if link == nil {
		t.Fatalf("the list of the cause does not lead on: %s", text)
	}
	form := b.hiddenForm(t, html.UnescapeString(link[1]), admin)
	if form.Get("of") != "3" || form.Get("errorSignature") == "" {
		t.Errorf("the form has %v", form)
	}
	b.buryAt(t, time.Now().Add(time.Minute), "late", "", "the vault answered 503")
	at := map[string]bool{}
	for range 2 {
		rec := b.post(t, letters+"/retry", form, admin)
		if rec.Code != http.StatusSeeOther || !strings.HasPrefix(rec.Header().Get("Location"), console.Root+"/operations/") {
			t.Fatalf("%d: %s", rec.Code, rec.Body)
		}
		at[rec.Header().Get("Location")] = true
	}
	if len(at) != 1 {
		t.Fatalf("two operations: %v", at)
	}
	var operation string
	for path := range at {
		operation = path
	}
	if rec := b.get(t, operation, admin); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `http-equiv="refresh"`) || !strings.Contains(rec.Body.String(), "ann@example.com") {
		t.Errorf("while it runs: %d: %s", rec.Code, rec.Body)
	}
	b.Deliver()
	if rec := b.get(t, operation, ann("Reader")); strings.Contains(rec.Body.String(), `http-equiv="refresh"`) || !strings.Contains(rec.Body.String(), ">Succeeded</span> 3 of 3 done") {
		t.Errorf("at its end: %s", rec.Body)
	}
	want := map[string]engine.DeadLetterStatus{"work-1": engine.StatusResolved, "work-2": engine.StatusResolved, "work-3": engine.StatusResolved, "other": engine.StatusPending, "late": engine.StatusPending}
	for id, status := range b.statuses() {
		if status != want[id] {
			t.Errorf("%s is %s", id, status)
		}
	}
	if ran := b.History("store"); len(ran) != 3 {
		t.Errorf("%d runs", len(ran))
	}
	if got := b.acts(t, admin); !slices.Contains(got, "ann@example.com retry Done") || !slices.Contains(got, "ann@example.com retry ended Done") {
		t.Errorf("audit log: %q", got)
	}
}

// Some go first, and what is canceled before its turn came stays as it is; a form that says so twice has said it once.
func TestCancelOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	for _, id := range []string{"work-1", "work-2"} {
		b.bury(t, id, "", "the vault answered 503")
	}
	b.mended.Store(true)
	admin := ann("Administrator")
	form := b.hiddenForm(t, letters+"/retry?engine=store", admin)
	form.Set("canary", "1")
	form.Set("canarySeconds", "3600")
	operation := b.post(t, letters+"/retry", form, admin).Header().Get("Location")
	b.Deliver()
	if _, text := b.Do(http.MethodGet, operation, "", ann("Reader").Sign); !strings.Contains(text, ">Running</span> 1 of 2 done") {
		t.Errorf("after the first: %s", text)
	}
	path, _, _ := strings.Cut(operation, "?")
	for range 2 {
		if rec := b.post(t, path+"/cancel", url.Values{"of": {"2"}}, ann("Operator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != operation {
			t.Fatalf("%d to %q: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
		}
		b.Deliver()
	}
	if _, text := b.Do(http.MethodGet, operation, "", ann("Reader").Sign); !strings.Contains(text, ">Canceled</span> 1 of 2 done") || strings.Contains(text, "/cancel") {
		t.Errorf("the page says %s", text)
	}
	pending := 0
	for _, status := range b.statuses() {
		if status == engine.StatusPending {
			pending++
		}
	}
	if pending != 1 {
		t.Errorf("%v", b.statuses())
	}
}

// All that a filter means is expired.
func TestExpireAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "work-1", "", "the vault answered 503")
	b.buryAt(t, time.Now().AddDate(0, 0, -3), "old", "", "the vault answered 503")
	admin := ann("Administrator")
	form := b.hiddenForm(t, letters+"/expire?toDate="+time.Now().AddDate(0, 0, -1).UTC().Format(time.DateOnly), admin)
	if rec := b.post(t, letters+"/expire", form, admin); form.Get("of") != "1" || rec.Code != http.StatusSeeOther {
		t.Fatalf("%v: %d", form, rec.Code)
	}
	b.Deliver()
	if got := b.statuses(); got["old"] != engine.StatusExpired || got["work-1"] != engine.StatusPending {
		t.Errorf("%v", got)
	}
	// A form without the time until which it was looked at was made by no page.
	form.Del("toDate")
	form.Set("key", "another")
	if rec := b.post(t, letters+"/expire", form, admin); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "Back to the form") {
		t.Errorf("%d: %s", rec.Code, rec.Body)
	}
}

// Somebody of another tenant counts, and sees, what belongs to that tenant alone; and who may decide on one may not on all.
func TestBulkOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "theirs", accesstest.ID("blue"), "the vault answered 503")
	admin := ann("Administrator")
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	if status, text := b.Do(http.MethodGet, letters+"/retry", "", red.Sign); status != http.StatusOK || !strings.Contains(text, ">0 pending dead letters") || strings.Contains(text, "<button>Retry") {
		t.Errorf("%d: %s", status, text)
	}
	form := b.hiddenForm(t, letters+"/retry?engine=store", admin)
	for _, caller := range []accesstest.Caller{red, ann("Operator"), ann("Reader")} {
		for _, action := range []string{"retry", "expire"} {
			if rec := b.post(t, letters+"/"+action, form, caller); rec.Code != http.StatusForbidden {
				t.Errorf("%s: %s: %d", caller.Name, action, rec.Code)
			}
		}
	}
	operation, _, _ := strings.Cut(b.post(t, letters+"/retry", form, admin).Header().Get("Location"), "?")
	if status, text := b.Do(http.MethodGet, operation, "", red.Sign); status != http.StatusNotFound || strings.Contains(text, "store") {
		t.Errorf("the operation of others: %d %s", status, text)
	}
	if rec := b.post(t, operation+"/cancel", url.Values{}, red); rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound {
		t.Errorf("cancel: %d", rec.Code)
	}
	b.Deliver()
	if got := b.statuses()["theirs"]; got != engine.StatusResolved {
		t.Errorf("it is %s", got)
	}
}
