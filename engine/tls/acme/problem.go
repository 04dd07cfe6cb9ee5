package acme

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/durations"
)

// defaultLimit is the pause when the authority gives none.
const defaultLimit = time.Hour

// hopeless are the problems that a repeat cannot fix.
var hopeless = map[string]bool{
	acme.ProblemTypeBadCSR: true, acme.ProblemTypeBadRevocationReason: true, acme.ProblemTypeBadPublicKey: true, acme.ProblemTypeCAA: true,
	acme.ProblemTypeExternalAccountRequired: true, acme.ProblemTypeInvalidContact: true, acme.ProblemTypeRejectedIdentifier: true,
	acme.ProblemTypeUnsupportedContact: true, acme.ProblemTypeUnsupportedIdentifier: true, acme.ProblemTypeUserActionRequired: true,
}

// limit is the authority's Retry-After during one call. The client drops that header.
type limit struct {
	now func() time.Time

	mu    sync.Mutex
	until time.Time
}

type limitKey struct{}

// watchLimit makes limitWatch report the requests of a context.
func watchLimit(ctx context.Context, now func() time.Time) (context.Context, *limit) {
	l := &limit{now: now}
	return context.WithValue(ctx, limitKey{}, l), l
}

// limitWatch is a transport that records when a refused request may be repeated.
type limitWatch struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w limitWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	next := w.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if l, ok := r.Context().Value(limitKey{}).(*limit); ok {
		l.note(resp)
	}
	return resp, err
}

func (l *limit) note(resp *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if resp == nil || resp.StatusCode != http.StatusTooManyRequests {
		return
	}
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		l.until = l.now().Add(durations.Times(int64(seconds), time.Second))
	} else if at, err := http.ParseTime(text); err == nil {
		l.until = at
	}
}

// explain converts an error to one of package tls.
func (a *Authority) explain(l *limit, doing string, err error) error {
	if err == nil {
		return nil
	}
	if isProblem(err, acme.ProblemTypeAccountDoesNotExist) {
		a.forgetAccount()
	}
	var problem acme.Problem
	switch {
	case !errors.As(err, &problem):
	case problem.Type == acme.ProblemTypeRateLimited || problem.Status == http.StatusTooManyRequests:
		err = &tls.RateLimitedError{Until: l.comeBack(), Detail: problem.Detail}
	case hopeless[problem.Type]:
		err = fmt.Errorf("%w: %w", tls.ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// comeBack returns when to retry.
func (l *limit) comeBack() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() {
		return l.now().Add(defaultLimit).UTC()
	}
	return l.until.UTC()
}

// isFinal reports whether another read of the order cannot settle an error. A read settles it when another process
// has finalized the order meanwhile.
func isFinal(err error) bool {
	var limited *tls.RateLimitedError
	return errors.Is(err, tls.ErrRefused) || errors.As(err, &limited)
}

// isRefusal reports whether the authority answered with a client error.
func isRefusal(err error) bool {
	var problem acme.Problem
	return errors.As(err, &problem) && problem.Status >= 400 && problem.Status < 500
}

// isProblem reports whether the authority returned this problem.
func isProblem(err error, kind string) bool {
	var problem acme.Problem
	return errors.As(err, &problem) && problem.Type == kind
}

// detail returns the authority's message.
func detail(err error) string {
	var problem acme.Problem
	if errors.As(err, &problem) && problem.Detail != "" {
		return problem.Detail
	}
	return err.Error()
}
