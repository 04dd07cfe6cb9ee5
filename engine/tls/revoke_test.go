package tls_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// revoked returns whether the authority has revoked each of the versions.
func (w *world) revoked(t *testing.T, versions ...string) []bool {
	t.Helper()
	var all []bool
	for _, version := range versions {
		pair, err := w.vault.KeyPair(tls.CertificateName([]string{domain}), version)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w.ca.Revoked(t, pair.Certificate[0]))
	}
	return all
}

// served returns the last version of a target's notices.
func (w *world) served(i int) string {
	told := w.targets[i].Told()
	version, _ := told[len(told)-1]["version"].(string)
	return version
}

// issued returns a world with a certificate of two names, which its targets serve, and the certificate's version.
func issued(t *testing.T, targets int) (*world, string) {
	t.Helper()
	w := newWorld(t, pebble.Options{}, targets)
	at := time.Now()
	w.vault.Now = func() time.Time { at = at.Add(time.Second); return at }
	w.handle(t, w.pipeline(t), "c1", message("c1", `{"domains":["www.example.com","example.com"]}`))
	versions := w.versions(t)
	if len(versions) != 1 {
		t.Fatalf("%d versions", len(versions))
	}
	return w, versions[0].Version
}

func revocation(correlationID, input string) string {
	return strings.Replace(message(correlationID, input), `"engine"`, `"operation":"revoke","engine"`, 1)
}

// A version to revoke is replaced first, under all of its names; targets serve the new one, the old one is revoked
// and disabled, and the history shows each step.
func TestRevoke(t *testing.T) {
	t.Parallel()
	w, old := issued(t, 2)
	entries := w.handle(t, w.pipeline(t), "c2", revocation("c2", `{"domain":"www.example.com","all":true,"reason":"keyCompromise"}`))
	if got := rows(entries); got != "distribute Succeeded, distribute Succeeded, renew Succeeded, revoke Succeeded" {
		t.Fatalf("history: %s; %+v", got, w.pipeline(t).DeadLetters(tls.Engine))
	}
	left := w.versions(t)
	if len(left) != 1 || left[0].Version == old || w.served(0) != left[0].Version || w.served(1) != left[0].Version {
		t.Errorf("enabled: %+v, served: %s and %s", left, w.served(0), w.served(1))
	}
	if diff := cmp.Diff([]bool{true, false}, w.revoked(t, old, left[0].Version)); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
	if names := w.targets[0].Told()[1]["domains"]; !cmp.Equal(names, []any{"www.example.com", "example.com"}) {
		t.Errorf("the names of the new one: %v", names)
	}
	at := slices.IndexFunc(entries, func(e engine.Entry) bool { return e.Operation == "revoke" })
	if out := string(entries[at].Output); !strings.Contains(out, old) || !strings.Contains(out, "keyCompromise") {
		t.Errorf("history: %s", out)
	}
	// The message is sent again: nothing is left of the old version, and the new one is revoked, too.
	w.handle(t, w.pipeline(t), "c3", revocation("c3", `{"domain":"www.example.com","version":"`+old+`","reason":"superseded"}`))
	if got := w.versions(t); len(got) != 1 || got[0].Version != left[0].Version {
		t.Errorf("an old version again: %+v", got)
	}
	w.checkSecret(t, entries)
}

// A target that does not serve the new certificate keeps the old one valid, unless the message is urgent.
func TestRevokeWaitsForTheTargets(t *testing.T) {
	t.Parallel()
	for input, want := range map[string][]bool{
		`{"domain":"www.example.com","all":true,"reason":"keyCompromise"}`:                    {false},
		`{"domain":"www.example.com","all":true,"reason":"keyCompromise","immediately":true}`: {true},
	} {
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			w, old := issued(t, 2)
			w.targets[1].Answer(422)
			w.handle(t, w.pipeline(t), "c2", revocation("c2", input))
			if got := w.revoked(t, old); !cmp.Equal(got, want) || w.served(0) == old || w.served(1) != old || len(w.versions(t)) != 2 {
				t.Errorf("revoked %v, served %s and %s, enabled %+v", got, w.served(0), w.served(1), w.versions(t))
			}
			if dead := w.pipeline(t).DeadLetters(tls.Engine); len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, "target i1") {
				t.Errorf("%+v", dead)
			}
		})
	}
}

