package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
)

// bench is an app with an engine that stores something, of which a message is a dead letter.
type bench struct {
	*handlertest.Host
	mended *atomic.Bool
}

const letters = console.Root + "/dead-letters"

func newBench(t *testing.T, settings map[string]string) bench {
	t.Helper()
	b := bench{mended: new(atomic.Bool)}
	keep := orchestrator.NewActivity("keep", func(_ context.Context, days int) (int, error) {
		if !b.mended.Load() {
			return 0, errors.New("the vault answered 503")
		}
		return days, nil
	})
	run := func(ctx *orchestrator.Context, r engine.Request[int]) (int, error) {
		return keep.Call(ctx, r.Input).Await()
	}
	b.Host = handlertest.New(t, handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "store", Queue: "store-queue", Orchestrator: engine.Orchestrate("store", run), Operations: []orchestrator.AnyActivity{keep}}}, nil
	}}, settings)
	return b
}

// bury adds a dead letter, and gives the address of its page.
func (b bench) bury(t *testing.T, id, tenant, failure string) string {
	t.Helper()
	return b.buryAt(t, time.Now().Add(-time.Hour).UTC().Truncate(time.Second), id, tenant, failure)
}

// buryAt is bury for one that failed at a time.
func (b bench) buryAt(t *testing.T, at time.Time, id, tenant, failure string) string {
	t.Helper()
	d := engine.DeadLetter{Engine: "store", MessageID: id, OriginalQueue: "store-queue", OriginalMessage: []byte(`{"correlationId": "` + id + `", "input": 7}`), ErrorMessage: failure,
		DequeueCount: 5, CorrelationID: id, TenantID: tenant, InstanceID: "instance-" + id, InsertedAtUtc: at, FirstFailureAtUtc: at, LastFailureAtUtc: at}
	if _, err := engine.NewDeadLetters(b.Tables, "").Add(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	page, err := engine.NewDeadLetters(b.Tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{"store"}, CorrelationID: id})
	if err != nil || len(page.DeadLetters) != 1 {
		t.Fatalf("%d dead letters, %v", len(page.DeadLetters), err)
	}
	return letters + "/store/" + url.PathEscape(page.DeadLetters[0].RowKey)
}

// inAzure are the settings of an app that people sign in to.
func inAzure() map[string]string {
	return map[string]string{"WEBSITE_AUTH_ENABLED": "True", "WEBSITE_SITE_NAME": "app", "AZURE_FUNCTIONS_ENVIRONMENT": "Production", "FUNCTIONS_CORETOOLS_ENVIRONMENT": "",
		"ROUNDHOUSE_HOME_TENANT": accesstest.ID("home"), "ROUNDHOUSE_ROLES": `{"otherTenants": "reader"}`}
}

func ann(role string) accesstest.Caller {
	return accesstest.Caller{Tenant: "home", Object: "ann", Name: "ann@example.com", AppRoles: []string{"Roundhouse." + role}}
}

// post sends a form as a page of the console does.
func (b bench) post(t *testing.T, path string, form url.Values, as accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Host = "app.example"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	as.Sign(r)
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	return rec
}

var field = regexp.MustCompile(`<input type="hidden" name="(key|etag)" value="([^"]*)">`)

