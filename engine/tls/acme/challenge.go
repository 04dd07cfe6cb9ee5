package acme

import (
	"context"
	"fmt"
	"slices"

	"github.com/mholt/acmez/v3/acme"

	"github.com/vibedata/roundhouse/engine/tls"
)

// Challenge proves control of a domain.
type Challenge struct {
	// Domain is the domain, without the "*." of a wildcard.
	Domain string
	// Token and KeyAuthorization are for http-01: GET http://{Domain}/.well-known/acme-challenge/{Token} has to answer
	// KeyAuthorization (RFC 8555, section 8.3).
	Token, KeyAuthorization string
	// RecordName and RecordValue are the TXT record for dns-01 (RFC 8555, section 8.4). A domain and its wildcard have
	// records of the same name.
	RecordName, RecordValue string
}

// Solver answers one type of challenge.
type Solver interface {
	// Type is "http-01" or "dns-01".
	Type() string
	// Present returns when the authority can see the answer from everywhere. It may be repeated.
	Present(ctx context.Context, c Challenge) error
	// CleanUp removes the answer, which may be missing.
	CleanUp(ctx context.Context, c Challenge) error
	// Tidy removes answers left by dead processes.
	Tidy(ctx context.Context) error
}

// authorize proves control of the domains of an order.
func (a *Authority) authorize(ctx context.Context, account acme.Account, order acme.Order) error {
	for _, address := range order.Authorizations {
		authorization, err := a.client.GetAuthorization(ctx, account, address)
		if err != nil {
			return err
		}
		switch authorization.Status {
		case acme.StatusValid:
		case acme.StatusPending:
			err = a.solve(ctx, account, authorization)
		default:
			err = fmt.Errorf("%w: the authorization of %s is %s", tls.ErrOrderGone, authorization.IdentifierValue(), authorization.Status)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// solve answers one challenge and waits for its verdict.
func (a *Authority) solve(ctx context.Context, account acme.Account, authorization acme.Authorization) error {
	domain := authorization.IdentifierValue()
	solver, offered := a.pick(authorization)
	if solver == nil {
		return fmt.Errorf("%w: it wants another challenge for %s than this deployment can answer; a wildcard takes dns-01", tls.ErrRefused, domain)
	}
	challenge := Challenge{Domain: authorization.Identifier.Value, Token: offered.Token, KeyAuthorization: offered.KeyAuthorization,
		RecordName: offered.DNS01TXTRecordName(), RecordValue: offered.DNS01KeyAuthorization()}
	if err := solver.Present(ctx, challenge); err != nil {
		return fmt.Errorf("present the %s challenge of %s: %w", solver.Type(), domain, err)
	}
	defer a.cleanUp(ctx, solver, challenge)
	// A process that died may have accepted the challenge already.
	if offered.Status == acme.StatusPending {
		_, err := a.client.InitiateChallenge(ctx, account, offered)
		if err != nil && (!isRefusal(err) || isProblem(err, acme.ProblemTypeRateLimited)) {
			return err
		}
		// If another process has accepted it, the call fails; the verdict decides.
	}
	verdict, err := a.client.PollAuthorization(ctx, account, authorization)
	if err != nil && verdict.Status == acme.StatusInvalid {
		return &tls.ValidationError{Domain: domain, Detail: detail(err)}
	}
	return err
}

// pick finds a solver for a challenge that the authority offers.
func (a *Authority) pick(authorization acme.Authorization) (Solver, acme.Challenge) {
	for _, solver := range a.config.Solvers {
		at := slices.IndexFunc(authorization.Challenges, func(c acme.Challenge) bool { return c.Type == solver.Type() })
		if at >= 0 {
			return solver, authorization.Challenges[at]
		}
	}
	return nil, acme.Challenge{}
}

// Tidy implements tls.Authority.
func (a *Authority) Tidy(ctx context.Context) {
	for _, solver := range a.config.Solvers {
		if err := solver.Tidy(ctx); err != nil {
			a.config.Log.WarnContext(ctx, "answers to challenges that were left behind are still there: the next run tries again", "type", solver.Type(), "error", err)
		}
	}
}

// cleanUp removes an answer, even after a timeout.
func (a *Authority) cleanUp(ctx context.Context, solver Solver, challenge Challenge) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	if err := solver.CleanUp(ctx, challenge); err != nil {
		// A leftover answer is useless, and Tidy removes it later.
		a.config.Log.WarnContext(ctx, "an answer to a challenge was left behind", "domain", challenge.Domain, "type", solver.Type(), "error", err)
	}
}
