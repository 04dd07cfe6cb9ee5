package console_test

import (
	"bytes"
	"html"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

// A retry sends the message once however often its form is sent, under the name of the sender, and the page shows the
// outcome.
func TestRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	b.mended.Store(true)
	b.leads(t, path+"/retry", b.form(t, path+"/retry", ann("Operator")), ann("Operator"), path+"?done=retried")
	b.Deliver()
	if entries := b.History("store"); len(entries) != 1 || entries[0].Status != engine.StatusSucceeded {
		t.Errorf("history: %+v", entries)
	}
	b.acted(t, ann(""), "retry Done")
	b.sees(t, path+"?done=retried", ann("Reader"), 200, "The message was sent again", ">Resolved</span>", "ann@example.com", ">Succeeded</span>", "!/retry")
	b.sees(t, console.Root+"/timeline?correlationId=work-1", ann("Reader"), 200, "Run store-work-1", "<rect")
}

// Expiring affects the displayed dead letter, once; its notes are kept.
func TestExpire(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	b.leads(t, path+"/expire", with(b.form(t, path+"/expire", ann("Operator")), "notes", "an order of last year"), ann("Operator"), path+"?done=expired")
	b.sees(t, path, ann("Reader"), 200, ">Expired</span>", "an order of last year")
	// A form from before another decision does nothing, and reports that.
	changed := b.bury(t, "work-2", "", "the vault answered 503")
	old := b.form(t, changed+"/expire", ann("Operator"))
	b.leads(t, changed+"/retry", b.form(t, changed+"/retry", ann("Operator")), ann("Operator"), changed+"?done=retried")
	b.refuses(t, changed+"/expire", old, ann("Operator"), http.StatusPreconditionFailed, "Back to the dead letter")
}

// operates starts an operation with a form, and returns the address of its page: the same, however often the form is
// sent.
func (b bench) operates(t *testing.T, path string, form url.Values, as accesstest.Caller) string {
	t.Helper()
	to := b.post(t, path, form, as).Header().Get("Location")
	if !strings.HasPrefix(to, console.Root+"/operations/") {
		t.Fatalf("%s leads to %q", path, to)
	}
	b.leads(t, path, form, as, to)
	return to
}

// All dead letters that a filter matched when its page was opened are retried, once however often the form is sent,
// under the name of the sender; later failures and other causes are left alone. The page of the operation follows it to
// its end, and no further.
func TestRetryAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	for _, id := range []string{"work-1", "work-2", "work-3"} {
		b.bury(t, id, "", "the vault answered 503")
	}
	b.bury(t, "other", "", "the disk is full")
	b.mended.Store(true)
	admin, at := ann("Administrator"), letters+"/causes"
	for _, link := range []string{`href="([^"]*)"><bdi>the vault answered 503`, `href="([^"]*)">Retry all of the filter`} {
		found := regexp.MustCompile(link).FindStringSubmatch(b.get(t, at, admin).Body.String())
		if found == nil {
			t.Fatalf("%s does not lead on", at)
		}
		at = html.UnescapeString(found[1])
	}
	form := b.form(t, at, admin)
	if form.Get("of") != "3" || form.Get("errorSignature") == "" {
		t.Errorf("the form has %v", form)
	}
	b.buryAt(t, time.Now().Add(time.Minute), "late", "", "the vault answered 503", `{}`)
	operation := b.operates(t, letters+"/retry", form, admin)
	b.sees(t, operation, admin, 200, `http-equiv="refresh"`, "ann@example.com")
	b.Deliver()
	b.sees(t, operation, ann("Reader"), 200, `!http-equiv="refresh"`, ">Succeeded</span> 3 of 3 done")
	b.statuses(t, map[string]engine.DeadLetterStatus{"work-1": engine.StatusResolved, "work-2": engine.StatusResolved, "work-3": engine.StatusResolved,
		"other": engine.StatusPending, "late": engine.StatusPending})
	if ran := b.History("store"); len(ran) != 3 {
		t.Errorf("%d runs", len(ran))
	}
	b.acted(t, admin, "retry Done", "retry ended Done")
}