// form opens a page that asks, and gives what its form sends.
func (b bench) form(t *testing.T, path string, as accesstest.Caller) url.Values {
	t.Helper()
	status, text := b.Do(http.MethodGet, path, "", as.Sign)
	out := url.Values{}
	for _, m := range field.FindAllStringSubmatch(text, -1) {
		out.Set(m[1], strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&amp;", "&", "&#43;", "+").Replace(m[2]))
	}
	if status != http.StatusOK || len(out) != 2 || out.Get("key") == "" {
		t.Fatalf("%d: a form with %v", status, out)
	}
	return out
}

// acts are what the audit log has of somebody's decisions.
func (b bench) acts(t *testing.T, who accesstest.Caller) (acts []string) {
	t.Helper()
	page, err := (&audit.Log{Tables: b.Tables}).List(t.Context(), audit.Filter{Principal: who.ID()}, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		acts = append(acts, e.Name+" "+e.Action+" "+string(e.Outcome))
	}
	return acts
}

// A retry sends the message once however often its form is sent, under the name of whoever sent it, and the page says what came of it.
func TestRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	b.mended.Store(true)
	form := b.form(t, path+"/retry", ann("Operator"))
	for range 2 {
		if rec := b.post(t, path+"/retry", form, ann("Operator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != path+"?done=retried" {
			t.Fatalf("%d to %s: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
		}
	}
	b.Deliver()
	if entries := b.History("store"); len(entries) != 1 || entries[0].Status != engine.StatusSucceeded {
		t.Errorf("history: %+v", entries)
	}
	if got := b.acts(t, ann("")); len(got) != 2 || got[0] != "ann@example.com retry Done" {
		t.Errorf("audit log: %q", got)
	}
	_, text := b.Do(http.MethodGet, path+"?done=retried", "", ann("Reader").Sign)
	for _, want := range []string{"The message was sent again", ">Resolved</span>", "ann@example.com", ">Succeeded</span>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(text, "/retry") {
		t.Error("it can be retried again")
	}
	if status, text := b.Do(http.MethodGet, console.Root+"/timeline?correlationId=work-1", "", ann("Reader").Sign); status != http.StatusOK || !strings.Contains(text, "Run store-work-1") || !strings.Contains(text, "<rect") {
		t.Errorf("timeline: %d %s", status, text)
	}
}

// What is expired is what was looked at, once; and notes are kept.
func TestExpire(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	form := b.form(t, path+"/expire", ann("Operator"))
	form.Set("notes", "an order of last year")
	for range 2 {
		if rec := b.post(t, path+"/expire", form, ann("Operator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != path+"?done=expired" {
			t.Fatalf("%d: %s", rec.Code, rec.Body)
		}
	}
	if _, text := b.Do(http.MethodGet, path, "", ann("Reader").Sign); !strings.Contains(text, ">Expired</span>") || !strings.Contains(text, "an order of last year") {
		t.Errorf("the page says %s", text)
	}
	// A form that was opened before somebody else decided does nothing, and says so.
	changed := b.bury(t, "work-2", "", "the vault answered 503")
	old := b.form(t, changed+"/expire", ann("Operator"))
	b.post(t, changed+"/retry", b.form(t, changed+"/retry", ann("Operator")), ann("Operator"))
	if rec := b.post(t, changed+"/expire", old, ann("Operator")); rec.Code != http.StatusPreconditionFailed || !strings.Contains(rec.Body.String(), "Back to the dead letter") {
		t.Errorf("%d: %s", rec.Code, rec.Body)
	}
}

// Who may only read is shown what he may not do, and cannot do it all the same.
func TestReaderDecidesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	for _, action := range []string{"retry", "expire"} {
		rec := b.post(t, path+"/"+action, url.Values{"key": {"k"}}, ann("Reader"))
		if rec.Code != http.StatusForbidden || rec.Header().Get("x-ms-error-code") != "Forbidden" {
			t.Errorf("%s: %d", action, rec.Code)
		}
	}
	if d := b.DeadLetters("store"); d[0].Status != engine.StatusPending {
		t.Errorf("%+v", d)
	}
	if got := b.acts(t, ann("")); len(got) != 2 || !strings.HasSuffix(got[0], "Refused") {
		t.Errorf("audit log: %q", got)
	}
}

// Somebody of another tenant sees that tenant's dead letters, on every page, and nothing of others.
func TestForeignTenant(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	theirs := b.bury(t, "theirs", accesstest.ID("blue"), "secret failure of blue")
	own := b.bury(t, "own", accesstest.ID("red"), "failure of red")
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	if _, text := b.Do(http.MethodGet, console.Root, "", ann("Reader").Sign); strings.Contains(text, "could not be asked for") || !strings.Contains(text, "failure of blue") {
		t.Errorf("the home page of the home tenant: %s", text)
	}
	for path, want := range map[string]int{console.Root: 200, letters + "?status=any": 200, letters + "/causes": 200, own: 200, theirs: 404, theirs + "/retry": 404,
		console.Root + "/timeline?correlationId=theirs": 404, letters + "?correlationId=theirs": 200} {
		status, text := b.Do(http.MethodGet, path, "", red.Sign)
		if status != want || strings.Contains(text, "secret failure") || strings.Contains(text, accesstest.ID("blue")) {
			t.Errorf("%s: %d %s", path, status, text)
		}
		if slices.Contains([]string{console.Root, letters + "?status=any", own}, path) && !strings.Contains(text, "failure of red") {
			t.Errorf("%s does not show what is his", path)
		}
	}
	for _, action := range []string{"retry", "expire"} {
		if rec := b.post(t, theirs+"/"+action, url.Values{"key": {"k"}}, red); rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", action, rec.Code)
		}
	}
	for _, d := range b.DeadLetters("store") {
		if d.Status != engine.StatusPending {
			t.Errorf("%s is %s", d.CorrelationID, d.Status)
		}
	}
}

// On a developer's machine, the key that the host has printed opens the console by its address, once, and the API stays closed to
// the cookie.
func TestLocalHost(t *testing.T) {
	t.Parallel()
	const key = "abcdefghijklmnopqrstuvwxyz"
	b := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": key})
	b.bury(t, "work-1", "", "the vault answered 503")
	send := func(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = "127.0.0.1:40001"
		r.Header.Set("X-Forwarded-Host", "127.0.0.1:7071")
		r.Header.Set("X-Forwarded-For", "127.0.0.1")
		for _, c := range change {
			c(r)
		}
		rec := httptest.NewRecorder()
		b.ServeHTTP(rec, r)
		return rec
	}
	if rec := send(console.Root); rec.Code != http.StatusUnauthorized || !strings.Contains(rec.Body.String(), "make run") {
		t.Errorf("without a key: %d %s", rec.Code, rec.Body)
	}
	signedIn := send(console.Root + "/?code=" + key)
	if signedIn.Code != http.StatusSeeOther || signedIn.Header().Get("Location") != console.Root || len(signedIn.Result().Cookies()) != 1 {
		t.Fatalf("%d to %s", signedIn.Code, signedIn.Header().Get("Location"))
	}
	with := func(r *http.Request) { r.AddCookie(signedIn.Result().Cookies()[0]) }
	if rec := send(console.Root, with); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "the vault answered 503") || strings.Contains(rec.Body.String(), key) {
		t.Errorf("with the cookie: %d %s", rec.Code, rec.Body)
	}
	if rec := send("/api/dlq", with); rec.Code != http.StatusUnauthorized {
		t.Errorf("the API took the cookie: %d", rec.Code)
	}
	if rec := send(console.Root, with, func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.7") }); rec.Code != http.StatusForbidden {
		t.Errorf("from another machine: %d", rec.Code)
	}
}
