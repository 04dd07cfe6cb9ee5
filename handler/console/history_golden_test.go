package console

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
)

const openAPI = "/api/orchestrations/history/open"

// opened is what the API tells of a history that is like the data of a page.
func opened(run map[string]any, timeline any, rounds any, left int) map[string]any {
	return map[string]any{"orchestration": run, "timeline": timeline, "rounds": rounds, "entriesLeft": left, "itemsLeft": left}
}

// part digs a member out of a document.
func member(document any, name string) json.RawMessage {
	text, ok := document.(string)
	if !ok {
		raw, _ := json.Marshal(document)
		text = string(raw)
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal([]byte(text), &all)
	return all[name]
}

// upload sends files of a form, by the names of its fields.
func upload(t *testing.T, h http.Handler, target string, fields ...[2]string) *httptest.ResponseRecorder {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, f := range fields {
		part, err := w.CreateFormFile(f[0], "history.json")
		if err == nil {
			_, err = part.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sendBody(t, h, target, w.FormDataContentType(), &body)
}

// historyPages are the page that asks for a history, and what it makes of one.
func historyPages() map[string]shown {
	typicalRun, evilRun := runs(runData(nil)), hostileRuns()
	evilID := evil + "/..%2F"
	opens := func(answer any, sent string, status int) shown {
		return at(answers{"/api/me": operator(), openAPI: answer}, openPath, status).uploads([2]string{"file", sent}, [2]string{"text", ""})
	}
	return map[string]shown{
		"openhistory_shown": opens(opened(runData(nil), member(typicalRun["/api/timeline/rotation-7"], "items"), member(roundsData(), "items"), 3), "{}", 200),
		"openhistory_hostile": opens(opened(evilRun[runsAPI+"/"+evilID].(map[string]any), member(evilRun["/api/timeline/"+evil], "items"),
			member(evilRun[runsAPI+"/"+evilID+"/rounds"], "items"), 0), "{}", 200),
		"openhistory_refused":     opens(refusal{422, "NotAHistory", "The file is no history of an orchestration: " + evil}, "{}", 422),
		"openhistory_nothing":     opens(refusal{422, "NotAHistory", ""}, "", 400),
		"openhistory_typical":     at(answers{"/api/me": operator()}, openPath, 200),
		"openhistory_participant": at(answers{"/api/me": approver()}, openPath, 403),
	}
}

// A history reaches the API as it was sent, as a file or as a text; what is too large does not.
func TestHistoryIsSentAsItIs(t *testing.T) {
	t.Parallel()
	const text = `{"id": "a",  "n": 123456789012345678901234567890, "<": "\u003c"}`
	for name, test := range map[string]struct {
		field, text string
		status      int
	}{
		"a file":      {"file", text, 200},
		"a text":      {"text", text, 200},
		"another":     {"other", text, 400},
		"the largest": {"file", strings.Repeat("x", api.MaxHistory), 200},
		"larger":      {"file", strings.Repeat("x", api.MaxHistory+1), 400},
		"far larger":  {"file", strings.Repeat("x", maxUpload+1), 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			a := answers{"/api/me": operator(), openAPI: opened(runData(nil), nil, nil, 0)}
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == openAPI {
					text, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					got = string(text)
				}
				a.ServeHTTP(w, r)
			})
			rec := at(h, openPath, test.status).uploads([2]string{test.field, test.text}).ask(t)
			if rec.Code != test.status || (got == test.text) != (test.status == 200) {
				t.Errorf("%d, and the API got %.80q", rec.Code, got)
			}
		})
	}
}

// A download is a file for the browser to keep, under the name that the API gives it.
func TestDownload(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != runsAPI+"/"+runID+"/history" {
			runs(runData(nil)).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Disposition", `attachment; filename="history-x.json"`)
		_, _ = w.Write([]byte(`{"n": 1.10}`))
	})
	rec := get(t, newConsole(t, h, access.Control{EasyAuth: true}), orchestrationLink(runID)+"/history")
	if head := rec.Header(); rec.Code != 200 || rec.Body.String() != `{"n": 1.10}` || head.Get("Content-Disposition") != `attachment; filename="history-x.json"` || head.Get("Content-Type") != "application/json" || head.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", rec.Code, head, rec.Body)
	}
	refused := runs(runData(nil)).with(answers{runsAPI + "/" + runID + "/history": refusal{422, "HistoryTooLarge", "The history has 9 MiB."}})
	rec = get(t, newConsole(t, refused, access.Control{EasyAuth: true}), orchestrationLink(runID)+"/history")
	if rec.Code != 422 || rec.Header().Get("Content-Disposition") != "" || !strings.Contains(rec.Body.String(), "The history has 9 MiB.") || !strings.Contains(rec.Body.String(), "Back to the orchestration") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
