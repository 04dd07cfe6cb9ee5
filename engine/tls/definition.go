package tls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Queue is the engine's message queue (standard, section 2, "Engine Values").
const Queue = "tls-rotation-queue"

// Names of the activities that the history does not show.
const (
	activityCurrent = "current-certificate"
	activityTargets = "list-targets"
	activityRetire  = "retire-versions"
	activityPlan    = "plan-revocation"
	activityDisable = "disable-versions"
)

// maxRateWait bounds the total time that a run waits for the rate limit of an authority; runTimeout bounds the run.
const (
	maxRateWait = 24 * time.Hour
	runTimeout  = 36 * time.Hour
)

// Result is the result of a run.
type Result struct {
	Certificate Certificate `json:"certificate"`
	Renewed     bool        `json:"renewed"`
	// Note is the reason why it was not renewed.
	Note string `json:"note,omitempty"`
	// Targets is the number of targets that serve it: all of them.
	Targets int `json:"targets"`
	// Revoked are the revoked versions.
	Revoked []string `json:"revoked,omitempty"`
}

// activities are the steps with their options.
type activities struct {
	renew      *orchestrator.Activity[RenewInput, RenewOutput]
	distribute *orchestrator.Activity[DistributeInput, DistributeOutput]
	current    *orchestrator.Activity[RenewInput, RenewOutput]
	targets    *orchestrator.Activity[TargetsInput, []Target]
	retire     *orchestrator.Activity[RetireInput, RetireOutput]
	revoke     *orchestrator.Activity[RevokeInput, RevokeOutput]
	plan       *orchestrator.Activity[PlanInput, Plan]
	disable    *orchestrator.Activity[DisableInput, RetireOutput]
}

func newActivities(s *Steps) activities {
	retry := orchestrator.Retry{MaxAttempts: 3, FirstInterval: 2 * time.Second, MaxInterval: 30 * time.Second, Jitter: 0.5}
	brief := []orchestrator.CallOption{orchestrator.WithRetry(retry), orchestrator.WithTimeout(time.Minute)}
	issuing := retry
	issuing.Retryable = func(err error) bool { return !isA[*RateLimitedError](err) && !isA[*ValidationError](err) }
	// A target takes a while to fetch a new certificate.
	fetching := orchestrator.Retry{MaxAttempts: 6, FirstInterval: 5 * time.Second, MaxInterval: 5 * time.Minute, Jitter: 0.2}
	return activities{
		renew: orchestrator.NewActivity(OperationRenew, permanently(s.Renew), orchestrator.WithRetry(issuing), orchestrator.WithTimeout(5*time.Minute),
			orchestrator.WithError[*RateLimitedError](), orchestrator.WithError[*ValidationError]()),
		distribute: orchestrator.NewActivity(OperationDistribute, permanently(s.Distribute), orchestrator.WithRetry(fetching), orchestrator.WithTimeout(2*time.Minute)),
		current:    orchestrator.NewActivity(activityCurrent, permanently(s.Current), brief...),
		targets:    orchestrator.NewActivity(activityTargets, permanently(s.ListTargets), brief...),
		retire:     orchestrator.NewActivity(activityRetire, permanently(s.Retire), brief...),
		revoke:     orchestrator.NewActivity(OperationRevoke, permanently(s.Revoke), brief...),
		plan:       orchestrator.NewActivity(activityPlan, permanently(s.PlanRevocation), brief...),
		disable:    orchestrator.NewActivity(activityDisable, permanently(s.Disable), brief...),
	}
}

// Definition returns the engine over the steps. A message with the operation renew, or none, renews the certificate
// when it is due or forced, and makes every target serve it. The operation distribute only makes them serve the
// current one; revoke revokes versions of it. A renewal that is not due is a success whose output has a note.
func Definition(steps *Steps) engine.Definition {
	a := newActivities(steps)
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, a.run),
		Operations:   []orchestrator.AnyActivity{a.renew, a.distribute, a.revoke},
		Activities:   []orchestrator.AnyActivity{a.current, a.targets, a.retire, a.plan, a.disable},
		Tables:       []string{OrdersTable, ChallengesTable},
		Timeout:      runTimeout,
	}
}