// tries starts an operation on two dead letters, which tries one first and then waits.
func (b bench) tries(t *testing.T, seconds string) string {
	t.Helper()
	for _, id := range []string{"work-1", "work-2"} {
		b.bury(t, id, "", "the vault answered 503")
	}
	b.mended.Store(true)
	form := with(b.form(t, letters+"/retry?engine=store", ann("Administrator")), "canary", "1", "canarySeconds", seconds)
	operation := b.operates(t, letters+"/retry", form, ann("Administrator"))
	b.Deliver()
	return operation
}

func (b bench) pending() (n int) {
	for _, d := range b.DeadLetters("store") {
		if d.Status == engine.StatusPending {
			n++
		}
	}
	return n
}

// A dead letter that is canceled before its turn is unchanged; a form that is sent twice cancels once.
func TestCancelOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	operation := b.tries(t, "3600")
	b.sees(t, operation, ann("Reader"), 200, ">Running</span> 1 of 2 done")
	path, _, _ := strings.Cut(operation, "?")
	b.leads(t, path+"/cancel", url.Values{"of": {"2"}}, ann("Operator"), operation)
	b.Deliver()
	b.sees(t, operation, ann("Reader"), 200, ">Canceled</span> 1 of 2 done", "!/cancel")
	if n := b.pending(); n != 1 {
		t.Errorf("%d are pending", n)
	}
}

// An operation is paused on its page while it waits for the outcome of the first, does nothing when that time is over,
// and continues when it is resumed. The list has it all the while, and the audit log has the callers.
func TestPauseOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, inAzure())
		operation := b.tries(t, "60")
		path, _, _ := strings.Cut(operation, "?")
		of := url.Values{"of": {"2"}}
		pause := b.post(t, path+"/pause", of, ann("Operator")).Header().Get("Location")
		b.leads(t, path+"/pause", of, ann("Operator"), pause)
		b.Deliver()
		b.anew()
		time.Sleep(time.Hour) // of the bubble
		b.Deliver()
		b.sees(t, operation, ann("Reader"), 200, ">Paused</span> 1 of 2 done", "<button disabled", "operations.cancel")
		b.sees(t, console.Root+"/operations?status=Open&by=ann", ann("Reader"), 200, path, ">Paused</span>")
		b.sees(t, console.Root+"/operations?status=Succeeded", ann("Reader"), 200, "!"+path)
		b.refuses(t, path+"/resume", of, ann("Reader"), http.StatusForbidden)
		b.Deliver()
		if n := b.pending(); n != 1 {
			t.Errorf("%d are pending while it is paused", n)
		}
		b.refuses(t, path+"/resume", of, ann("Operator"), http.StatusSeeOther)
		b.Deliver()
		b.anew()
		if n := b.pending(); n != 0 {
			t.Errorf("%d are pending at its end", n)
		}
		b.sees(t, console.Root+"/operations?status=Succeeded", ann("Reader"), 200, path, ">Succeeded</span>")
		b.refuses(t, path+"/pause", of, ann("Operator"), http.StatusSeeOther) // an ended operation is unchanged
		acts := strings.Join(b.acts(t, ann("")), "; ")
		for _, want := range []string{"ann@example.com pause Done", "ann@example.com resume Done", "ann@example.com operations.cancel Refused"} {
			if !strings.Contains(acts, want) {
				t.Errorf("audit log without %q: %q", want, acts)
			}
		}
	})
}

// All dead letters of a filter are expired; a form without the time of its page is refused.
func TestExpireAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "work-1", "", "the vault answered 503")
	b.buryAt(t, time.Now().AddDate(0, 0, -3), "old", "", "the vault answered 503", `{}`)
	admin := ann("Administrator")
	form := b.form(t, letters+"/expire?toDate="+time.Now().AddDate(0, 0, -1).UTC().Format(time.DateOnly), admin)
	if b.operates(t, letters+"/expire", form, admin); form.Get("of") != "1" {
		t.Errorf("%v", form)
	}
	b.Deliver()
	b.statuses(t, map[string]engine.DeadLetterStatus{"old": engine.StatusExpired, "work-1": engine.StatusPending})
	form.Del("toDate")
	b.refuses(t, letters+"/expire", with(form, "key", "another"), admin, http.StatusBadRequest, "Back to the form")
}

