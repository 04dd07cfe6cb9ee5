package console

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

var copied = regexp.MustCompile(`data-copy="the (id|command|curl command)">([^<]*)<`)

// copies are what a page offers for copying.
func copies(page string) map[string]string {
	out := map[string]string{}
	for _, m := range copied.FindAllStringSubmatch(page, -1) {
		out[m[1]] = html.UnescapeString(m[2])
	}
	return out
}

// What a page offers for copying asks for what the page shows, at the host that the browser has asked, and never with a key.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const key = `curl -H "x-functions-key: $ROUNDHOUSE_KEY" `
	from := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, test := range map[string]struct {
		control access.Control
		target  string
		change  func(*http.Request)
		want    map[string]string
	}{
		"a list": {access.Control{EasyAuth: true}, lettersPath + "?engine=hmac&instanceId=it%27s&fromDate=2026-11-26T13%3A00%3A00%2B01%3A00", from("X-Forwarded-Host", "app.example"), map[string]string{
			"command":      `roundhouse dlq list --engine=hmac --status=Pending '--instance=it'\''s' --from=2026-11-26T13:00:00+01:00`,
			"curl command": key + `'https://app.example/api/machine/dlq?engine=hmac&fromDate=2026-11-26T13%3A00%3A00%2B01%3A00&instanceId=it%27s&status=Pending'`}},
		"one thing": {access.Control{EasyAuth: true}, letterM1, from("X-Forwarded-Host", "app.example"), map[string]string{
			"id": "hmac/m1-20261126T120000.000000Z", "command": "roundhouse dlq show hmac m1-20261126T120000.000000Z", "curl command": key + "https://app.example/api/machine/dlq/hmac/m1-20261126T120000.000000Z"}},
		"on a developer's machine": {access.Control{Development: true, LocalKey: key}, orchestrationsPath, from("x-functions-key", key), map[string]string{
			"command": "roundhouse orchestration list", "curl command": key + "http://localhost/api/machine/orchestrations"}},
		"what cannot be seen": {access.Control{EasyAuth: true}, lettersPath + "?instanceId=%E2%80%AEabc", from("X-Forwarded-Host", "app.example"), map[string]string{
			"curl command": key + `'https://app.example/api/machine/dlq?instanceId=%E2%80%AEabc&status=Pending'`}},
		"a host that is none": {access.Control{EasyAuth: true}, orchestrationsPath, from("X-Forwarded-Host", "a$(id).example"), map[string]string{"command": "roundhouse orchestration list"}},
		"a form":              {access.Control{EasyAuth: true}, letterM1 + "/retry", from("X-Forwarded-Host", "app.example"), map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := get(t, newConsole(t, typical(), test.control), test.target, test.change)
			got := copies(rec.Body.String())
			for what, text := range test.want {
				if got[what] != text {
					t.Errorf("%s: %s, want %s", what, got[what], text)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("there are %v", got)
			}
		})
	}
}

// An id that cannot be shown as it is cannot be copied, nor can a command with it.
func TestElsewhereOfHiddenIDs(t *testing.T) {
	t.Parallel()
	l := letterData(map[string]any{"rowKey": "a\u202eb"})
	rec := get(t, newConsole(t, typical().with(answers{"/api/dlq/hmac/a\u202eb": l}), access.Control{EasyAuth: true}), letterLink("hmac", "a\u202eb"))
	got := copies(rec.Body.String())
	if rec.Code != http.StatusOK || len(got) != 1 || !strings.Contains(got["curl command"], "/hmac/a%E2%80%AEb") {
		t.Errorf("%d: %q", rec.Code, got)
	}
	for _, test := range []struct {
		ids  []string
		want Text
	}{
		{[]string{"acme", "-1"}, "roundhouse outbox show -- acme -1"},
		{[]string{"a b", "c"}, "roundhouse outbox show 'a b' c"},
		{[]string{"a\nb", "c"}, ""},
	} {
		if got := showLine("outbox show", test.ids...); got != test.want {
			t.Errorf("%q: %s, want %s", test.ids, got, test.want)
		}
	}
}
