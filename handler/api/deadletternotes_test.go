package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
)

// Notes and who takes care of a dead letter are shown and listed, once however often a request is sent, and the audit log knows of them.
func TestNotesAndAssignments(t *testing.T) {
	t.Parallel()
	b := newBuried(t, 3)
	target := b.letter("hmac", "m0")
	ada := func(t *testing.T, path, body string, headers ...string) deadLetterDetail {
		t.Helper()
		rec := b.send(t, http.MethodPost, target+path, body, append(headers, "X-MS-CLIENT-PRINCIPAL", anyone())...)
		if rec.Code != http.StatusOK || rec.Header().Get("ETag") == "" {
			t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
		}
		return data[deadLetterDetail](t, rec)
	}
	for range 2 {
		ada(t, "/notes", `{"text":"password=abc, we wait"}`, "Idempotency-Key", "k")
	}
	d := ada(t, "/claim", "")
	if len(d.Notes) != 1 || d.Notes[0].Text != "password=[redacted], we wait" && !strings.Contains(d.Notes[0].Text, "[redacted]") || d.Notes[0].By != idOf("Ada", "home")+" (Ada)" || d.Assignee != idOf("Ada", "home") || d.AssigneeName != "Ada" || d.Status != engine.StatusPending {
		t.Errorf("%+v", d)
	}
	for query, want := range map[string]int{"me": 1, "nobody": 3, idOf("Ada", "home"): 1, "somebody": 0} {
		rec := b.get(t, "/api/dlq?assignee="+query, "X-MS-CLIENT-PRINCIPAL", anyone())
		if l := data[list[deadLetterItem]](t, rec); len(l.Items) != want || want == 1 && l.Items[0].AssigneeName != "Ada" {
			t.Errorf("of %s: %+v", query, l.Items)
		}
	}
	etag := b.get(t, target).Header().Get("ETag")
	if rec := b.send(t, http.MethodPost, target+"/claim", ""); rec.Code != http.StatusConflict || decode(t, rec).Error.Code != codeLetterHeld || !strings.Contains(rec.Body.String(), "Ada has it since") {
		t.Errorf("held: %d %s", rec.Code, rec.Body)
	}
	if d := ada(t, "/assign", `{"assignee":"t/bo","assigneeName":"Bo"}`, "If-Match", etag); d.Assignee != "t/bo" || d.AssigneeName != "Bo" {
		t.Errorf("%+v", d)
	}
	if rec := b.send(t, http.MethodPost, target+"/release", "", "If-Match", etag); rec.Code != http.StatusPreconditionFailed {
		t.Errorf("stale: %d %s", rec.Code, rec.Body)
	}
	if d := ada(t, "/release", "{}"); d.Assignee != "" {
		t.Errorf("%+v", d)
	}
	b.send(t, http.MethodPost, target+"/retry", "")
	if rec := b.send(t, http.MethodPost, target+"/claim", ""); rec.Code != http.StatusConflict || decode(t, rec).Error.Code != codeInvalidState {
		t.Errorf("resolved: %d %s", rec.Code, rec.Body)
	}
	for path, bodies := range map[string][]string{
		"/notes":   {``, `{}`, `{"text":""}`, `{"text":7}`, `{"note":"x"}`, `{"text":"` + strings.Repeat("x", engine.MaxNoteText+1) + `"}`},
		"/assign":  {``, `{}`, `{"assignee":"me"}`, `{"assignee":"nobody"}`, `{"assignee":"` + strings.Repeat("x", engine.MaxIdentity+1) + `"}`},
		"/claim":   {`{"assignee":"x"}`},
		"/release": {`[]`},
	} {
		for _, body := range bodies {
			if rec := b.send(t, http.MethodPost, target+path, body); rec.Code != http.StatusBadRequest {
				t.Errorf("%s %.60s: %d %s", path, body, rec.Code, rec.Body)
			}
		}
	}
	for n := range engine.MaxNotes {
		rec := b.send(t, http.MethodPost, target+"/notes", `{"text":"x"}`)
		if last := n == engine.MaxNotes-1; last != (rec.Code == http.StatusConflict) {
			t.Fatalf("note %d: %d", n, rec.Code)
		}
	}
}
