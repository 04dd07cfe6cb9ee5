package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

// shared is an app with one of everything, of the tenant "blue", and a dead letter and a run of the tenant "red".
type shared struct {
	bench
	// paths are the addresses of blue's data, by the routes of their pages, and ownLetter and ownRun those of red.
	paths             map[string]string
	ownLetter, ownRun string
}

func newShared(t *testing.T) shared {
	t.Helper()
	b := newBench(t, polled(t, inAzure()), "store", "keep", "ask", "update")
	blue, red := accesstest.ID("blue"), accesstest.ID("red")
	b.begin("ask", "secret-of-blue", blue, `"secret input"`)
	b.begin("ask", "of-red", red, "1")
	b.begin("update", "secret-task", blue, `"secret plan of blue"`)
	if !b.Tick("poller-orders-timer", time.Now()) {
		t.Fatal("the poller does not run")
	}
	if status, text := b.Do(http.MethodPost, "/api/registry", `{"instanceId": "blue-1", "tenantId": "`+blue+`", "ring": "ring-of-blue"}`, ann("Operator").Sign); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	b.bury(t, "gone", blue, "secret failure")
	form := b.form(t, letters+"/retry?engine=store&instanceId=instance-gone", ann("Administrator"))
	operation, _, _ := strings.Cut(b.operates(t, letters+"/retry", with(form, "canary", "1", "canarySeconds", "3600"), ann("Administrator")), "?")
	b.anew()
	b.index()
	return shared{bench: b, ownLetter: b.bury(t, "own", red, "failure of red"), ownRun: runs + "/ask-of-red", paths: map[string]string{
		letters + "/:engine/:rowKey": b.bury(t, "theirs", blue, "secret failure of blue"), runs + "/:id": runs + "/ask-secret-of-blue", taskList + "/:orchestration/:task": taskList + "/update-secret-task/1-1",
		console.Root + "/outbox/:tenant/:id": b.publish(t, blue), console.Root + "/operations/:operation": operation, console.Root + "/registry/:instance": console.Root + "/registry/blue-1",
		pollerList + "/:poller": pollerList + "/orders", console.Root + "/schedules/:engine": console.Root + "/schedules/update", console.Root + "/start/:engine": startKeep}}
}

// at returns the address of a route, with one of blue's in it.
func (s shared) at(route string) string {
	for pattern, path := range s.paths {
		if rest, ok := strings.CutPrefix(route, pattern); ok && (rest == "" || rest[0] == '/') {
			return path + rest
		}
	}
	return route
}

// unchanged checks that blue's data is unchanged.
func (s shared) unchanged(t *testing.T) {
	t.Helper()
	s.Deliver()
	for _, d := range s.DeadLetters("store") {
		if d.CorrelationID == "theirs" && d.Status != engine.StatusPending {
			t.Errorf("the dead letter is %s", d.Status)
		}
	}
	s.stands(t, s.at(runs+"/:id"), "Running")
	s.sees(t, s.at(taskList+"/:orchestration/:task"), approver("blue", "bea"), 200, ">Created</span>", "secret plan of blue")
	s.sees(t, s.at(console.Root+"/outbox/:tenant/:id"), ann("Reader"), 200, "!>skipped</span>", "!Let start over")
	s.sees(t, s.at(console.Root+"/operations/:operation"), ann("Reader"), 200, "!>Canceled</span>", "!>Paused</span>")
	s.sees(t, s.at(console.Root+"/registry/:instance"), ann("Reader"), 200, "!>Drained</span>")
	if s.state(t).Retired || s.state(t).Cursor().Value != "3" {
		t.Errorf("the poller is changed: %+v", s.state(t))
	}
	s.index()
	s.sees(t, runs, ann("Reader"), 200, `!href="`+runs+"/keep-of")
}

// forms are the forms that callers send to any address: an empty one, one like its page's, and one that its page would
// refuse.
func forms() []url.Values {
	return []url.Values{{}, {"key": {"k"}, "etag": {"*"}, "seen": {"first"}, "name": {"decision"}, "reason": {"why"}, "note": {"why"}, "assignee": {"y"}, "message": {`{"input": 8}`}, "step": {"send"},
		"schedule": {"nightly"}, "f0": {"1"}, "value": {"1"}, "correlationId": {"of-mallory"}, "endedBefore": {"2099-01-01T00:00:00Z"}, "toDate": {"2099-01-01T00:00:00Z"}},
		{"step": {"edit"}, "value": {"no JSON"}, "f0": {"many"}, "row": {"store/theirs"}}}
}

