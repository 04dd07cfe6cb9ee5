package tls_test

import (
	"context"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// A target that refuses is removed from the list, and the message retried: then all targets serve the certificate,
// which is not renewed again.
func TestTheNextAttemptAsksForTheTargetsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pebble.Options{}, 2)
	w.targets[1].Answer(422)
	body := message("c1", `{"domain":"www.example.com"}`)
	if got := rows(w.handle(t, w.pipeline(t), "c1", body)); got != "distribute Failed, distribute Succeeded, renew Failed, renew Succeeded" {
		t.Fatalf("history: %s", got)
	}
	w.targets[1].Answer(422)
	w.targets = w.targets[:1]
	got := w.handle(t, w.pipeline(t), "c1", body)
	if last := got[len(got)-1]; last.RunStatus != "Succeeded" || len(w.versions(t)) != 1 || len(w.targets[0].Told()) != 1 {
		t.Errorf("%d versions, told %d times, history: %s", len(w.versions(t)), len(w.targets[0].Told()), rows(got))
	}
}

// A run that is canceled while it waits for the rate limit does not call the authority.
func TestACanceledWaitForTheRateLimit(t *testing.T) {
	t.Parallel()
	until := time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC)
	s := script{input: tls.Input{Domain: domain}, renew: func(context.Context, tls.RenewInput) (tls.RenewOutput, error) {
		return tls.RenewOutput{}, &tls.RateLimitedError{Until: until, Detail: "too many"}
	}}.scenario(t)
	s.Steps = []orchestratortest.Step{{At: time.Hour, Command: "cancel"}}
	got := orchestratortest.Run(t, s)
	if got.Status != orchestrator.Canceled || len(got.Called("renew")) != 1 {
		t.Errorf("%v", got)
	}
}
