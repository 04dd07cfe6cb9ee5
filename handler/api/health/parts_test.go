package health

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
)

// Each service that the program needs is asked by itself, and is well again when it answers. Without the vault, the program is ready: it goes
// on with all that needs no secrets.
func TestEachServiceByItself(t *testing.T) {
	t.Parallel()
	broken := errors.New("no line")
	for _, part := range []string{"tables", "queues", "blobs", "vault"} {
		now, down := time.Unix(1000, 0), true
		w := newWorld(t)
		fail := func(ctx context.Context, c faults.Call, do func(context.Context) error) error {
			if down && c.Service == part {
				return broken
			}
			return do(ctx)
		}
		w.config.Now = func() time.Time { return now }
		w.config.Thresholds.ClockSkew = Limit[time.Duration]{-1, -1}
		w.config.Tables, w.config.Queues = faults.Tables(w.config.Tables, fail), faults.Queues(w.config.Queues, fail)
		w.config.Blobs, w.config.Container = faults.Blobs(blobs.NewMemory(), fail), "payloads"
		w.config.Vault = func(ctx context.Context) error {
			return fail(ctx, faults.Call{Service: "vault"}, func(context.Context) error { return nil })
		}
		checks := w.checks(t)
		for _, want := range []Status{Fail, Pass} {
			r := checks.Full(t.Context())
			for name, m := range r.Checks {
				if of := want; m[0].Status != of && (name == part+":responseTime" || m[0].Status != Pass) {
					t.Errorf("%s, want %s: %s is %+v", part, want, name, m)
				}
			}
			ready := want
			if part == "vault" {
				ready = Pass
			}
			if got := checks.Ready(t.Context()).Status; r.Status != want || got != ready {
				t.Errorf("%s: %s, want %s; ready: %s", part, r.Status, want, got)
			}
			down, now = false, now.Add(time.Minute)
		}
	}
}
