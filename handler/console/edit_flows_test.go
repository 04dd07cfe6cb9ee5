package console_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/browser"
)

var textarea = regexp.MustCompile(`(?s)<textarea name="message"[^>]*>\n(.*?)</textarea>`)

// edited opens the page that edits a message, and gives its form with something else in it.
func (b bench) edited(t *testing.T, path, from, to string, as accesstest.Caller) url.Values {
	t.Helper()
	form := b.form(t, path+"/edit", as)
	_, text := b.Do(http.MethodGet, path+"/edit", "", as.Sign)
	found := textarea.FindStringSubmatch(text)
	if found == nil || !strings.Contains(html.UnescapeString(found[1]), from) {
		t.Fatalf("the page has no message with %q: %s", from, text)
	}
	form.Set("message", strings.ReplaceAll(strings.Replace(html.UnescapeString(found[1]), from, to, 1), "\n", "\r\n")) // as browsers send it
	return form
}

// A message is mended, seen with what has changed, and sent once however often the form is sent, under the name of whoever sent it: the
// run does its work with what was entered, and the dead letter has both.
func TestEditAndRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	b.mended.Store(true)
	form := b.edited(t, path, `"input": 7`, `"input": 4503599627370497`, ann("Operator"))
	rec := b.post(t, path+"/edit", form, ann("Operator"))
	if text := rec.Body.String(); rec.Code != http.StatusOK || !strings.Contains(text, "removed: ") || !strings.Contains(text, "4503599627370497") {
		t.Fatalf("%d: %s", rec.Code, text)
	}
	if d := b.DeadLetters("store"); d[0].Status != engine.StatusPending {
		t.Fatalf("something was sent already: %+v", d)
	}
	form.Set("step", "send")
	for range 2 {
		if rec := b.post(t, path+"/edit", form, ann("Operator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != path+"?done=edited" {
			t.Fatalf("%d to %s: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
		}
	}
	b.Deliver()
	entries := b.History("store")
	if len(entries) != 1 || entries[0].Status != engine.StatusSucceeded {
		t.Fatalf("history: %+v", entries)
	}
	entry, err := engine.NewHistory(b.Tables, "").Get(t.Context(), "store", entries[0].RowKey)
	if err != nil || string(entry.Output) != "4503599627370497" {
		t.Errorf("it has worked on %s, %v", entry.Output, err)
	}
	if got := b.acts(t, ann("")); len(got) != 2 || got[0] != "ann@example.com retry edited Done" {
		t.Errorf("audit log: %q", got)
	}
	_, text := b.Do(http.MethodGet, path+"?done=edited", "", ann("Reader").Sign)
	for _, want := range []string{"The edited message was sent", ">Resolved</span>", "Message that was sent in its place", "4503599627370497", "Retried with an edited message", ">Succeeded</span>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// What cannot be sent is said beside what was entered, and nothing is changed.
func TestEditIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "work-1", "", "the vault answered 503")
	for to, want := range map[string]string{`"input": "seven"`: "its input is not what the engine store takes", `"input": 7, "instanceId": "another"`: "the instance has to stay"} {
		form := b.edited(t, path, `"input": 7`, to, ann("Operator"))
		form.Set("step", "send")
		if rec := b.post(t, path+"/edit", form, ann("Operator")); rec.Code != http.StatusUnprocessableEntity || !strings.Contains(rec.Body.String(), want) || !strings.Contains(rec.Body.String(), html.EscapeString(to)[:12]) {
			t.Errorf("%s: %d: %s", to, rec.Code, rec.Body)
		}
	}
	changed := b.edited(t, path, `"input": 7`, `"input": 8`, ann("Operator"))
	b.post(t, path+"/expire", b.form(t, path+"/expire", ann("Operator")), ann("Operator"))
	changed.Set("step", "send")
	if rec := b.post(t, path+"/edit", changed, ann("Operator")); rec.Code != http.StatusConflict || !strings.Contains(rec.Body.String(), "Expired") {
		t.Errorf("after somebody else has decided: %d: %s", rec.Code, rec.Body)
	}
}

// Who may not edit is shown why, and cannot; what belongs to another tenant is not there.
func TestEditOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.bury(t, "theirs", accesstest.ID("blue"), "secret failure of blue")
	form := b.edited(t, path, `"input": 7`, `"input": 8`, ann("Operator"))
	if _, text := b.Do(http.MethodGet, path+"/edit", "", ann("Reader").Sign); !strings.Contains(text, "<button disabled") || !strings.Contains(text, "deadletters.edit") {
		t.Errorf("a reader is shown %s", text)
	}
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	if status, text := b.Do(http.MethodGet, path+"/edit", "", red.Sign); status != http.StatusNotFound || strings.Contains(text, "secret") {
		t.Errorf("%d: %s", status, text)
	}
	for _, caller := range []accesstest.Caller{ann("Reader"), red} {
		for _, step := range []string{"", "edit", "send"} {
			form.Set("step", step)
			if rec := b.post(t, path+"/edit", form, caller); rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound || caller.Tenant == "red" && strings.Contains(rec.Body.String(), "secret") {
				t.Errorf("%s, %q: %d: %s", caller.Name, step, rec.Code, rec.Body)
			}
		}
	}
	if got := b.acts(t, ann("")); len(got) != 1 || !strings.HasSuffix(got[0], "Refused") {
		t.Errorf("audit log: %q", got)
	}
	if d := b.DeadLetters("store"); d[0].Status != engine.StatusPending {
		t.Errorf("%+v", d)
	}
}