var choice = regexp.MustCompile(`<input type="checkbox" name="row" value="([^"]*)"`)

// choices returns the selectable values on a page.
func (b bench) choices(t *testing.T, path string, as accesstest.Caller) (values []string) {
	t.Helper()
	for _, m := range choice.FindAllStringSubmatch(b.get(t, path, as).Body.String(), -1) {
		values = append(values, html.UnescapeString(m[1]))
	}
	return values
}

// selects selects, and returns the form of the confirmation page.
func (b bench) selects(t *testing.T, action string, choices ...string) url.Values {
	t.Helper()
	form := url.Values{"action": {action}, "row": choices, "filter": {"engine=store"}}
	return hiddenOf(t, letters+"/selected", b.post(t, letters+"/selected", form, ann("Administrator")))
}

// The selected dead letters are retried, or expired, as one operation, and no others.
func TestSelected(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	for _, id := range []string{"work-1", "work-2", "work/3", "work-4"} {
		b.bury(t, id, "", "the vault answered 503")
	}
	b.mended.Store(true)
	admin, of := ann("Administrator"), map[string]string{}
	for _, c := range b.choices(t, letters+"?engine=store", admin) {
		for _, id := range []string{"work-1", "work-2", "work/3", "work-4"} {
			if name, _ := url.QueryUnescape(c); strings.HasPrefix(name, "store/"+id) || strings.HasPrefix(name, "store/"+url.PathEscape(id)) || strings.HasPrefix(name, "store/"+strings.ReplaceAll(id, "/", "=2F")) {
				of[id] = c
			}
		}
	}
	if len(of) != 4 {
		t.Fatalf("%v can be selected", of)
	}
	operation := b.operates(t, letters+"/retry", b.selects(t, "retry", of["work-1"], of["work/3"]), admin)
	b.operates(t, letters+"/expire", b.selects(t, "expire", of["work-4"]), admin)
	b.Deliver()
	b.statuses(t, map[string]engine.DeadLetterStatus{"work-1": engine.StatusResolved, "work-2": engine.StatusPending, "work/3": engine.StatusResolved, "work-4": engine.StatusExpired})
	b.sees(t, operation, ann("Reader"), 200, "2 of 2 done", "2 by hand")
}

// An empty, a too large and an invalid selection are refused.
func TestSelectedIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "work-1", "", "the vault answered 503")
	admin := ann("Administrator")
	one := b.choices(t, letters, admin)
	many := make([]string, 101)
	for n := range many {
		many[n] = "store/" + strings.Repeat("x", n+1)
	}
	for _, form := range []url.Values{{"action": {"retry"}}, {"row": one}, {"action": {"retry"}, "row": many}, {"action": {"retry"}, "row": {"store"}}, {"action": {"retry"}, "row": {"store/%zz"}}} {
		b.refuses(t, letters+"/selected", form, admin, http.StatusBadRequest, "Back to the list")
	}
	b.refuses(t, letters+"/retry", url.Values{"key": {"k"}, "row": many}, admin, http.StatusBadRequest)
	b.refuses(t, letters+"/selected", url.Values{"action": {"retry"}, "row": one}, ann("Operator"), http.StatusOK, "<button disabled", "deadletters.bulk")
	b.refuses(t, letters+"/retry", b.selects(t, "retry", one...), ann("Operator"), http.StatusForbidden)
	b.Deliver()
	b.statuses(t, map[string]engine.DeadLetterStatus{"work-1": engine.StatusPending})
}

var textarea = regexp.MustCompile(`(?s)<textarea name="message"[^>]*>\n(.*?)</textarea>`)

// edited opens the page that edits a message, and returns its form with a changed text.
func (b bench) edited(t *testing.T, path, from, to string) url.Values {
	t.Helper()
	rec := b.get(t, path+"/edit", ann("Operator"))
	found := textarea.FindStringSubmatch(rec.Body.String())
	if found == nil || !strings.Contains(html.UnescapeString(found[1]), from) {
		t.Fatalf("the page has no message with %q: %s", from, said(rec))
	}
	changed := strings.ReplaceAll(strings.Replace(html.UnescapeString(found[1]), from, to, 1), "\n", "\r\n") // as browsers send it
	return with(hiddenOf(t, path, rec), "message", changed)
}

