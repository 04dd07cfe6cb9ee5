package api

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The list has what expires within the days that are asked for, the first first, and what has expired; no more of a page than asked for.
func TestListCredentials(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	lost := false
	b := newOutboxBenchWith(t, inMemory(), func(c *Config) {
		c.Credentials = func(context.Context) (map[string][]engine.Credential, error) {
			if lost {
				return nil, errors.New("no line")
			}
			return map[string][]engine.Credential{
				"tls": {{Name: "soon", ExpiresAt: now.AddDate(0, 0, 13)}, {Name: "later", ExpiresAt: now.AddDate(0, 0, 15)}, {Name: "never"}},
				"spn": {{Name: "over", ExpiresAt: now}},
			}, nil
		}
	})
	over, soon, later := credentialItem{"spn", "over", now, true}, credentialItem{"tls", "soon", now.AddDate(0, 0, 13), false}, credentialItem{"tls", "later", now.AddDate(0, 0, 15), false}
	for query, want := range map[string][]credentialItem{"": {over, soon}, "?withinDays=13": {over}, "?withinDays=16": {over, soon, later}, "?limit=1": {over}} {
		got := data[list[credentialItem]](t, b.get(t, "/api/credentials"+query))
		testenv.Diff(t, want, got.Items, "%s", query)
		if query == "?limit=1" {
			rest := data[list[credentialItem]](t, b.get(t, "/api/credentials?limit=1&continuationToken="+got.ContinuationToken))
			if diff := cmp.Diff([]credentialItem{soon}, rest.Items); diff != "" || rest.ContinuationToken != "" {
				t.Errorf("the next page (-want +got):\n%s", diff)
			}
		}
	}
	for _, query := range []string{"?withinDays=0", "?withinDays=4000", "?engine=tls", "?continuationToken=x"} {
		if rec := b.get(t, "/api/credentials"+query); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", query, rec.Code)
		}
	}
	if rec := b.get(t, "/api/credentials", "X-MS-CLIENT-PRINCIPAL", caller("Red", "red", "keeper")); rec.Code != http.StatusForbidden {
		t.Errorf("a caller of a tenant: %d", rec.Code)
	}
	lost = true
	if rec := b.get(t, "/api/credentials"); rec.Code != http.StatusInternalServerError {
		t.Errorf("without an answer: %d", rec.Code)
	}
}
