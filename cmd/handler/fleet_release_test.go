package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

const stable = `[{"ring":"stable","version":"2.0","released":"2026-11-01T00:00:00Z","components":[{"name":"web","version":"1.1"}]}]`

// A release goes from the publisher to the instance, and the outcome comes back, under one id; after that, no notice
// is repeated. Either side may be down meanwhile.
func TestAReleaseGoesOutAndItsEndComesBack(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]string{"all are there": "", "the managed application is away": managedAddress, "the publisher is away": publisherAddress} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, stable)
				f.network.Down(away, true)
				if r := f.evaluate("c1"); r.Notified != 1 {
					t.Fatalf("%+v", r)
				}
				f.pass(2 * time.Minute)
				if away != "" && f.instance(f.publisher).version != "1.0" {
					t.Error("the network was not down")
				}
				f.network.Down(away, false)
				f.pass(30 * time.Minute)
				there, here := f.instance(f.managed), f.instance(f.publisher)
				if there.version != "2.0" || here.version != "2.0" || here.last.Status != release.Updated || here.last.Ring != "stable" ||
					here.last.CorrelationID == "" || here.last.CorrelationID != there.desired.CorrelationID {
					t.Errorf("managed application %+v\npublisher %+v", there, here)
				}
				if r := f.evaluate("c2"); r.Notified != 0 || r.Evaluated == 0 {
					t.Errorf("evaluated again: %+v", r)
				}
				events := f.outbox(f.publisher, "update.available")
				if len(events) != 1 || events[0].Status != outbox.StatusProcessed || events[0].IdempotencyKey.String() != there.desired.CorrelationID {
					t.Errorf("%+v", events)
				}
				f.noDeadLetters()
			})
		})
	}
}

// Either process dies at any of its calls while a release and its outcome are sent: in the end both registries have
// the version, and no manual fix is needed.
func TestKilledWhileAReleaseTravels(t *testing.T) {
	t.Parallel()
	travel := func(t *testing.T, publisher, managed *faults.Plan) {
		t.Helper()
		f := newFleetUnder(t, stable, publisher, managed)
		f.publisher.Send(updatepublisher.Queue, `{"correlationId":"c1"}`)
		f.pass(30 * time.Minute)
		there, here := f.instance(f.managed), f.instance(f.publisher)
		if there.version != "2.0" || here.version != "2.0" || here.last.Status != release.Updated || here.last.CorrelationID != there.desired.CorrelationID {
			t.Errorf("managed application %+v\npublisher %+v", there, here)
		}
		f.noDeadLetters()
	}
	var counts [2]faults.Plan
	synctest.Test(t, func(t *testing.T) { travel(t, &counts[0], &counts[1]) })
	for which := range counts {
		// The calls behind the first ones are sweeps that find nothing. The number of calls varies between runs,
		// since a process renews its heartbeat in parallel.
		for at := range min(200, len(counts[which].Calls())*9/10) {
			fault := []faults.Fault{faults.CrashBefore, faults.CrashAfter}[at%2]
			if !sample.Keep(t, which, fault, at) {
				continue
			}
			t.Run(fmt.Sprintf("%d-%s-%d", which, fault, at+1), func(t *testing.T) {
				t.Parallel()
				sample.Repeat(t)
				synctest.Test(t, func(t *testing.T) {
					plans := [2]*faults.Plan{{}, {}}
					plans[which] = &faults.Plan{At: at + 1, Fault: fault}
					travel(t, plans[0], plans[1])
					if !plans[which].Done() { // a process that should die after a refused call survives
						t.Error("nobody died")
					}
				})
			})
		}
	}
}

// The managed application's setting names the approvers of a ring's updates; the publisher learns of a missing
// approval.
func TestARingThatNeedsAnApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, strings.Replace(stable, "stable", "canary", 1))
		_, err := registry.New(f.publisher.Tables, "").Update(t.Context(), "i1", "", func(i *registry.Instance) error { return i.SetField("ring", "canary") })
		if err != nil {
			t.Fatal(err)
		}
		f.evaluate("c1")
		f.pass(10 * time.Minute)
		if status, answer := f.managed.Do(http.MethodGet, "/api/tasks", ""); status != http.StatusOK || !strings.Contains(answer, update.TaskApproval) || !strings.Contains(answer, "approver") {
			t.Errorf("%d %s", status, answer)
		}
		f.pass(2 * time.Hour)
		if here := f.instance(f.publisher); here.version != "1.0" || here.last.Status != release.Failed || !strings.Contains(here.last.Reason, "nobody has approved") {
			t.Errorf("%+v", here)
		}
	})
}

// The publisher learns that an instance is unhealthy, and that it is healthy again.
func TestHealthIsKnownToThePublisher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "[]")
		var since time.Time
		for n, ill := range []bool{false, false, true, false} {
			f.ill.Store(ill)
			f.managed.Send(health.Queue, fmt.Sprintf(`{"correlationId":"h%d","instanceId":"i1"}`, n))
			f.pass(5 * time.Minute)
			got := f.instance(f.publisher).health
			if want := map[bool]string{false: "Healthy", true: "Unhealthy"}[ill]; got.Status != want || (n == 1) != got.SinceUtc.Equal(since) {
				t.Errorf("check %d: %+v, want %s", n, got, want)
			}
			since = got.SinceUtc
		}
		f.noDeadLetters()
	})
}

// A ring without a release is reported. An instance without an address is dead-lettered; once it has one, it is
// notified.
func TestInstancesThatCannotBeTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, stable)
		f.register(f.publisher, "i2", map[string]any{"ring": "sable"})
		f.register(f.publisher, "i3", nil)
		if r := f.evaluate("c1"); r.Notified != 2 || r.UnknownRings["sable"] != 1 {
			t.Errorf("%+v", r)
		}
		f.pass(10 * time.Minute)
		dead := f.publisher.DeadLetters("outbox")
		if len(dead) != 1 || dead[0].Status != engine.StatusPending || !strings.Contains(dead[0].ErrorMessage, "instance i3 has no address for its events: set endpoints.events") {
			t.Errorf("%+v", dead)
		}
		f.give(f.publisher, map[string]string{secrets.Name("notices", "i3"): "a", secrets.Name("events", "i3"): "b"})
		f.register(f.managed, "i3", nil)
		_, err := registry.New(f.publisher.Tables, "").Update(t.Context(), "i3", "", func(i *registry.Instance) error {
			return i.SetField("endpoints", registry.Endpoints{Events: "http://" + managedAddress + "/api/updates"})
		})
		if err != nil {
			t.Fatal(err)
		}
		f.pass(2 * time.Hour)
		i := testenv.Must(registry.New(f.publisher.Tables, "").Get(t.Context(), "i3"))(t)
		if version, err := update.VersionOf(i); err != nil || version != "2.0" {
			t.Errorf("version %q, %v", version, err)
		}
		if dead := f.publisher.DeadLetters("outbox"); len(dead) != 1 || dead[0].Status != engine.StatusResolved {
			t.Errorf("%+v", dead)
		}
	})
}
