package tls

import (
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// revocation revokes versions of a certificate. Unless the message is urgent, another certificate is issued first and
// all targets serve it; if that fails, nothing is revoked. Revoked versions are disabled in the store.
func (a activities) revocation(ctx *orchestrator.Context, r engine.Request[Input], domain string) (Result, error) {
	plan, err := a.plan.Call(ctx, PlanInput{Domain: domain, Revocation: r.Input.Revocation, JobID: r.CorrelationID}).Await()
	if err != nil {
		return Result{}, err
	}
	var result Result
	replace := func() error {
		var err error
		result, err = a.replace(ctx, r, plan)
		return err
	}
	steps := []func() error{replace, func() error { return a.revokeAll(ctx, plan, r.Input.Reason) }}
	switch {
	case r.Input.Immediately:
		steps[0], steps[1] = steps[1], steps[0]
	case r.Input.Reason == CessationOfOperation:
		steps[0] = func() error { return a.nobodyServes(ctx, r, domain) }
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return Result{}, err
		}
	}
	if _, err := a.disable.Call(ctx, DisableInput{Name: plan.Name, Versions: plan.Versions}).Await(); err != nil {
		return Result{}, err
	}
	result.Revoked = plan.Versions
	return result, nil
}

// replace makes all targets serve a certificate that is not to be revoked. A certificate that was already disabled is
// not replaced.
func (a activities) replace(ctx *orchestrator.Context, r engine.Request[Input], plan Plan) (Result, error) {
	if len(plan.Domains) == 0 {
		return Result{}, nil
	}
	made, err := a.renewPatiently(ctx, RenewInput{Domains: plan.Domains, Avoid: plan.Versions, JobID: r.CorrelationID, Again: ctx.Execution() - 1})
	if err != nil {
		return Result{}, fmt.Errorf("get a certificate in the place of what is to be revoked: %w", err)
	}
	targets, err := a.targets.Call(ctx, TargetsInput{Domains: plan.Domains, Again: ctx.Execution() - 1}).Await()
	if err == nil {
		err = a.spread(ctx, made.Certificate, targets)
	}
	if err == nil && len(targets) == 0 {
		err = a.tellNobody(ctx, made.Certificate)
	}
	return Result{Certificate: made.Certificate, Renewed: made.Renewed, Note: made.Note, Targets: len(targets)}, err
}

// nobodyServes makes sure that no target serves a certificate without a successor.
func (a activities) nobodyServes(ctx *orchestrator.Context, r engine.Request[Input], domain string) error {
	targets, err := a.targets.Call(ctx, TargetsInput{Domains: []string{domain}, Again: ctx.Execution() - 1}).Await()
	if err != nil {
		return err
	}
	if len(targets) > 0 {
		return orchestrator.Permanent(fmt.Errorf("%w: %d targets serve the certificate, and with the reason %s it is not replaced: take it off the targets and the schedule first", ErrInput, len(targets), r.Input.Reason))
	}
	return nil
}

// revokeAll revokes the versions of a plan, all in parallel.
func (a activities) revokeAll(ctx *orchestrator.Context, plan Plan, reason Reason) error {
	var revoked []*orchestrator.Future[RevokeOutput]
	for _, version := range plan.Versions {
		revoked = append(revoked, a.revoke.Call(ctx, RevokeInput{Name: plan.Name, Version: version, Reason: reason}))
	}
	_, err := orchestrator.All(revoked...)
	return err
}
