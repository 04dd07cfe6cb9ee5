package realhost

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// TestIDs follows the Location of each start to its orchestration, on both hosts, for ids of all kinds: also for those
// that the proxy of the real host changes.
func TestIDs(t *testing.T) {
	testenv.RealHost(t)
	fresh := func() app {
		a := app{dist: stage(t), account: storage(t), key: newKey(), id: "ids"}
		reschedule(t, a.dist, "*-timer", newYear)
		return a
	}
	onReal, onLocal := fresh(), fresh()
	for name, host := range map[string]struct{ url, key string }{
		"real host": {startReal(t, onReal).url, onReal.key}, "local host": {startLocal(t, onLocal), onLocal.key},
	} {
		for _, id := range []string{"a/b", "/subscriptions/x/y", "a%2Fb", "a%252Fb", "%", "a+b", "a?b#c", `a\b`, "[|]^", "a%2Eb", ".", "..", "x;y=z,:@&"} {
			t.Run(name+": "+id, func(t *testing.T) {
				id := "hmac-" + id
				address := strings.TrimPrefix(host.url, "http://")
				got, err := send(address, start(id, host.key))
				if err != nil || got.status != http.StatusAccepted {
					t.Fatalf("start: status %d, %v: %s", got.status, err, got.body)
				}
				location, err := url.Parse(got.header.Get("Location"))
				if err != nil || location.Path == "" {
					t.Fatalf("Location %q: %v", got.header.Get("Location"), err)
				}
				for _, path := range []string{location.EscapedPath(), "/api/orchestrations/" + urlpath.Escape(id)} {
					if read := idAt(t, address, path, host.key); read != id {
						t.Errorf("%s leads to %q, want %q", path, read, id)
					}
				}
			})
		}
	}
}

// idAt returns the id of the orchestration at a path.
func idAt(t *testing.T, address, path, key string) string {
	t.Helper()
	got, err := send(address, read(path, key))
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", path, got.status, err, got.body)
	}
	var document struct{ Data struct{ ID string } }
	testenv.OK(t, json.Unmarshal(got.body, &document))
	return document.Data.ID
}