// Readers change nothing with requests to any address of the console, and the audit log has their attempts.
func TestReadersChangeNothing(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	sent := 0
	for _, r := range console.Routes() {
		if r.Method != http.MethodPost || slices.Contains(access.Reader.Permissions(), r.Permission) {
			continue
		}
		for _, form := range forms() {
			sent++
			rec := s.post(t, s.at(r.Path), form, ann("Reader"))
			if rec.Code != http.StatusForbidden || rec.Header().Get("x-ms-error-code") != "Forbidden" || !strings.Contains(rec.Body.String(), "You need the permission") {
				t.Errorf("%s: %d %s", r.Path, rec.Code, said(rec))
			}
		}
	}
	if acts := s.acts(t, ann("")); len(acts) < 20 || sent < 100 { // a caller has so many entries before they are counted
		t.Errorf("%d forms, and %d entries of the audit log", sent, len(acts))
	}
	s.unchanged(t)
}

// Callers of another tenant see their own data, and no trace of others'; they change nothing of it with any form.
func TestOthersSeeAndChangeNothing(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	secrets := []string{"!secret", "!" + accesstest.ID("blue"), "!key.rotated", "!9007199254740993", "!blue-1", "!ring-of-blue", "!shop", "!ORDERS_DSN", "!keep-queue", "!ann@", "!" + s.at(console.Root+"/operations/:operation")}
	// A page repeats its address in links and forms, and has no other secret.
	keeps := func(path string, rec *httptest.ResponseRecorder, more ...string) {
		t.Helper()
		holds(t, path, rec, rec.Code, append(more, slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return strings.Contains(path, s[1:]) })...))
	}
	alarm := regexp.MustCompile(`role="alert">.*</p>`)
	for _, r := range console.Routes() {
		path, theirs := s.at(r.Path), s.at(r.Path) != r.Path
		switch {
		case r.Method == http.MethodPost:
			for _, form := range forms() {
				rec := s.post(t, path, form, mallory())
				if theirs || r.Permission != access.Self && r.Path != letters+"/selected" && r.Path != openHistory {
					if rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound {
						t.Errorf("POST %s: %d %s", path, rec.Code, said(rec))
					}
				}
				keeps(path, rec)
			}
		case theirs:
			rec := s.get(t, path, mallory())
			if rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound {
				t.Errorf("GET %s: %d %s", path, rec.Code, said(rec))
			}
			keeps(path, rec)
			none := s.get(t, strings.NewReplacer(":engine", "store", ":", "no-").Replace(r.Path), mallory())
			if got, want := alarm.FindString(rec.Body.String()), alarm.FindString(none.Body.String()); rec.Code != none.Code || got != want {
				t.Errorf("%s says %d %s, and one that does not exist %d %s", path, rec.Code, got, none.Code, want)
			}
		default:
			keeps(path, s.get(t, path, mallory()))
		}
	}
	for path, own := range map[string]string{console.Root: "failure of red", letters + "?status=any": "failure of red", s.ownLetter: "failure of red", runs: `href="` + s.ownRun + `"`, s.ownRun: "ask-of-red",
		console.Root + "/outbox?tenant=" + accesstest.ID("blue"): "Nothing", taskList + "?view=all&tenantId=" + accesstest.ID("blue"): "Tasks"} {
		keeps(path, s.get(t, path, mallory()), own)
	}
	s.sees(t, console.Root+"/timeline?correlationId=theirs", mallory(), http.StatusNotFound, secrets...)
	s.sees(t, letters+"/retry", mallory(), 200, "1 pending dead letter,", "!<button>Retry")
	s.sees(t, purging, mallory(), 200, "0 orchestrations")
	if got := s.choices(t, letters, mallory()); len(got) != 1 {
		t.Errorf("they can select %q", got)
	}
	if text := s.sees(t, console.Root, mallory(), 200, "!Dead letters by hour: 3", "of tenant <bdi>"+accesstest.ID("red")); strings.Count(text, "<code>platform.read</code>") != 2 {
		t.Error("the home page does not say that platform.read is missing")
	}
	s.sees(t, console.Root, ann("Reader"), 200, "secret failure of blue", s.at(console.Root+"/operations/:operation"), "!could not be asked for", "Dead letters by hour: 3")
	s.unchanged(t)
}