// A message is repaired, shown with its changes, and sent once however often the form is sent, under the name of the
// sender: the run uses the entered text, and the dead letter has both.
func TestEditAndRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	b.mended.Store(true)
	form := b.edited(t, path, `"input": 7`, `"input": 4503599627370497`)
	b.refuses(t, path+"/edit", form, ann("Operator"), http.StatusOK, "removed: ", "4503599627370497")
	b.statuses(t, map[string]engine.DeadLetterStatus{"work-1": engine.StatusPending})
	b.leads(t, path+"/edit", with(form, "step", "send"), ann("Operator"), path+"?done=edited")
	b.Deliver()
	entries := b.History("store")
	if len(entries) != 1 || entries[0].Status != engine.StatusSucceeded {
		t.Fatalf("history: %+v", entries)
	}
	entry, err := engine.NewHistory(b.Tables, "").Get(t.Context(), "store", entries[0].RowKey)
	if err != nil || string(entry.Output) != "4503599627370497" {
		t.Errorf("it has worked on %s, %v", entry.Output, err)
	}
	b.acted(t, ann(""), "retry edited Done")
	b.sees(t, path+"?done=edited", ann("Reader"), 200, "The edited message was sent", ">Resolved</span>", "Message that was sent in its place", "4503599627370497", "Retried with an edited message",
		">Succeeded</span>")
}

// A rejected message is shown with the reason next to the entered text, and changes nothing.
func TestEditIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	for to, want := range map[string]string{`"input": "seven"`: "its input is not what the engine store takes", `"input": 7, "instanceId": "another"`: "the instance has to stay"} {
		b.refuses(t, path+"/edit", with(b.edited(t, path, `"input": 7`, to), "step", "send"), ann("Operator"), http.StatusUnprocessableEntity, want, html.EscapeString(to)[:12])
	}
	changed := with(b.edited(t, path, `"input": 7`, `"input": 8`), "step", "send")
	b.leads(t, path+"/expire", b.form(t, path+"/expire", ann("Operator")), ann("Operator"), path+"?done=expired")
	b.refuses(t, path+"/edit", changed, ann("Operator"), http.StatusConflict, "Expired")
}

// A note is kept once however often its form is sent. A dead letter that a user takes is in their list. Another user
// sees its holder, and that a page was of another version, and may be assigned it.
func TestNotesAndAssignments(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	b.bury(t, "work-2", "", "the disk is full")
	operator := ann("Operator")
	bob := accesstest.Caller{Tenant: "home", Object: "bob", Name: "bob@example.com", AppRoles: []string{"Roundhouse.Operator"}}
	note := with(b.form(t, path, operator), "note", "we wait until Friday")
	b.leads(t, path+"/notes", note, operator, b.post(t, path+"/notes", note, operator).Header().Get("Location"))
	old := b.form(t, path, operator)
	b.refuses(t, path+"/claim", old, operator, http.StatusSeeOther)
	if text := b.sees(t, path, operator, 200, "You do, since"); strings.Count(text, "we wait until Friday") != 1 {
		t.Error("the note is there more or less than once")
	}
	b.sees(t, letters+"?assignee=me", operator, 200, "the vault answered 503", "!the disk is full", "!all of the filter")
	b.sees(t, letters+"?assignee=nobody", operator, 200, "!the vault answered 503", "the disk is full", "!all of the filter")
	b.refuses(t, path+"/claim", url.Values{}, bob, http.StatusConflict, "ann@example.com has it since")
	b.refuses(t, path+"/assign", url.Values{"etag": {old.Get("etag")}, "assignee": {bob.ID()}}, bob, http.StatusPreconditionFailed, `value="`+bob.ID())
	b.refuses(t, path+"/assign", url.Values{"assignee": {bob.ID()}}, bob, http.StatusSeeOther)
	b.refuses(t, path+"/release", b.form(t, path, bob), bob, http.StatusSeeOther)
	b.acted(t, ann(""), "note Done", "claim Done")
}

