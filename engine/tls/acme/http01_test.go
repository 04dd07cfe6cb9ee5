package acme_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/tables"
)

// Leftovers of dead processes are deleted after a month; pending challenges stay.
func TestChallengesThatWereLeft(t *testing.T) {
	t.Parallel()
	store, now := tables.NewMemory(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := store.CreateTable(t.Context(), tls.ChallengesTable); err != nil {
		t.Fatal(err)
	}
	h := acme.HTTP01{Tables: store, Now: func() time.Time { return now }}
	present := func(token string) {
		t.Helper()
		if err := h.Present(t.Context(), acme.Challenge{Token: token, KeyAuthorization: token, Domain: "example.com"}); err != nil {
			t.Fatal(err)
		}
	}
	present("left")
	now = now.Add(20 * 24 * time.Hour)
	present("others")
	now = now.Add(10*24*time.Hour + time.Second)
	present("own")
	for range 2 {
		if err := errors.Join(h.CleanUp(t.Context(), acme.Challenge{Token: "own"}), h.Tidy(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	for _, token := range []string{"left", "others", "own"} {
		_, found, err := h.Answer(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		got[token] = found
	}
	if diff := cmp.Diff(map[string]bool{"left": false, "others": true, "own": false}, got); diff != "" {
		t.Errorf("answered (-want +got):\n%s", diff)
	}
}
