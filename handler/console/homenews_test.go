package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

// A home page is another one when health or a poller is, and not when only their numbers and times are.
func TestHomeNews(t *testing.T) {
	t.Parallel()
	health := func(status, vault, delay string) document {
		return document{200, `{"status": "` + status + `", "releaseId": "1", "checks": {"vault:responseTime": [{"status": "` + vault + `", "observedValue": ` + delay + `, "time": "` + delay + `"}], "schedules:delay": [{"status": "pass", "observedValue": ` + delay + `}]}}`}
	}
	pollers := func(condition, place, heldBack string) map[string]any {
		return list(map[string]any{"name": "orders", "condition": condition, "place": place, "seenAtUtc": place, "process": map[string]any{"heldBack": heldBack}})
	}
	before := quietApp().with(answers{"/api/health/full": health("pass", "pass", "3"), "/api/pollers": pollers("running", "2026-11-26T13:00:00Z", "")})
	for name, test := range map[string]struct {
		change answers
		news   bool
	}{
		"nothing":                     {answers{}, false},
		"a number of a check":         {answers{"/api/health/full": health("pass", "pass", "4")}, false},
		"a check":                     {answers{"/api/health/full": health("pass", "fail", "3")}, true},
		"the whole":                   {answers{"/api/health/full": health("fail", "pass", "3")}, true},
		"a schedule is missed":        {answers{"/api/health/full": health("pass", "pass", "4000")}, true},
		"no answer of health":         {answers{"/api/health/full": refusal{500, "InternalError", "oh"}}, true},
		"the place of a poller":       {answers{"/api/pollers": pollers("idle", "2026-11-26T13:30:00Z", "")}, false},
		"a poller fails":              {answers{"/api/pollers": pollers("failing", "2026-11-26T13:00:00Z", "")}, true},
		"a poller is held back":       {answers{"/api/pollers": pollers("running", "2026-11-26T13:00:00Z", "a transaction is open")}, true},
		"no answer of pollers":        {answers{"/api/pollers": refusal{503, "ServiceUnavailable", "oh"}}, true},
		"there are dead letters, too": {answers{"/api/dlq/groups": refusal{503, "ServiceUnavailable", "oh"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &calls{answers: before}
			c := newConsole(t, a, access.Control{EasyAuth: true})
			tag := get(t, c, Root).Header().Get("ETag")
			a.answers = before.with(test.change)
			rec := get(t, c, Root, asksWith(tag, "no-cache"))
			if news := rec.Code == http.StatusOK; !strings.HasPrefix(tag, `W/"`) || news != test.news {
				t.Errorf("%d, want news: %v", rec.Code, test.news)
			}
		})
	}
}
