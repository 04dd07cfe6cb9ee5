package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

// An operation is paused on its page while it waits for what comes of the first, does nothing when that time is over, and goes on
// where it was when it is resumed; the list has it all the while, and the audit log who did that.
func TestPauseOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, inAzure())
		for _, id := range []string{"work-1", "work-2"} {
			b.bury(t, id, "", "the vault answered 503")
		}
		b.mended.Store(true)
		form := b.hiddenForm(t, letters+"/retry?engine=store", ann("Administrator"))
		form.Set("canary", "1")
		form.Set("canarySeconds", "60")
		operation := b.post(t, letters+"/retry", form, ann("Administrator")).Header().Get("Location")
		path, _, _ := strings.Cut(operation, "?")
		command := func(name string, as accesstest.Caller, want int) {
			t.Helper()
			if rec := b.post(t, path+"/"+name, url.Values{"of": {"2"}}, as); rec.Code != want {
				t.Fatalf("%s: %d: %s", name, rec.Code, rec.Body)
			}
		}
		listed := func(query, want string) {
			t.Helper()
			status, text := b.Do(http.MethodGet, console.Root+"/operations"+query, "", ann("Reader").Sign)
			if status != http.StatusOK || strings.Contains(text, path) != (want != "") || !strings.Contains(text, want) {
				t.Errorf("the list %q: %d %s", query, status, text)
			}
		}
		pending := func() (n int) {
			for _, status := range b.statuses() {
				if status == engine.StatusPending {
					n++
				}
			}
			return n
		}
		b.Deliver()
		for range 2 { // a form that is sent twice
			command("pause", ann("Operator"), http.StatusSeeOther)
		}
		b.Deliver()
		b.anew()
		time.Sleep(time.Hour) // of the bubble
		b.Deliver()
		if _, text := b.Do(http.MethodGet, operation, "", ann("Reader").Sign); !strings.Contains(text, ">Paused</span> 1 of 2 done") || !strings.Contains(text, "<button disabled") || !strings.Contains(text, "operations.cancel") {
			t.Errorf("while it is paused, a reader sees %s", text)
		}
		listed("?status=Open&by=ann", ">Paused</span>")
		listed("?status=Succeeded", "")
		command("resume", ann("Reader"), http.StatusForbidden)
		b.Deliver()
		if n := pending(); n != 1 {
			t.Errorf("%d are pending while it is paused", n)
		}
		command("resume", ann("Operator"), http.StatusSeeOther)
		b.Deliver()
		b.anew()
		if n := pending(); n != 0 {
			t.Errorf("%d are pending at its end", n)
		}
		listed("?status=Succeeded", ">Succeeded</span>")
		command("pause", ann("Operator"), http.StatusSeeOther) // at its end, it is left as it is
		got := b.acts(t, ann("Operator"))
		for _, want := range []string{"ann@example.com pause Done", "ann@example.com resume Done", "ann@example.com operations.cancel Refused"} {
			if !slices.Contains(got, want) {
				t.Errorf("audit log without %q: %q", want, got)
			}
		}
	})
}

// Somebody of another tenant sees no operation of others in the list, and cannot pause one.
func TestOperationsOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "theirs", accesstest.ID("blue"), "the vault answered 503")
	form := b.hiddenForm(t, letters+"/retry?engine=store", ann("Administrator"))
	operation, _, _ := strings.Cut(b.post(t, letters+"/retry", form, ann("Administrator")).Header().Get("Location"), "?")
	b.anew()
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	if status, text := b.Do(http.MethodGet, console.Root+"/operations", "", red.Sign); status != http.StatusOK || strings.Contains(text, operation) || strings.Contains(text, "ann@") {
		t.Errorf("%d %s", status, text)
	}
	if _, text := b.Do(http.MethodGet, console.Root+"/operations", "", ann("Reader").Sign); !strings.Contains(text, operation) {
		t.Errorf("the home tenant does not see it: %s", text)
	}
	for _, name := range []string{"pause", "resume"} {
		if rec := b.post(t, operation+"/"+name, url.Values{}, red); rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
}

// anew ends the process of the app, which writes what is to be listed, and starts another one.
func (b bench) anew() { b.Restart(inAzure(), func(*handler.Config) {}) }
