package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// signedEvent returns a request with an event, as an outbox sends it.
func signedEvent(t *testing.T, kind, data, key string, at time.Time) *http.Request {
	t.Helper()
	body := []byte(fmt.Sprintf(`{"specversion":"1.0","id":"7e0c9c9e-1111-4222-8333-000000000001","source":"/s","type":%q,"data":%s}`, kind, data))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	if err := outbox.Sign(r.Header, "7e0c9c9e", at, body, []outbox.SigningKey{{ID: "k", Secret: []byte(key24(key))}}); err != nil {
		t.Fatal(err)
	}
	return r
}

// An event that is unsigned, changed, old, or for another receiver is refused without effects; a duplicate is one
// message.
func TestEventsThatAreRefused(t *testing.T) {
	t.Parallel()
	const notice = `{"instanceId":"i1","ring":"stable","version":"2.0","components":[{"name":"web","version":"1.1"}]}`
	const report = `{"instanceId":"i1","status":"Unhealthy","sinceUtc":"1999-11-01T00:00:00Z"}`
	change := func(from, to string) func(*http.Request) {
		return func(r *http.Request) {
			body, _ := io.ReadAll(r.Body) // of memory
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(body), from, to, 1)))
		}
	}
	cases := map[string]struct {
		report     bool
		kind, data string
		key        string
		late       time.Duration
		change     func(*http.Request)
		status     int
		code       string
	}{
		"a notice":                      {data: notice, key: "a", status: http.StatusAccepted},
		"a report":                      {report: true, data: report, key: "b", status: http.StatusAccepted},
		"another key":                   {data: notice, key: "b", status: http.StatusUnauthorized, code: "Unauthorized"},
		"another instance's key":        {report: true, data: report, key: "c", status: http.StatusUnauthorized, code: "Unauthorized"},
		"an instance without a key":     {report: true, data: strings.Replace(report, "i1", "i9", 1), key: "b", status: http.StatusUnauthorized, code: "Unauthorized"},
		"changed":                       {data: notice, key: "a", change: change("2.0", "3.0"), status: http.StatusUnauthorized, code: "Unauthorized"},
		"old":                           {data: notice, key: "a", late: 6 * time.Minute, status: http.StatusUnauthorized, code: "Unauthorized"},
		"not signed":                    {data: notice, key: "a", change: func(r *http.Request) { r.Header.Del(outbox.HeaderSignature) }, status: http.StatusUnauthorized, code: "Unauthorized"},
		"in binary mode":                {data: notice, key: "a", change: func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"too large":                     {data: `"` + strings.Repeat("x", 600<<10) + `"`, key: "a", status: http.StatusRequestEntityTooLarge, code: "BodyTooLarge"},
		"of another instance":           {data: strings.Replace(notice, "i1", "i2", 1), key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"of no instance":                {data: `{}`, key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"another event":                 {kind: "hmac.rotated", data: notice, key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a notice without components":   {data: `{"instanceId":"i1","ring":"stable","version":"2.0"}`, key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a report that makes no sense":  {report: true, data: `{"instanceId":"i1","status":"a b","sinceUtc":"1999-11-01T00:00:00Z"}`, key: "b", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a notice among the reports":    {report: true, kind: release.EventAvailable, data: notice, key: "b", status: http.StatusUnprocessableEntity, code: "NotTaken"},
		"a notice with a hostile value": {data: strings.Replace(notice, "1.1", "../1", 1), key: "a", status: http.StatusUnprocessableEntity, code: "NotTaken"},
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "[]")
		for name, c := range cases {
			to, path, queue, kind := f.managed, "/api/updates", update.Queue, release.EventAvailable
			if c.report {
				to, path, queue, kind = f.publisher, "/api/reports", updatepublisher.Queue, release.EventHealth
			}
			if c.kind != "" {
				kind = c.kind
			}
			before := testenv.Must(to.Queues.Length(t.Context(), queue))(t)
			for range 2 {
				r := signedEvent(t, kind, c.data, c.key, time.Now().Add(-c.late))
				r.URL.Path, r.RequestURI = path, path
				if c.change != nil {
					c.change(r)
				}
				rec := httptest.NewRecorder()
				to.ServeHTTP(rec, r)
				if rec.Code != c.status || rec.Header().Get("x-ms-error-code") != c.code {
					t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
				}
			}
			if n := testenv.Must(to.Queues.Length(t.Context(), queue))(t); (n > before) != (c.status == http.StatusAccepted) {
				t.Errorf("%s: %d messages, %d before", name, n, before)
			}
		}
		f.pass(5 * time.Minute)
		const event = "7e0c9c9e-1111-4222-8333-000000000001"
		runs := map[string]bool{}
		for _, e := range f.managed.History(update.Engine) {
			runs[e.CorrelationID] = true
		}
		testenv.Equal(t, "updates", map[string]bool{event: true}, runs)
		runs = map[string]bool{}
		for _, e := range f.publisher.History(updatepublisher.Engine) {
			runs[e.CorrelationID] = true
		}
		if reported := engine.DeriveCorrelationID("report", "i1", event); !runs[reported] || len(runs) != 2 { // that of the report, and that of the update's end
			t.Errorf("reports %v", runs)
		}
		f.noDeadLetters()
	})
}

// A report of an instance that the publisher does not know is a dead letter there, if it is signed with a key for all
// instances.
func TestAReportOfAnInstanceThatIsNotRegistered(t *testing.T) {
	t.Parallel()
	h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{reportKeysSetting: `[{"id":"i","secret":"reports"}]`})
	testenv.Must(secrets.NewDevelopment(h.Tables).Add(t.Context(), "reports", whsec(key24("r")), nil))(t)
	r := signedEvent(t, release.EventHealth, `{"instanceId":"i9","status":"Healthy","sinceUtc":"1999-11-01T00:00:00Z"}`, "r", time.Now())
	r.URL.Path, r.RequestURI = "/api/reports", "/api/reports"
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	h.Deliver()
	if dead := h.DeadLetters(updatepublisher.Engine); rec.Code != http.StatusAccepted || len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, registry.ErrNotFound.Error()) {
		t.Errorf("%d %s, dead letters %+v", rec.Code, rec.Body, dead)
	}
}

// An entry point without keys is closed.
func TestEventIntakesThatAreClosed(t *testing.T) {
	t.Parallel()
	for in, path := range map[deployment]string{publisher: "/api/reports", managedApp: "/api/updates"} {
		h := handlertest.New(t, handler.App{Engines: engines}, map[string]string{contextSetting: string(in)})
		if status, answer := h.Do(http.MethodPost, path, "{}"); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}
