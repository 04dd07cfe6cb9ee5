package tls_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/services/certificates"
)

// script is the behavior of the world in a run of the orchestrator: the activities' results, by their inputs and the
// number of the attempt.
type script struct {
	operation string
	input     tls.Input
	targets   int
	// renew and distribute replace the steps; nil succeeds.
	renew      func(ctx context.Context, in tls.RenewInput) (tls.RenewOutput, error)
	distribute func(ctx context.Context, in tls.DistributeInput) error
	// versions are those to revoke; a replaceable certificate exists unless noneIsEnabled.
	versions      []string
	noneIsEnabled bool
}

var (
	certificate = tls.Certificate{Name: "tls-x", Version: strings.Repeat("0a", 16), Fingerprint: strings.Repeat("1b", 32), Serial: "2c", Domains: []string{domain}}
	renewed     = tls.RenewOutput{Certificate: certificate, Renewed: true}
)

func (s script) scenario(t *testing.T) orchestratortest.Scenario[engine.Message, tls.Result] {
	t.Helper()
	d := tls.Definition(&tls.Steps{})
	in, err := json.Marshal(s.input)
	if err != nil {
		t.Fatal(err)
	}
	if s.renew == nil {
		s.renew = func(context.Context, tls.RenewInput) (tls.RenewOutput, error) { return renewed, nil }
	}
	all := append(slices.Clone(d.Operations), d.Activities...)
	return orchestratortest.Scenario[engine.Message, tls.Result]{
		Orchestrator: d.Orchestrator,
		Input:        engine.Message{CorrelationID: "c1", Operation: s.operation, InstanceID: engine.PublisherInstance, Input: in},
		Activities: []orchestrator.AnyActivity{
			fake(t, all, "renew", s.renew),
			fake(t, all, "distribute", func(ctx context.Context, in tls.DistributeInput) (tls.DistributeOutput, error) {
				if s.distribute != nil {
					if err := s.distribute(ctx, in); err != nil {
						return tls.DistributeOutput{}, err
					}
				}
				return tls.DistributeOutput{TargetID: in.Target.ID, Fingerprint: in.Certificate.Fingerprint}, nil
			}),
			fake(t, all, "current-certificate", func(context.Context, tls.RenewInput) (tls.RenewOutput, error) {
				return tls.RenewOutput{Certificate: certificate}, nil
			}),
			fake(t, all, "list-targets", func(context.Context, tls.TargetsInput) ([]tls.Target, error) {
				targets := make([]tls.Target, s.targets)
				for i := range targets {
					targets[i] = tls.Target{ID: fmt.Sprintf("i%d", i)}
				}
				return targets, nil
			}),
			fake(t, all, "plan-revocation", func(_ context.Context, in tls.PlanInput) (tls.Plan, error) {
				plan := tls.Plan{Name: certificate.Name, Versions: s.versions, Domains: []string{in.Domain, "example.com"}}
				if s.noneIsEnabled {
					plan.Domains = nil
				}
				return plan, nil
			}),
			fake(t, all, "revoke", func(_ context.Context, in tls.RevokeInput) (tls.RevokeOutput, error) {
				return tls.RevokeOutput{Version: in.Version, Reason: in.Reason}, nil
			}),
			fake(t, all, "disable-versions", func(_ context.Context, in tls.DisableInput) (tls.RetireOutput, error) {
				return tls.RetireOutput{Disabled: in.Versions}, nil
			}),
			fake(t, all, "retire-versions", func(context.Context, tls.RetireInput) (tls.RetireOutput, error) { return tls.RetireOutput{}, nil }),
		},
	}
}

// fake replaces the activity of a name.
func fake[In, Out any](t *testing.T, all []orchestrator.AnyActivity, name string, fn func(context.Context, In) (Out, error)) orchestrator.AnyActivity {
	t.Helper()
	at := slices.IndexFunc(all, func(a orchestrator.AnyActivity) bool { return a.Name() == name })
	if at < 0 {
		t.Fatalf("there is no activity %s", name)
	}
	activity, ok := all[at].(*orchestrator.Activity[In, Out])
	if !ok {
		t.Fatalf("%s has another type", name)
	}
	return orchestratortest.Fake(activity, fn)
}

func names(calls []orchestrator.Call) string {
	var all []string
	for _, c := range calls {
		if c.Kind == orchestrator.ActivityCall {
			all = append(all, c.Name)
		}
	}
	return strings.Join(all, " ")
}