// If the authority issues nothing, the current certificates stay valid.
func TestRevokeWithoutAnotherCertificate(t *testing.T) {
	t.Parallel()
	w, old := issued(t, 1)
	w.ca.Refuse(slices.Repeat([]pebble.Refusal{{Path: pebble.NewOrder, Status: 403, Type: "rejectedIdentifier"}}, 4)...)
	w.handle(t, w.pipeline(t), "c2", revocation("c2", `{"domain":"www.example.com","all":true,"reason":"superseded"}`))
	if got := w.revoked(t, old); got[0] || len(w.versions(t)) != 1 {
		t.Errorf("revoked %v, enabled %+v", got, w.versions(t))
	}
	if dead := w.pipeline(t).DeadLetters(tls.Engine); len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, "in the place of what is to be revoked") {
		t.Errorf("%+v", dead)
	}
}

// A certificate that is no longer needed is revoked without a successor, once no target serves it.
func TestRevokeForGood(t *testing.T) {
	t.Parallel()
	w, old := issued(t, 1)
	const gone = `{"domain":"www.example.com","all":true,"reason":"cessationOfOperation"}`
	w.handle(t, w.pipeline(t), "c2", revocation("c2", gone))
	if dead := w.pipeline(t).DeadLetters(tls.Engine); len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, "1 targets serve the certificate") || w.revoked(t, old)[0] {
		t.Errorf("%+v", dead)
	}
	w.assigned = [][]string{{"other.example.com"}}
	entries := w.handle(t, w.pipeline(t), "c3", revocation("c3", gone))
	if got := rows(entries); got != "revoke Succeeded" || !w.revoked(t, old)[0] || len(w.versions(t)) != 0 {
		t.Errorf("history %s, enabled %+v", got, w.versions(t))
	}
}

// A revoked version can be revoked again; a version of another account cannot.
func TestRevokeAgain(t *testing.T) {
	t.Parallel()
	w, old := issued(t, 0)
	in := tls.RevokeInput{Name: tls.CertificateName([]string{domain}), Version: old, Reason: tls.Unspecified}
	for range 2 {
		if _, err := w.steps(t).Revoke(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if !w.revoked(t, old)[0] {
		t.Error("it is not revoked")
	}
	w.ca.Refuse(pebble.Refusal{Path: pebble.Revoke, Status: 403, Type: "unauthorized", Detail: "another account's"})
	if _, err := w.steps(t).Revoke(t.Context(), in); !errors.Is(err, tls.ErrRefused) || !strings.Contains(err.Error(), "another account's") {
		t.Errorf("of another account: %v", err)
	}
}

// The order of the steps, for all kinds of revocations.
func TestRevocations(t *testing.T) {
	t.Parallel()
	revoke := func(change func(*tls.Revocation)) tls.Input {
		in := tls.Input{Domain: domain, Revocation: tls.Revocation{All: true, Reason: tls.KeyCompromise}}
		change(&in.Revocation)
		return in
	}
	same := func(*tls.Revocation) {}
	cases := []struct {
		what   string
		script script
		calls  string
		failed bool
	}{
		{"two versions", script{input: revoke(same), versions: []string{"a", "b"}, targets: 1}, "plan-revocation renew list-targets distribute revoke revoke disable-versions", false},
		{"immediately", script{input: revoke(func(r *tls.Revocation) { r.Immediately = true }), versions: []string{"a"}, targets: 1},
			"plan-revocation revoke renew list-targets distribute disable-versions", false},
		{"without targets", script{input: revoke(same), versions: []string{"a"}}, "plan-revocation renew list-targets distribute revoke disable-versions", false},
		{"what was disabled before", script{input: revoke(same), versions: []string{"a"}, noneIsEnabled: true, targets: 1}, "plan-revocation revoke disable-versions", false},
		{"for good", script{input: revoke(func(r *tls.Revocation) { r.Reason = tls.CessationOfOperation }), versions: []string{"a"}}, "plan-revocation list-targets revoke disable-versions", false},
		{"for good, with targets", script{input: revoke(func(r *tls.Revocation) { r.Reason = tls.CessationOfOperation }), versions: []string{"a"}, targets: 2}, "plan-revocation list-targets", true},
		{"nothing is issued", script{input: revoke(same), versions: []string{"a"}, renew: func(context.Context, tls.RenewInput) (tls.RenewOutput, error) {
			return tls.RenewOutput{}, orchestrator.Permanent(tls.ErrRefused)
		}}, "plan-revocation renew", true},
		{"a target does not serve it", script{input: revoke(same), versions: []string{"a"}, targets: 1, distribute: func(context.Context, tls.DistributeInput) error {
			return orchestrator.Permanent(errors.New("refused"))
		}}, "plan-revocation renew list-targets distribute", true},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			c.script.operation = "revoke"
			got := orchestratortest.Run(t, c.script.scenario(t))
			if names(got.Calls) != c.calls || (got.Err != nil) != c.failed || !c.failed && !cmp.Equal(got.Output.Revoked, c.script.versions) {
				t.Errorf("%v, %s", got, names(got.Calls))
			}
		})
	}
}

