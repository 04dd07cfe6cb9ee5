package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

// The page that asks about what was selected says what it is, whatever the names are; and a list has everything selected where its
// address says so.
func TestGoldenSelected(t *testing.T) {
	t.Parallel()
	some := []string{selected{"hmac", "m1-20261126T120000.000000Z"}.Value(), selected{"tls", "m/2%2F"}.Value(), selected{"tls", "m/2%2F"}.Value()}
	many := make([]string, 0, maxSelected)
	for n := range maxSelected {
		many = append(many, selected{"hmac", Text(strings.Repeat("m", n+1))}.Value())
	}
	for name, test := range map[string]struct {
		api    answers
		action string
		rows   []string
		status int
	}{
		"selected_empty":   {typical(), "retry", nil, 400},
		"selected_typical": {typical(), "retry", some, 200},
		"selected_expire":  {typical(), "expire", some[:1], 200},
		"selected_many":    {typical(), "retry", many, 200},
		"selected_reader":  {typical().with(answers{"/api/me": reader()}), "retry", some, 200},
		"selected_hostile": {hostile(), "retry", []string{selected{evil, turning}.Value(), selected{"hm/../ac", evil + "%2F.."}.Value()}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := send(t, newConsole(t, test.api, access.Control{EasyAuth: true}), selectedPath, url.Values{"action": {test.action}, "row": test.rows, "filter": {"engine=hmac&status=Pending"}})
			if rec.Code != test.status {
				t.Errorf("status %d, want %d", rec.Code, test.status)
			}
			compare(t, name, rec.Body.Bytes())
			harmless(t, rec.Body.String())
		})
	}
	rec := get(t, newConsole(t, typical(), access.Control{EasyAuth: true}), lettersPath+"?engine=hmac&select=page&continuationToken=x")
	compare(t, "letters_selected", rec.Body.Bytes())
}
