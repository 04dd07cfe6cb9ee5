package console_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/outbox"
)

// publish adds an event of a tenant, for which there is no route, and gives the address of its page.
func (b bench) publish(t *testing.T, tenant string) string {
	t.Helper()
	o, err := outbox.New(outbox.Config{Tables: b.Tables, Queues: b.Queues, Blobs: b.Blobs, Options: outbox.DefaultOptions(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	added, err := outbox.NewWriter(o).Add(t.Context(), outbox.Message{TenantID: tenant, EventType: "key.rotated", Payload: json.RawMessage(`{"days": 9007199254740993}`), CorrelationID: "work-1"})
	if err != nil {
		t.Fatal(err)
	}
	return console.Root + "/outbox/" + tenant + "/" + added.ID
}

// An event is skipped and replayed from its page, once however often the form is sent, under the name of whoever sent it.
func TestEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.publish(t, "acme")
	b.publish(t, "other")
	_, list := b.Do(http.MethodGet, console.Root+"/outbox?tenant=acme&status=pending", "", ann("Reader").Sign)
	if !strings.Contains(list, `href="`+path+`"`) || strings.Contains(list, console.Root+"/outbox/other/") {
		t.Errorf("the list: %s", list)
	}
	for _, step := range []struct{ act, status string }{{"retry", "pending"}, {"skip", "skipped"}, {"replay", "pending"}} {
		form := b.seen(t, path+"/"+step.act, ann("Operator"))
		for range 2 {
			if rec := b.post(t, path+"/"+step.act, form, ann("Operator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != path+"?done="+step.act {
				t.Fatalf("%s: %d to %q: %s", step.act, rec.Code, rec.Header().Get("Location"), rec.Body)
			}
		}
		if _, text := b.Do(http.MethodGet, path, "", ann("Reader").Sign); !strings.Contains(text, ">"+step.status+"</span>") || !strings.Contains(text, "9007199254740993") {
			t.Errorf("after %s: %s", step.act, text)
		}
	}
	got := b.acts(t, ann(""))
	for act, times := range map[string]int{"skip": 1, "replay": 1} {
		n := 0
		for _, a := range got {
			if a == "ann@example.com "+act+" Done" {
				n++
			}
		}
		if n != times {
			t.Errorf("%s is %d times in the audit log: %q", act, n, got)
		}
	}
}

// seen opens a page that asks about an event, and gives what its form sends.
func (b bench) seen(t *testing.T, path string, as accesstest.Caller) url.Values {
	t.Helper()
	status, text := b.Do(http.MethodGet, path, "", as.Sign)
	for _, m := range hidden.FindAllStringSubmatch(text, -1) {
		if m[1] == "seen" {
			return url.Values{"seen": {m[2]}}
		}
	}
	t.Fatalf("%s: %d, and no form: %s", path, status, text)
	return nil
}

// Somebody of another tenant sees nothing of an event, and changes nothing; who may only read changes nothing either.
func TestEventsOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.publish(t, accesstest.ID("blue"))
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	for target, want := range map[string]int{console.Root + "/outbox": 200, console.Root + "/outbox?tenant=" + accesstest.ID("blue"): 200, path: 404, path + "/skip": 404} {
		if status, text := b.Do(http.MethodGet, target, "", red.Sign); status != want || strings.Contains(text, "key.rotated") || strings.Contains(text, "9007199254740993") {
			t.Errorf("%s: %d %s", target, status, text)
		}
	}
	for _, act := range []string{"retry", "skip", "replay"} {
		if rec := b.post(t, path+"/"+act, url.Values{"seen": {"first"}}, red); rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound {
			t.Errorf("%s of another tenant: %d", act, rec.Code)
		}
		if rec := b.post(t, path+"/"+act, url.Values{}, ann("Reader")); rec.Code != http.StatusForbidden { // whatever the form has
			t.Errorf("%s of a reader: %d", act, rec.Code)
		}
	}
	if _, text := b.Do(http.MethodGet, path, "", ann("Reader").Sign); !strings.Contains(text, ">pending</span>") {
		t.Errorf("it is changed: %s", text)
	}
	if got := b.acts(t, ann("")); len(got) != 3 || slices.ContainsFunc(got, func(act string) bool { return !strings.HasSuffix(act, " Refused") }) {
		t.Errorf("audit log: %q", got)
	}
}
