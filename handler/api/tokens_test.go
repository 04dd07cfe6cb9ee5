package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A token is accepted only for its own filter, and equals the output of sealToken.
func FuzzOpenToken(f *testing.F) {
	f.Add("", "f")
	f.Add(sealToken("place", "f"), "f")
	f.Add(sealToken("place", "g"), "f")
	f.Add("e30", "f")
	f.Fuzz(func(t *testing.T, token, fingerprint string) {
		place, err := openToken(token, fingerprint)
		if err == nil && sealToken(place, fingerprint) != token {
			t.Errorf("%q is taken for %q", token, place)
		}
		if sealed := sealToken(token, fingerprint); len(sealed) <= maxToken {
			if again, err := openToken(sealed, fingerprint); (err != nil || again != token) && !invalid(token, fingerprint) {
				t.Errorf("%q does not come back: %q, %v", token, again, err)
			}
		}
	})
}

// invalid reports whether JSON does not keep a text.
func invalid(texts ...string) bool {
	for _, text := range texts {
		for _, r := range text {
			if r == '\uFFFD' {
				return true
			}
		}
	}
	return false
}

// A token leads to its own place, in any form of the place, and for its own filter only.
func FuzzPairOfTokens(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		place, filter := s.Text(1000), fingerprintOf(s.Text(100), s.Time())
		token := sealToken(place, filter)
		if (token == "") != (place == "") {
			t.Fatalf("%q has the token %q", place, token)
		}
		got, err := openToken(token, filter)
		if len(token) > maxToken {
			return // no list has such places
		}
		if err != nil || got != place {
			t.Errorf("%q becomes %q, %v", place, got, err)
		}
		if _, err := openToken(token, filter+"x"); (err == nil) != (place == "") {
			t.Errorf("another filter takes %q: %v", place, err)
		}
	})
}

// The token after the longest ids is accepted by the same list: by id, by time, and for rounds.
func TestTokensOfTheLongestIDs(t *testing.T) {
	t.Parallel()
	for store, open := range map[string]func(*testing.T) stores{"memory": func(*testing.T) stores { return inMemory() }, "azurite": inAzurite} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			b := newOutboxBenchOver(t, open(t))
			prefixes := []string{strings.Repeat("<", 398), strings.Repeat("/", 168) + "aaaa"}
			for _, prefix := range prefixes {
				for i := range 3 {
					id := prefix + fmt.Sprintf("%02d", i)
					if rec := b.send(t, http.MethodPost, orchestrationsPath, fmt.Sprintf(`{"orchestrator":"holder","id":%q}`, id)); rec.Code != http.StatusAccepted {
						t.Fatalf("%d %.300s", rec.Code, rec.Body)
					}
				}
			}
			b.drive(t)
			testenv.OK(t, b.list.Flush(t.Context()))
			for query, want := range map[string]int{"idPrefix=" + url.QueryEscape(prefixes[0]): 3, "idPrefix=" + url.QueryEscape(prefixes[1]): 3, "status=Running": 6, "orchestrator=holder": 6} {
				testenv.Equal(t, fmt.Sprintf("%.30s", query), want, len(walk[any](t, b, orchestrationsPath+"?limit=1&"+query)))
			}
			if got := len(walk[any](t, b, orchestrationPath(prefixes[0]+"00")+"/rounds?limit=1")); got < 1 {
				t.Errorf("%d rounds", got)
			}
		})
	}
}

// A too long id is refused with the limit, in bytes and as a key.
func TestSizesOfIDs(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for _, tt := range []struct {
		limit int
		id    func(n int) string
	}{{maxOrchestrationID, func(n int) string { return strings.Repeat("i", n) }}, {maxEscapedID, func(n int) string { return strings.Repeat("/", 168) + strings.Repeat("i", n-504) }}} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			rec := b.send(t, http.MethodPost, orchestrationsPath, fmt.Sprintf(`{"orchestrator":"holder","id":%q}`, tt.id(n)))
			if n <= tt.limit && rec.Code != http.StatusAccepted || n > tt.limit && (rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), fmt.Sprint(tt.limit))) {
				t.Errorf("%d of %d: %d %.300s", n, tt.limit, rec.Code, rec.Body)
			}
		}
	}
}
