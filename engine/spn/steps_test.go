package spn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/services/secrets/secretstest"
)

// The steps with a Key Vault and a Graph over TLS, whose answers are lost.
func TestStepsOverTheWire(t *testing.T) {
	t.Parallel()
	now := time.Now()
	clock := func() time.Time { return now }
	vault, server := secretstest.NewVault(t), graphfake.New()
	vault.Now, server.Now = clock, clock
	server.AddApplication(application)
	address, options := server.Start(t)
	graph, graphErr := entra.NewGraph(address, server.Credential(), options)
	login, loginErr := entra.NewLogin(address, graphfake.Tenant, address, options)
	store, vaultErr := secrets.NewKeyVault(vault.URL(), vault.Credential(), vault.Options())
	steps, err := spn.New(spn.Config{Directory: graph, Login: login, Vault: store, Values: store, Owner: owner, Now: clock, Arrivals: everywhere{}, EventID: eventID})
	if err := errors.Join(graphErr, loginErr, vaultErr, err); err != nil {
		t.Fatal(err)
	}
	var seen []any
	rotate := func(slot string) (spn.RotateOutput, error) {
		out, err := steps.Rotate(t.Context(), spn.RotateInput{ApplicationID: application, Slot: slot, JobID: "j"})
		seen = append(seen, out, err)
		now = now.Add(time.Hour)
		return out, err
	}

	vault.Inject(secretstest.Fault{Method: "PUT", Status: 403, Code: "Forbidden", InnerCode: "ForbiddenByRbac"})
	if _, err := rotate("one"); !errors.Is(err, secrets.ErrForbidden) || len(server.Live(application)) != 0 {
		t.Errorf("Rotate into a vault that refuses = %v, passwords %v", err, server.Live(application))
	}
	// The value is stored and the answer lost; then two requests are lost; then Graph's answer is lost.
	vault.Inject(secretstest.Fault{Method: "PUT", Applied: true})
	first, err := rotate("one")
	if err != nil {
		t.Fatal(err)
	}
	if versions, err := store.Versions(t.Context(), first.SecretName); err != nil || len(versions) != 1 {
		t.Errorf("versions %v, %v; want one", versions, err)
	}
	vault.Inject(secretstest.Fault{Method: "PUT"}, secretstest.Fault{Method: "PUT"})
	second, err := rotate("two")
	if err != nil {
		t.Fatal(err)
	}
	server.Inject(graphfake.Fault{Action: "/addPassword", Applied: true})
	if _, err := rotate("three"); !errors.Is(err, entra.ErrOutcomeUnknown) {
		t.Errorf("Rotate without an answer = %v", err)
	}
	third, err := rotate("three")
	if err != nil || len(server.Live(application)) != 3 {
		t.Errorf("Rotate again = %v, passwords %v", err, server.Live(application))
	}
	if again, err := rotate("two"); err != nil || again != second {
		t.Errorf("Rotate again = %+v, %v; want %+v", again, err, second)
	}
	probe := spn.ProbeInput{ApplicationID: application, SecretName: third.SecretName, Version: third.Version}
	if out, err := steps.Probe(t.Context(), probe); err != nil || out.RetireAtUtc.Sub(out.ValidAtUtc) != spn.DefaultOverlap {
		t.Errorf("Probe = %+v, %v", out, err)
	}
	ok := graphfake.Fault{Action: "/token", Status: 200, Body: "{}"}
	server.Inject(ok, ok, graphfake.Fault{Action: "/token", Status: 401})
	if out, err := steps.Probe(t.Context(), probe); !errors.Is(err, entra.ErrNotAccepted) {
		t.Errorf("Probe, when one of three replicas refuses = %+v, %v", out, err)
	}
	probe.Version = strings.Repeat("0", 32)
	if out, err := steps.Probe(t.Context(), probe); !errors.Is(err, spn.ErrKeyMissing) {
		t.Errorf("Probe of nothing = %+v, %v", out, err)
	}
	replaces := spn.RetireInput{ApplicationID: application, Slot: "three", SecretName: third.SecretName, Version: third.Version, KeyID: third.KeyID}
	out, err := steps.Retire(t.Context(), replaces)
	if err != nil || len(out.Passwords) != 2 || !out.RemoveAtUtc.Equal(now.UTC().Truncate(time.Second).Add(spn.DefaultRemoveAfter)) || len(server.Live(application)) != 3 {
		t.Errorf("Retire = %+v, %v; passwords %v", out, err, server.Live(application))
	}
	now = now.Add(spn.DefaultRemoveAfter - time.Hour)
	if out, err := steps.Remove(t.Context(), replaces); err != nil || len(out.Removed) != 0 || len(server.Live(application)) != 3 {
		t.Errorf("Remove, too early = %+v, %v", out, err)
	}
	now = now.Add(time.Hour)
	for range 2 {
		_, err := steps.Remove(t.Context(), replaces)
		if live := server.Live(application); err != nil || len(live) != 1 || live[third.KeyID] == "" {
			t.Errorf("Remove = %v, passwords %v, want %s alone", err, live, third.KeyID)
		}
	}
	for _, old := range []spn.RotateOutput{first, second} {
		if _, err := store.Value(t.Context(), old.SecretName, old.Version); !errors.Is(err, secrets.ErrForbidden) {
			t.Errorf("the version of slot %s = %v, want it disabled", old.Slot, err)
		}
	}
	vault.SoftDelete(third.SecretName)
	if _, err := rotate("three"); !errors.Is(err, secrets.ErrDeleted) || server.Live(application)[third.KeyID] == "" {
		t.Errorf("Rotate of a deleted secret = %v, passwords %v; want that in use to stay", err, server.Live(application))
	}
	if leaks := server.Leaks(fmt.Appendf(nil, "%+v", seen)); len(leaks) != 0 || len(server.Values()) < 4 {
		t.Errorf("%d values show", len(leaks))
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	steps := newSteps(t)
	for _, in := range []spn.RotateInput{
		{ApplicationID: application, JobID: "j"}, {ApplicationID: application, Slot: "s"}, {Slot: "s", JobID: "j"},
		{ApplicationID: strings.ToUpper(application), Slot: "s", JobID: "j"}, {ApplicationID: application, Slot: "\xff", JobID: "j"},
		{ApplicationID: application, Slot: strings.Repeat("s", 513), JobID: "j"},
	} {
		if _, err := steps.Rotate(t.Context(), in); !errors.Is(err, spn.ErrInput) {
			t.Errorf("Rotate(%+v) = %v, want ErrInput", in, err)
		}
	}
	if _, err := steps.Probe(t.Context(), spn.ProbeInput{ApplicationID: application, SecretName: "a/b", Version: "1"}); !errors.Is(err, spn.ErrInput) {
		t.Errorf("Probe = %v, want ErrInput", err)
	}
	if _, err := steps.Retire(t.Context(), spn.RetireInput{ApplicationID: application}); !errors.Is(err, spn.ErrInput) {
		t.Errorf("Retire = %v, want ErrInput", err)
	}
}

// everywhere is an Arrivals where everything has arrived.
type everywhere struct{}

func (everywhere) Arrived(context.Context, consumers.Question) (*consumers.Waiting, error) {
	return nil, nil
}
func (everywhere) Settled(context.Context, string) error { return nil }

// newSteps returns steps without a network.
func newSteps(t *testing.T) *spn.Steps {
	t.Helper()
	steps, err := spn.New(spn.Config{Directory: &entra.Graph{}, Login: &entra.Login{}, Vault: &secrets.Development{}, Values: &secrets.Development{}, Owner: owner, Arrivals: everywhere{}, EventID: eventID})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// Any input is either accepted by the steps, or an ErrInput.
func FuzzParseInput(f *testing.F) {
	for _, seed := range []string{"", "null", "{}", `{"applicationId":"` + strings.ToUpper(application) + `","slot":"ü"}`, `{"applicationId":"` + application + `"}{}`,
		`{"applicationId":1}`, `{"applicationId":"urn:uuid:` + application + `"}`, `{"slot":"` + strings.Repeat("s", 600) + `"}`} {
		f.Add("rotate", []byte(seed))
	}
	f.Add("notify", []byte("{}"))
	f.Fuzz(func(t *testing.T, operation string, document []byte) {
		in, err := spn.ParseInput(operation, document)
		if err != nil {
			if !errors.Is(err, spn.ErrInput) || in != (spn.Input{}) {
				t.Errorf("ParseInput = %+v, %v", in, err)
			}
			return
		}
		if entra.CheckApplicationID(in.ApplicationID) != nil || len(in.Slot) > 512 {
			t.Errorf("ParseInput(%q) = %+v", document, in)
		}
	})
}