// Callers without a role see no orchestration, and no audit log; approvers of another tenant see and change no task.
func TestOthersByRole(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	holds(t, "a history", s.uploads(t, `{}`, pat()), http.StatusForbidden, nil)
	s.sees(t, openHistory, pat(), http.StatusForbidden)
	s.sees(t, console.Root+"/audit", approver("home", "ada"), http.StatusForbidden, "!secret")
	task, red := s.at(taskList+"/:orchestration/:task"), approver("red", "eve")
	for _, act := range []string{"claim", "complete", "assign", "release"} {
		s.sees(t, task+"/"+act, red, http.StatusNotFound, "!secret", "!approve update")
		s.refuses(t, task+"/"+act, url.Values{"key": {"k"}, "f0": {"0"}, "assignee": {red.ID()}}, red, http.StatusNotFound)
	}
	for _, role := range []string{"Reader", "Operator"} {
		if text := s.sees(t, pollerList+"/orders", ann(role), 200, "pollers.change"); strings.Count(text, `<button type="button" disabled`) != 7 {
			t.Errorf("%s may change the poller", role)
		}
		s.refuses(t, pollerList+"/orders/retire", url.Values{"key": {"k"}}, ann(role), http.StatusForbidden, "pollers.change")
	}
	for _, path := range []string{purging, s.at(runs+"/:id") + "/force-purge"} {
		s.refuses(t, path, url.Values{"key": {"k"}, "reason": {"why"}, "endedBefore": {"2099-01-01T00:00:00Z"}}, ann("Operator"), http.StatusForbidden, "orchestrations.purge")
	}
	for _, action := range []string{"retry", "expire"} {
		s.refuses(t, letters+"/"+action, s.form(t, letters+"/"+action, ann("Administrator")), ann("Operator"), http.StatusForbidden, "deadletters.bulk")
	}
	s.unchanged(t)
}

// A page's tag grants no access: a page is for permitted callers only, with any tag.
func TestTagsOpenNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "work-1", "", "the vault answered 503")
	b.bury(t, "work-2", accesstest.ID("red"), "the vault answered 504")
	tag := b.get(t, letters, ann("Operator")).Header().Get("ETag")
	asks := func(age string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("If-None-Match", tag); r.Header.Set("Cache-Control", age) }
	}
	holds(t, "the same", b.get(t, letters, ann("Operator"), asks("max-age=30")), http.StatusNotModified, nil)
	for _, age := range []string{"no-cache", "max-age=30"} {
		holds(t, "another tenant", b.get(t, letters, mallory(), asks(age)), http.StatusOK, []string{"!work-1", "work-2"})
	}
	holds(t, "without the permission", b.get(t, letters, pat(), asks("max-age=30")), http.StatusForbidden, nil)
	anonymous := func(r *http.Request) { asks("max-age=30")(r) }
	status, _ := b.Do(http.MethodGet, letters, "", anonymous)
	if status != http.StatusUnauthorized {
		t.Errorf("anonymous: %d", status)
	}
	// In a whole app, each page that polls learns that it is unchanged, and a list learns of new rows.
	for _, path := range []string{"", "/dead-letters", "/dead-letters/causes", "/orchestrations", "/tasks", "/outbox", "/schedules", "/registry", "/audit"} {
		tag = b.get(t, console.Root+path, ann("Administrator")).Header().Get("ETag")
		if rec := b.get(t, console.Root+path, ann("Administrator"), asks("no-cache")); rec.Code != http.StatusNotModified || tag == "" {
			t.Errorf("%s with the tag %q: %d", path, tag, rec.Code)
		}
	}
	tag = b.get(t, letters, ann("Operator")).Header().Get("ETag")
	b.bury(t, "work-3", "", "the vault answered 505")
	rec := b.get(t, letters, ann("Operator"), asks("no-cache"))
	if holds(t, "news", rec, http.StatusOK, []string{"the vault answered 505"}); rec.Header().Get("ETag") == tag {
		t.Error("a list with news has the same tag")
	}
}
