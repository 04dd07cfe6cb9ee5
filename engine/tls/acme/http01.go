package acme

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/tables"
)

// Properties of a row of tls.ChallengesTable.
const (
	propAnswer    = "KeyAuthorization"
	propDomain    = "Domain"
	propPresented = "PresentedAtUtc"
)

// challengeKeep is the retention of a challenge left by a dead process: longer than an authority waits for one.
const challengeKeep = 30 * 24 * time.Hour

// tokenSyntax is the syntax of a token (RFC 8555, section 8.1).
var tokenSyntax = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// HTTP01 answers http-01 challenges from a table, in the process that receives the authority's request. It is also
// the responder: an http.Handler for paths that end in the token. The authority requests the domain itself, on port
// 80, at /.well-known/acme-challenge/{token}; the server there forwards or redirects those requests.
type HTTP01 struct {
	// Tables holds tls.ChallengesTable. Required.
	Tables tables.Store
	// Now is the clock, time.Now when nil.
	Now func() time.Time
}

var (
	_ Solver       = HTTP01{}
	_ http.Handler = HTTP01{}
)

// Type implements Solver.
func (HTTP01) Type() string { return acme.ChallengeTypeHTTP01 }

// Present implements Solver.
func (h HTTP01) Present(ctx context.Context, c Challenge) error {
	if !tokenSyntax.MatchString(c.Token) {
		return fmt.Errorf("%w: its token is not one", tls.ErrRefused)
	}
	return h.Tables.Apply(ctx, tls.ChallengesTable, tables.Upsert(tables.Entity{Key: tokenKey(c.Token), Properties: map[string]any{
		propAnswer: c.KeyAuthorization, propDomain: c.Domain, propPresented: h.now().UTC()}}))
}

func (h HTTP01) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

// CleanUp implements Solver.
func (h HTTP01) CleanUp(ctx context.Context, c Challenge) error {
	return h.remove(ctx, tokenKey(c.Token), "")
}

// Tidy implements Solver.
func (h HTTP01) Tidy(ctx context.Context) error {
	for row, err := range tables.All(ctx, h.Tables, tls.ChallengesTable, tables.Query{Partition: acme.ChallengeTypeHTTP01, Select: []string{propPresented}}) {
		if err == nil && row.Time(propPresented).Before(h.now().Add(-challengeKeep)) {
			err = h.remove(ctx, row.Key, row.ETag)
		}
		if err != nil {
			return fmt.Errorf("clean up old challenges: %w", err)
		}
	}
	return nil
}

// remove deletes a challenge, unless it is gone or presented again.
func (h HTTP01) remove(ctx context.Context, key tables.Key, etag string) error {
	err := h.Tables.Apply(ctx, tls.ChallengesTable, tables.Delete(key, etag))
	if errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition) {
		return nil
	}
	return err
}

// Answer returns the answer for a token; false for an unknown one.
func (h HTTP01) Answer(ctx context.Context, token string) (string, bool, error) {
	if !tokenSyntax.MatchString(token) {
		return "", false, nil
	}
	row, err := h.Tables.Get(ctx, tls.ChallengesTable, tokenKey(token))
	if errors.Is(err, tables.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look up challenge: %w", err)
	}
	answer, ok := row.Properties[propAnswer].(string)
	return answer, ok, nil
}

// ServeHTTP implements http.Handler.
func (h HTTP01) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	answer, found, err := h.Answer(r.Context(), path.Base(r.URL.Path))
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	// A client that disconnects needs no answer.
	_, _ = w.Write([]byte(answer))
}

// tokenKey returns the key of a challenge.
func tokenKey(token string) tables.Key {
	return tables.Key{Partition: acme.ChallengeTypeHTTP01, Row: token}
}