// A broken message is mended by keyboard alone, and the pages are accessible whatever the message is.
func TestBrowserEdit(t *testing.T) {
	t.Parallel()
	bench := newBench(t, map[string]string{"ROUNDHOUSE_LOCAL_KEY": localKey})
	path := bench.bury(t, "work-1", "", "the vault answered 503")
	quoted, err := json.Marshal(`</textarea><script>document.title = "owned"</script> ` + strings.Repeat("long", 200))
	if err != nil {
		t.Fatal(err)
	}
	hostile := bench.buryMessage(t, "work-2", `{"correlationId": "work-2", "text": `+string(quoted)+`, "input": 7}`)
	bench.mended.Store(true)
	server := httptest.NewServer(bench.Host)
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	b.Open(console.Root + "/?code=" + localKey)
	b.Look(map[string]string{"edit": path + "/edit", "edit-hostile": hostile + "/edit"}, nil)
	b.Do(chromedp.EmulateViewport(1280, 800))
	b.Open(path)
	b.TabTo("Edit and retry")
	b.Enter()
	browser.Eval[bool](b, `(t => { t.value = t.value.replace("7", "8"); return true })(document.querySelector("textarea"))`)
	b.TabTo("Show what has changed")
	b.Enter()
	if text := browser.Eval[string](b, `document.querySelector("ins").textContent`); !strings.Contains(text, `"input": 8`) {
		t.Errorf("the page says that %q was added", text)
	}
	accessibleNow(b, t, "diff")
	b.TabTo("Send the edited message")
	b.Enter()
	if text := browser.Eval[string](b, `document.querySelector("[role=status]").textContent`); !strings.Contains(text, "The edited message was sent") {
		t.Errorf("the page says %q", text)
	}
}

// accessibleNow holds the page that is open, in both themes and on a small screen.
func accessibleNow(b *browser.Tab, t *testing.T, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}} // or it is held while it changes
		if _, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
			t.Fatal(err)
		}
		b.Accessible(name + ", " + scheme)
	}
	b.Do(chromedp.EmulateViewport(360, 740))
	if width := browser.Eval[int](b, `document.documentElement.scrollWidth`); width > 360 {
		t.Errorf("%s is %d wide on a screen of 360", name, width)
	}
	b.Do(chromedp.EmulateViewport(1280, 800))
}

// buryMessage is bury for one with a message.
func (b bench) buryMessage(t *testing.T, id, message string) string {
	t.Helper()
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	d := engine.DeadLetter{Engine: "store", MessageID: id, OriginalQueue: "store-queue", OriginalMessage: []byte(message), ErrorMessage: "the vault answered 503", DequeueCount: 5,
		CorrelationID: id, InsertedAtUtc: at, FirstFailureAtUtc: at, LastFailureAtUtc: at}
	if _, err := engine.NewDeadLetters(b.Tables, "").Add(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return letters + "/store/" + url.PathEscape(d.Key())
}
