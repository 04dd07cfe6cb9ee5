package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/outbox"
)

// The leader shows what waits for consumers, of each engine that rotates, whatever else storage does not tell.
func TestCredentialsThatWait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leads       bool
		err, outbox error
		want, fails bool
	}{
		"the leader":     {leads: true, want: true},
		"another":        {},
		"no answer":      {leads: true, err: errors.New("no line"), fails: true},
		"without outbox": {leads: true, outbox: errors.New("no line"), want: true, fails: true},
	} {
		m := New()
		m.Collect(lease(test.leads))
		m.Events(fixed(outbox.Snapshot{}, test.outbox))
		m.Waiting(func(context.Context) (map[string]int, error) { return map[string]int{"spn": 3, "gone": 1}, test.err }, []string{"hmac", "spn"})
		page, err := m.Scrape(t.Context(), nil)
		text := string(page.Body)
		got := strings.Contains(text, `roundhouse_credentials_waiting{engine="hmac"} 0`) && strings.Contains(text, `roundhouse_credentials_waiting{engine="spn"} 3`)
		if got != test.want || (err != nil) != test.fails || strings.Contains(text, "gone") {
			t.Errorf("%s: shown %v, %v", name, got, err)
		}
	}
}
