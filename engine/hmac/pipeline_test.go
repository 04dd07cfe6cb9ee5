package hmac_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/services/secrets"
)

// rotate is a message for an instance, and notify one with that operation.
const (
	rotate = `{"correlationId":"c1","engine":"hmac","instanceId":"i1","tenantId":"t1","input":{"slot":"now"}}`
	notify = `{"correlationId":"c1","engine":"hmac","operation":"notify","instanceId":"i1","input":{"version":"%s"}}`
)

// platform is the engine on the pipeline, over a world whose clock is that of a bubble of synctest.
type platform struct {
	*world
	*enginetest.World
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{world: newWorld(t)}
	p.clock = time.Now
	p.World = enginetest.New(t, enginetest.Config{Tables: p.tables, Engines: func(s enginetest.Stores) []engine.Definition {
		return []engine.Definition{hmac.Definition(p.stepsOver(t, secrets.NewDevelopment(s.Tables), s.Tables))}
	}})
	return p
}

// send sends a message to the engine.
func (p *platform) send(body string) { p.Send(hmac.Queue, body) }

// pass advances the time, with deliveries of messages and, every hour, events.
func (p *platform) pass(d time.Duration) {
	for ; d > 0; d -= time.Hour {
		p.outbox.Sweep()
		p.Pass(min(d, time.Hour))
	}
}

// before leaves the key of an earlier slot behind.
func (p *platform) before(t *testing.T) hmac.NotifyOutput {
	t.Helper()
	in := hmac.RotateInput{InstanceID: "i1", TenantID: "t1", Slot: "before", JobID: "j"}
	made, err := p.steps(t).Rotate(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	told, err := p.steps(t).Notify(t.Context(), hmac.NotifyInput{InstanceID: "i1", TenantID: "t1", SecretName: made.SecretName, Version: made.Version})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(48 * time.Hour)
	return told
}

// shown returns the history of a run.
func (p *platform) shown(run string) (all []string) {
	for _, e := range p.History(hmac.Engine, run) {
		all = append(all, strings.TrimSpace(fmt.Sprint(e.Operation, " ", e.Status, " ", e.RunStatus)))
	}
	return all
}

// slots returns the slots with a usable version.
func (p *platform) slots(t *testing.T) map[string]bool {
	t.Helper()
	versions, err := p.vault.Versions(t.Context(), secrets.Name(hmac.Engine, "i1"))
	if err != nil {
		t.Fatal(err)
	}
	slots := map[string]bool{}
	for _, v := range versions {
		if v.Enabled && slots[v.Tags[hmac.TagSlot]] {
			t.Errorf("slot %s has two usable versions", v.Tags[hmac.TagSlot])
		}
		slots[v.Tags[hmac.TagSlot]] = slots[v.Tags[hmac.TagSlot]] || v.Enabled
	}
	return slots
}

// pending returns the dead letters of a run.
func (p *platform) pending(run string) []engine.DeadLetter {
	return slices.DeleteFunc(p.DeadLetters(hmac.Engine), func(d engine.DeadLetter) bool {
		return d.CorrelationID != run || d.Status != engine.StatusPending
	})
}

// From the message to the history: the operations show while the run waits for the end of the grace, in which both
// keys are usable, and the run succeeds after it.
func TestRotationFromTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		older := p.before(t)
		for range 2 { // the second message changes nothing
			p.send(rotate)
			p.pass(time.Hour)
			if diff := cmp.Diff([]string{"rotate Succeeded", "notify Succeeded"}, p.shown("c1")); diff != "" {
				t.Errorf("in the grace (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" {
				t.Errorf("usable in the grace (-want +got):\n%s", diff)
			}
		}
		p.pass(hmac.DefaultTiming().Grace)
		if diff := cmp.Diff([]string{"rotate Succeeded", "notify Succeeded Succeeded"}, p.shown("c1")); diff != "" {
			t.Errorf("in the end (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]bool{"before": false, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("usable in the end (-want +got):\n%s", diff)
		}
		events := p.outbox.Events()
		if last := events[len(events)-1]; len(events) != 2 || !strings.Contains(string(last.Payload), `"previousVersion":"`+older.Version+`"`) || last.CorrelationID != "c1" {
			t.Errorf("events: %+v", events)
		}
	})
}

// A notify message makes nothing, waits for nothing and retires nothing.
func TestNotifyFromTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		p.before(t)
		made, err := p.steps(t).Rotate(t.Context(), hmac.RotateInput{InstanceID: "i1", Slot: "now", JobID: "j"})
		if err != nil {
			t.Fatal(err)
		}
		p.send(fmt.Sprintf(notify, made.Version))
		p.pass(time.Minute)
		if diff := cmp.Diff([]string{"notify Succeeded Succeeded"}, p.shown("c1")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.pass(48 * time.Hour)
		if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("usable (-want +got):\n%s", diff)
		}
	})
}

// When the older key cannot be disabled, the message is dead-lettered; its retry continues there.
func TestRetireFailsForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		p.before(t)
		p.send(rotate)
		began := time.Now()
		away := &faults.Plan{Refuse: func(c faults.Call) bool {
			return c.Target == secrets.DevelopmentTable && c.Operation == "Apply" && time.Since(began) > time.Hour
		}}
		p.Restart(away)
		p.pass(hmac.DefaultTiming().Grace + 2*time.Hour)
		dead := p.pending("c1")
		if len(dead) != 1 {
			t.Fatalf("dead letters: %+v", dead)
		}
		if d := dead[0]; d.DetectedReason != engine.ReasonAttemptsExhausted || !strings.Contains(d.ErrorMessage, "retire the older keys of instance i1") ||
			!strings.Contains(d.ErrorMessage, "throttled") || string(d.OriginalMessage) != rotate {
			t.Errorf("%+v", d)
		}
		if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("usable (-want +got):\n%s", diff)
		}
		keys := len(p.random.keys())
		p.Restart(nil)
		p.send(strings.Replace(rotate, "c1", "c2", 1))
		p.pass(time.Hour)
		if diff := cmp.Diff(map[string]bool{"before": false, "now": true}, p.slots(t)); diff != "" || len(p.random.keys()) != keys || len(p.outbox.Events()) != 2 {
			t.Errorf("%d keys of %d, %d events; usable (-want +got):\n%s", keys, len(p.random.keys()), len(p.outbox.Events()), diff)
		}
	})
}

// Every call to storage, the vault's and the slots' included, fails in every way, and the process dies there where it
// can. The run succeeds, with one key made, announced once, and the older one retired.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	enginetest.FailEverywhere(t, randomKeys, func(t *testing.T, plan *enginetest.Plan) {
		p := newPlatform(t)
		p.before(t)
		p.send(rotate)
		p.Restart(plan)
		p.pass(hmac.DefaultTiming().Grace + time.Hour)
		plan.Wait()
		var operations []string
		for _, e := range p.shown("c1") {
			if !strings.Contains(e, "Failed") {
				operations = append(operations, e)
			}
		}
		if diff := cmp.Diff([]string{"rotate Succeeded", "notify Succeeded Succeeded"}, operations); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]bool{"before": false, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("usable (-want +got):\n%s", diff)
		}
		if events, dead := p.outbox.Events(), p.pending("c1"); len(events) != 2 || len(dead) != 0 {
			t.Errorf("events %+v, dead letters %+v", events, dead)
		}
	})
}

// randomKeys skips a conflict where keys are random: that is the answer to a duplicate request.
func randomKeys(_ int, c enginetest.Call, f enginetest.Fault) bool {
	return f == faults.Conflict && c.Target == secrets.DevelopmentTable
}