// On a developer's machine, the address with the host's key opens the console, once, and the API does not accept the
// cookie.
func TestLocalHost(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	b.bury(t, "work-1", "", "the vault answered 503")
	asks := func(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
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
	holds(t, "without a key", asks(console.Root), http.StatusUnauthorized, []string{"make run"})
	signedIn := asks(console.Root + "/?code=" + localKey)
	if signedIn.Code != http.StatusSeeOther || signedIn.Header().Get("Location") != console.Root || len(signedIn.Result().Cookies()) != 1 {
		t.Fatalf("%d to %s", signedIn.Code, signedIn.Header().Get("Location"))
	}
	cookie := func(r *http.Request) { r.AddCookie(signedIn.Result().Cookies()[0]) }
	holds(t, "with the cookie", asks(console.Root, cookie), http.StatusOK, []string{"the vault answered 503", "!" + localKey})
	holds(t, "the API", asks("/api/dlq", cookie), http.StatusUnauthorized, nil)
	holds(t, "from another machine", asks(console.Root, cookie, func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.7") }), http.StatusForbidden, nil)
}

// commands sends the form of a command twice, and delivers the resulting messages.
func (b bench) commands(t *testing.T, path, name, to string, more ...string) {
	t.Helper()
	form := with(b.form(t, path+"/"+name, ann("Administrator")), more...)
	if name == "purge" { // the run no longer exists
		b.refuses(t, path+"/"+name, form, ann("Administrator"), http.StatusSeeOther)
	} else {
		b.leads(t, path+"/"+name, form, ann("Administrator"), to)
	}
	b.Deliver()
}

// A run is suspended, gets the awaited event, which has no effect, is resumed, shows its output, is restarted,
// terminated and purged: under the caller's name, with their reasons, and each once however often a form is sent.
func TestCommandsToARun(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	b.stands(t, path, "Running")
	b.index()
	b.sees(t, runs+"?status=Running&idPrefix=ask-", ann("Reader"), 200, `href="`+path+`"`)
	b.sees(t, console.Root+"/timeline?correlationId=work-1", ann("Reader"), 200, `href="`+path+`"`)
	b.commands(t, path, "suspend", path+"?done=suspend", "reason", "the freeze")
	b.stands(t, path, "Suspended")
	b.commands(t, path, "raise", path+"?done=raise", "name", "decision", "value", `{"n": 123456789012345678901234567890}`)
	b.stands(t, path, "Suspended")
	b.commands(t, path, "resume", path+"?done=resume")
	b.sees(t, path, ann("Reader"), 200, `data-status="Completed"`, "123456789012345678901234567890", "9007199254740993", "ExecutionSuspended", "the freeze", "<rect", "EventRaised")
	b.commands(t, path, "restart", path+"?done=restart")
	b.stands(t, path, "Running")
	b.commands(t, path, "terminate", path+"?done=terminate", "reason", "a mistake")
	b.stands(t, path, "Terminated")
	b.commands(t, path, "purge", "")
	b.sees(t, path, ann("Reader"), http.StatusNotFound)
	b.acted(t, ann(""), "suspend Done", "raise decision Done", "resume Done", "restart Done", "terminate Done", "purge Done")
}

// A form from before a change of the run is refused: an ended run accepts nothing, and a purge affects the displayed
// run.
func TestOldForms(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	operator, admin := ann("Operator"), ann("Administrator")
	suspend, terminate := b.form(t, path+"/suspend", operator), b.form(t, path+"/terminate", operator)
	b.commands(t, path, "terminate", path+"?done=terminate")
	b.refuses(t, path+"/terminate", terminate, operator, http.StatusSeeOther)
	purge := b.form(t, path+"/purge", admin)
	b.refuses(t, path+"/suspend", suspend, operator, http.StatusConflict, "Back to the orchestration")
	b.commands(t, path, "restart", path+"?done=restart")
	b.commands(t, path, "terminate", path+"?done=terminate")
	b.refuses(t, path+"/purge", purge, admin, http.StatusPreconditionFailed)
	b.stands(t, path, "Terminated")
}

// A run is started with a form that is made from the engine's schema: once, however often it is sent, and under the
// sender's name. The next page has both ids, with links.
func TestStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure(), "keep")
	const path = runs + "/keep-from-the-console"
	form := with(b.form(t, startKeep, ann("Operator")), "correlationId", "from-the-console", "f0", "9007199254740993", "f1", "the audit")
	b.leads(t, startKeep, form, ann("Operator"), path+"?done=start")
	b.Deliver()
	if out := b.Outcome("keep-from-the-console"); string(out.Output) != `{"days":9007199254740993,"why":"the audit"}` || out.Execution != 1 {
		t.Errorf("it made %s in execution %d", out.Output, out.Execution)
	}
	b.sees(t, path+"?done=start", ann("Operator"), 200, "was started: its id is", "keep-from-the-console", console.Root+"/timeline?correlationId=from-the-console")
	b.refuses(t, startKeep, with(form, "f0", "1"), ann("Operator"), http.StatusUnprocessableEntity, "Send it again to start another one")
	b.acted(t, ann(""), "start keep Done", "start keep Failed")
}

// Ended runs are purged after the page has counted them: once, under the caller's name. Others stay.
func TestPurgeByFilter(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	b.begin("ask", "work-2", "", "1")
	const ended, continues = runs + "/ask-work-1", runs + "/ask-work-2"
	b.commands(t, ended, "terminate", ended+"?done=terminate")
	b.index()
	b.sees(t, purging+"?orchestrator=ask", ann("Administrator"), 200, "1 orchestration that ended before")
	form := b.form(t, purging+"?orchestrator=ask", ann("Administrator"))
	if b.stands(t, ended, "Terminated"); form.Get("of") != "1" {
		t.Errorf("%v", form)
	}
	operation := b.operates(t, purging, form, ann("Administrator"))
	b.Deliver()
	b.sees(t, operation, ann("Administrator"), 200, "Succeeded")
	b.sees(t, ended, ann("Reader"), http.StatusNotFound)
	b.stands(t, continues, "Running")
	b.refuses(t, purging, url.Values{"orchestrator": {"ask"}}, ann("Administrator"), http.StatusBadRequest) // without a time
	if acts := strings.Join(b.acts(t, ann("")), "; "); !strings.Contains(acts, "ann@example.com purge Done") {
		t.Errorf("audit log: %q", acts)
	}
}

// A damaged run is reported as such, leads to its forced purge, and is gone after that, with the reason in the audit
// log.
func TestForcePurge(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	b.damage(t, "ask-work-1")
	b.sees(t, path, ann("Reader"), http.StatusInternalServerError, `href="`+path+`/force-purge"`)
	b.refuses(t, path+"/force-purge", url.Values{}, ann("Administrator"), http.StatusBadRequest, "needs a reason")
	if rec := b.post(t, path+"/force-purge", url.Values{"reason": {"no backup has it"}}, ann("Administrator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != runs+"?done=purged" {
		t.Fatalf("%d %s", rec.Code, said(rec))
	}
	b.sees(t, path, ann("Reader"), http.StatusNotFound)
	if acts := strings.Join(b.acts(t, ann("")), "; "); !strings.Contains(acts, "ann@example.com forcePurge Done") {
		t.Errorf("audit log: %q", acts)
	}
}

// uploads sends a history like its page.
func (b bench) uploads(t *testing.T, history string, as accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.WriteField("text", history); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.postBody(t, openHistory, w.FormDataContentType(), &body, as)
}

// A downloaded history is opened in another app: it shows the same, marked as offline, without any action, and nothing
// of it is kept.
func TestHistoryIsOpenedElsewhere(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	history := b.sees(t, path+"/history", ann("Reader"), 200, `"format": "roundhouse-history"`)
	elsewhere := newWaiting(t, "work-2", "")
	holds(t, "the history", elsewhere.uploads(t, history, ann("Reader")), 200, []string{"Offline:", "ask-work-1", "9007199254740993", `data-status="Running"`, "<rect", "ActivityScheduled", "decision",
		"!" + runs + "/ask-work-1", `!class="commands"`, "!correlationId=work-1", "!>now</text>"})
	elsewhere.sees(t, path, ann("Reader"), http.StatusNotFound)
	holds(t, "no history", elsewhere.uploads(t, `{"id": "a"}`, ann("Reader")), http.StatusUnprocessableEntity, []string{"is no history"})
}