func TestRun(t *testing.T) {
	t.Parallel()
	notDue := tls.RenewOutput{Certificate: certificate, Note: "not due before tomorrow"}
	cases := []struct {
		what   string
		script script
		want   tls.Result
		calls  string
	}{
		{"renewed", script{input: tls.Input{Domain: domain}, targets: 2}, tls.Result{Certificate: certificate, Renewed: true, Targets: 2},
			"renew list-targets distribute distribute retire-versions"},
		{"not due", script{operation: "renew", input: tls.Input{Domain: domain}, targets: 1,
			renew: func(context.Context, tls.RenewInput) (tls.RenewOutput, error) { return notDue, nil }},
			tls.Result{Certificate: certificate, Note: notDue.Note, Targets: 1}, "renew list-targets distribute retire-versions"},
		{"distribute only", script{operation: "distribute", input: tls.Input{Domains: []string{domain}}, targets: 1},
			tls.Result{Certificate: certificate, Targets: 1}, "current-certificate list-targets distribute retire-versions"},
		{"nobody to tell, and so nothing is retired", script{input: tls.Input{Domain: domain, Force: true}}, tls.Result{Certificate: certificate, Renewed: true},
			"renew list-targets distribute"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			got := orchestratortest.Run(t, c.script.scenario(t))
			if diff := cmp.Diff(c.want, got.Output); got.Err != nil || diff != "" || names(got.Calls) != c.calls {
				t.Errorf("%v\n(-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestRunRefusesInput(t *testing.T) {
	t.Parallel()
	for what, s := range map[string]script{
		"no domain":             {},
		"unknown operation":     {operation: "reissue", input: tls.Input{Domain: domain}},
		"forced distribute":     {operation: "distribute", input: tls.Input{Domain: domain, Force: true}},
		"a key type that is no": {input: tls.Input{Domain: domain, KeyType: "RSA-1024"}},
		"distribute a key type": {operation: "distribute", input: tls.Input{Domain: domain, KeyType: certificates.RSA2048}},
	} {
		got := orchestratortest.Run(t, s.scenario(t))
		if !orchestrator.IsPermanent(got.Err) || len(got.Calls) != 0 {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// A run waits for a rate limit without using up attempts, unless it is too far away.
func TestRunWaitsForTheRateLimit(t *testing.T) {
	t.Parallel()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	limited := func(until time.Duration) script {
		return script{input: tls.Input{Domain: domain}, renew: func(context.Context, tls.RenewInput) (tls.RenewOutput, error) {
			if at := start.Add(until); time.Now().Before(at) {
				return tls.RenewOutput{}, fmt.Errorf("order: %w", &tls.RateLimitedError{Until: at, Detail: "too many"})
			}
			return renewed, nil
		}}
	}
	got := orchestratortest.Run(t, limited(3*time.Hour).scenario(t))
	if got.Err != nil || got.Elapsed < 3*time.Hour || got.Elapsed > 3*time.Hour+time.Minute || len(got.Called("renew")) != 2 || got.Called("renew")[0].Attempts != 1 {
		t.Errorf("3 hours: %v", got)
	}
	got = orchestratortest.Run(t, limited(25*time.Hour).scenario(t))
	if !orchestrator.IsPermanent(got.Err) || !strings.Contains(got.Err.Error(), "2000-01-02T01:00:00Z") || got.Elapsed > time.Minute {
		t.Errorf("25 hours: %v", got)
	}
}

// A domain that cannot be validated is not retried immediately: that counts against a rate limit.
func TestRunDoesNotInsistOnValidation(t *testing.T) {
	t.Parallel()
	got := orchestratortest.Run(t, script{input: tls.Input{Domain: domain}, renew: func(context.Context, tls.RenewInput) (tls.RenewOutput, error) {
		return tls.RenewOutput{}, &tls.ValidationError{Domain: domain, Detail: "no answer"}
	}}.scenario(t))
	if got.Err == nil || orchestrator.IsPermanent(got.Err) || got.Called("renew")[0].Attempts != 1 {
		t.Errorf("%v", got)
	}
}

// Each target has attempts of its own; the error names the failed ones, and is permanent only if all are.
func TestRunDistributesPartially(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context, in tls.DistributeInput) error {
		if in.Target.ID == "i1" && orchestrator.Info(ctx).Attempt < 4 {
			return errors.New("it does not serve it yet")
		}
		return nil
	}
	got := orchestratortest.Run(t, script{input: tls.Input{Domain: domain}, targets: 3, distribute: slow}.scenario(t))
	var attempts []int
	for _, c := range got.Called("distribute") {
		attempts = append(attempts, c.Attempts)
	}
	if got.Err != nil || !slices.Equal(attempts, []int{1, 4, 1}) {
		t.Errorf("%v: attempts %v", got, attempts)
	}
	failing := func(permanent ...string) func(context.Context, tls.DistributeInput) error {
		return func(_ context.Context, in tls.DistributeInput) error {
			switch {
			case slices.Contains(permanent, in.Target.ID):
				return orchestrator.Permanent(errors.New("refused"))
			case in.Target.ID == "i0":
				return nil
			default:
				return errors.New("out of reach")
			}
		}
	}
	for _, c := range []struct {
		permanent []string
		want      bool
	}{{nil, false}, {[]string{"i1"}, false}, {[]string{"i1", "i2"}, true}} {
		got := orchestratortest.Run(t, script{input: tls.Input{Domain: domain}, targets: 3, distribute: failing(c.permanent...)}.scenario(t))
		if got.Err == nil || orchestrator.IsPermanent(got.Err) != c.want || !strings.Contains(got.Err.Error(), "2 of 3 targets") ||
			!strings.Contains(got.Err.Error(), "target i1") || !strings.Contains(got.Err.Error(), "target i2") || strings.Contains(got.Err.Error(), "target i0") {
			t.Errorf("%v: %v", c.permanent, got)
		}
		if len(got.Called("retire-versions")) != 0 {
			t.Error("versions were retired that targets still serve")
		}
	}
}

// The engine decides as when the golden history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden.json", script{input: tls.Input{Domain: domain}, targets: 2}.scenario(t))
}

// A run without targets from a version that disabled versions anyway continues as it began.
func TestGoldenWithoutTargets(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden-nobody.json", script{input: tls.Input{Domain: domain}}.scenario(t))
}

// With any crash in the runtime, the run ends the same.
func TestRunCrashesEverywhere(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(t *testing.T) orchestratortest.Scenario[engine.Message, tls.Result] {
		return script{input: tls.Input{Domain: domain}, targets: 2, distribute: func(ctx context.Context, in tls.DistributeInput) error {
			if in.Target.ID == "i1" && orchestrator.Info(ctx).Attempt < 2 {
				return errors.New("it does not serve it yet")
			}
			return nil
		}}.scenario(t)
	})
}