// The required fields of a revoke message, which other messages must not have.
func TestRevocationsThatAreRefused(t *testing.T) {
	t.Parallel()
	for what, s := range map[string]script{
		"neither version nor all":     {operation: "revoke", input: tls.Input{Revocation: tls.Revocation{Reason: tls.Superseded}}},
		"version and all":             {operation: "revoke", input: tls.Input{Revocation: tls.Revocation{Reason: tls.Superseded, Version: "a", All: true}}},
		"no reason":                   {operation: "revoke", input: tls.Input{Revocation: tls.Revocation{All: true}}},
		"a reason of the authority's": {operation: "revoke", input: tls.Input{Revocation: tls.Revocation{All: true, Reason: "cACompromise"}}},
		"immediately superseded":      {operation: "revoke", input: tls.Input{Revocation: tls.Revocation{All: true, Reason: tls.Superseded, Immediately: true}}},
		"forced":                      {operation: "revoke", input: tls.Input{Force: true, Revocation: tls.Revocation{All: true, Reason: tls.Superseded}}},
		"a renewal with a reason":     {operation: "renew", input: tls.Input{Revocation: tls.Revocation{Reason: tls.Superseded}}},
		"a distribution of all":       {operation: "distribute", input: tls.Input{Revocation: tls.Revocation{All: true}}},
	} {
		s.input.Domain = domain
		if got := orchestratortest.Run(t, s.scenario(t)); !orchestrator.IsPermanent(got.Err) || len(got.Calls) != 0 {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// An impossible plan is refused before any change.
func TestPlanRevocation(t *testing.T) {
	t.Parallel()
	w, old := issued(t, 0)
	plan := func(r tls.Revocation, job, of string) (tls.Plan, error) {
		return w.steps(t).PlanRevocation(t.Context(), tls.PlanInput{Domain: of, Revocation: r, JobID: job})
	}
	got, err := plan(tls.Revocation{All: true}, "j", domain)
	want := tls.Plan{Name: tls.CertificateName([]string{domain}), Versions: []string{old}, Domains: []string{domain, "example.com"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for what, c := range map[string]struct {
		r       tls.Revocation
		job, of string
	}{
		"an unknown version":  {tls.Revocation{Version: strings.Repeat("0", 32)}, "j", domain},
		"no such certificate": {tls.Revocation{All: true}, "j", "other.example.com"},
		"what the run made":   {tls.Revocation{All: true}, "c1", domain},
	} {
		if got, err := plan(c.r, c.job, c.of); !errors.Is(err, tls.ErrInput) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	w.now = func() time.Time { return time.Now().Add(100 * day) }
	if got, err := plan(tls.Revocation{All: true}, "j", domain); !errors.Is(err, tls.ErrInput) {
		t.Errorf("what has expired: %+v, %v", got, err)
	}
}

// The engine revokes as when the golden history was written.
func TestGoldenRevocation(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden-revoke.json", script{operation: "revoke", versions: []string{"a", "b"}, targets: 2,
		input: tls.Input{Domain: domain, Revocation: tls.Revocation{All: true, Reason: tls.Superseded}}}.scenario(t))
}

// With any crash in the runtime, a revocation ends the same.
func TestRevocationCrashesEverywhere(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(t *testing.T) orchestratortest.Scenario[engine.Message, tls.Result] {
		return script{operation: "revoke", versions: []string{"a"}, targets: 1,
			input: tls.Input{Domain: domain, Revocation: tls.Revocation{All: true, Reason: tls.Superseded}}}.scenario(t)
	})
}