func (a activities) run(ctx *orchestrator.Context, r engine.Request[Input]) (Result, error) {
	domains, err := r.Input.Names()
	if err == nil {
		err = r.Input.checkOperation(r.Operation)
	}
	if err != nil {
		return Result{}, orchestrator.Permanent(err)
	}
	if r.Operation == OperationRevoke {
		return a.revocation(ctx, r, domains[0])
	}
	made, err := a.certificate(ctx, r, domains)
	if err != nil {
		return Result{}, err
	}
	targets, err := a.targets.Call(ctx, TargetsInput{Domains: domains, Again: ctx.Execution() - 1}).Await()
	if err != nil {
		return Result{}, err
	}
	if err := a.spread(ctx, made.Certificate, targets); err != nil {
		return Result{}, err
	}
	result := Result{Certificate: made.Certificate, Renewed: made.Renewed, Note: made.Note, Targets: len(targets)}
	if len(targets) == 0 && ctx.Patched("nothing-is-retired-without-targets") {
		return result, a.tellNobody(ctx, made.Certificate)
	}
	_, err = a.retire.Call(ctx, RetireInput{Name: made.Certificate.Name, Version: made.Certificate.Version}).Await()
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

// certificate returns the certificate to distribute.
func (a activities) certificate(ctx *orchestrator.Context, r engine.Request[Input], domains []string) (RenewOutput, error) {
	in := RenewInput{Domains: domains, Force: r.Input.Force, KeyType: r.Input.KeyType, JobID: r.CorrelationID, Again: ctx.Execution() - 1}
	switch r.Operation {
	case "", OperationRenew:
		return a.renewPatiently(ctx, in)
	case OperationDistribute:
		return a.current.Call(ctx, in).Await()
	default:
		return RenewOutput{}, orchestrator.Permanent(fmt.Errorf("%w: unknown operation %.64q; the engine knows %s, %s and %s", ErrInput, r.Operation, OperationRenew, OperationDistribute, OperationRevoke))
	}
}

// renewPatiently renews, and waits for the authority's rate limit, within a bound.
func (a activities) renewPatiently(ctx *orchestrator.Context, in RenewInput) (RenewOutput, error) {
	giveUp := ctx.Now().Add(maxRateWait)
	for {
		out, err := a.renew.Call(ctx, in).Await()
		var limited *RateLimitedError
		if !errors.As(err, &limited) {
			return out, err
		}
		if limited.Until.After(giveUp) {
			return out, orchestrator.Permanent(fmt.Errorf("%w; retry the dead letter then", err))
		}
		if err := ctx.Sleep(max(limited.Until.Sub(ctx.Now()), time.Minute)); err != nil {
			return out, fmt.Errorf("wait for the rate limit of the authority: %w", err)
		}
	}
}

// tellNobody records in the history that no target was notified: the servers of the previous version are unknown.
func (a activities) tellNobody(ctx *orchestrator.Context, c Certificate) error {
	_, err := a.distribute.Call(ctx, DistributeInput{Certificate: c, Nobody: true}).Await()
	return err
}

// spread makes all targets serve the certificate, each with attempts of its own. The error names those that do not.
func (a activities) spread(ctx *orchestrator.Context, c Certificate, targets []Target) error {
	told := make([]*orchestrator.Future[DistributeOutput], len(targets))
	for i, target := range targets {
		told[i] = a.distribute.Call(ctx, DistributeInput{Target: target, Certificate: c})
	}
	var errs []error
	hopeless := true
	for i, future := range told {
		if _, err := future.Await(); err != nil {
			hopeless = hopeless && orchestrator.IsPermanent(err)
			errs = append(errs, fmt.Errorf("target %s: %w", targets[i].ID, err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %d targets do not serve certificate %s version %s: %w", len(errs), len(targets), c.Name, c.Version, errors.Join(errs...))
	if !hopeless {
		// A permanent failure of one target does not use up the attempts of the others.
		return errors.New(err.Error())
	}
	return err
}

// isA reports whether err is of a type.
func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// permanently marks the errors of a step that only an operator can fix. A missing role is not among them: a new
// assignment takes minutes to become effective, and the attempts of a message wait for it.
func permanently[In, Out any](step func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := step(ctx, in)
		for _, hopeless := range []error{ErrInput, ErrRefused, ErrTarget, ErrNoCertificate, secrets.ErrInvalid, secrets.ErrDeleted} {
			if errors.Is(err, hopeless) {
				return out, orchestrator.Permanent(err)
			}
		}
		return out, err
	}
}
