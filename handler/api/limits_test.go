package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// The token behind the longest ids that there can be is one that the same list takes: by id, by time, and for rounds.
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
			testenv.Check(t, b.list.Flush(t.Context()))
			for query, want := range map[string]int{"idPrefix=" + url.QueryEscape(prefixes[0]): 3, "idPrefix=" + url.QueryEscape(prefixes[1]): 3, "status=Running": 6, "orchestrator=holder": 6} {
				if got := b.walk(t, orchestrationsPath+"?limit=1&"+query); got != want {
					t.Errorf("%.30s: %d of %d", query, got, want)
				}
			}
			if got := b.walk(t, orchestrationPath(prefixes[0]+"00")+"/rounds?limit=1"); got < 1 {
				t.Errorf("%d rounds", got)
			}
		})
	}
}

// An id that is too long is refused as one, in bytes and as a key.
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

// walk counts what a list has, page by page.
func (b *outboxBench) walk(t *testing.T, target string) (items int) {
	t.Helper()
	for from := target; ; {
		rec := b.get(t, from)
		if rec.Code != http.StatusOK {
			t.Fatalf("%.60s: %d %.300s", target, rec.Code, rec.Body)
		}
		page := data[list[any]](t, rec)
		items += len(page.Items)
		if page.ContinuationToken == "" {
			return items
		}
		from = target + "&continuationToken=" + url.QueryEscape(page.ContinuationToken)
	}
}
