package console_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

// commands sends the form of a command twice, and delivers what comes of it.
func (b bench) commands(t *testing.T, path, name, to string, more ...string) {
	t.Helper()
	form := with(b.form(t, path+"/"+name, ann("Administrator")), more...)
	if name == "purge" { // nothing is left that could be asked for again
		b.refuses(t, path+"/"+name, form, ann("Administrator"), http.StatusSeeOther)
	} else {
		b.leads(t, path+"/"+name, form, ann("Administrator"), to)
	}
	b.Deliver()
}

// A run is suspended, gets the event that it waits for, which has no effect, is resumed, shows its output, is restarted, terminated and purged: under
// the caller's name, with their reasons, and each once however often a form is sent.
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

// A form that was opened before the run changed says so: a run that has ended gets nothing, and the run that is purged is the one that was shown.
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

// A run is started with a form that is made from the engine's schema: once, however often it is sent, and under the sender's name. The page that
// follows has both ids, with links.
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

// Runs that have ended are purged after the page has counted them: once, under the caller's name. Others stay.
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

// A damaged run says so, leads to its forced purge, and is gone after that, with the reason in the audit log.
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

// uploads sends a history as the page that opens one does.
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

// A downloaded history is opened where the run is not: it shows the same, marked as offline, without any action, and nothing of it is kept.
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
