package hmac_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/secrets"
)

// rotate is a message for an instance, and notify one that only tells.
const (
	rotate = `{"correlationId":"c1","engine":"hmac","instanceId":"i1","tenantId":"t1","input":{"slot":"now"}}`
	notify = `{"correlationId":"c1","engine":"hmac","operation":"notify","instanceId":"i1","input":{"version":"%s"}}`
)

// visibility is for how long the miniature host hides a message that it hands out.
const visibility = 30 * time.Second

// platform is the engine on the standard's path, over a world whose clock is that of a bubble of synctest.
type platform struct {
	*world
	blobs *blobs.Memory
	// pace is how often the host looks at its queues.
	pace time.Duration
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{newWorld(t), blobs.NewMemory(), visibility}
	p.clock = time.Now
	runtime, pipeline := p.process(t, &faults.Plan{})
	if err := errors.Join(runtime.Prepare(t.Context()), pipeline.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return p
}

// process is one that meets the faults of a plan, at the vault and the slots, too.
func (p *platform) process(t *testing.T, plan *faults.Plan) (*orchestrator.Runtime, *engine.Pipeline) {
	t.Helper()
	store, messages, log := faults.Tables(p.tables, plan.Intercept), faults.Queues(p.queues, plan.Intercept), slog.New(slog.DiscardHandler)
	vault := secrets.NewDevelopment(store)
	d := hmac.Definition(p.stepsOver(t, vault, store))
	var pipeline *engine.Pipeline
	runtime, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: faults.Blobs(p.blobs, plan.Intercept), Queues: messages, Log: log,
		Ended:         func(ctx context.Context, out orchestrator.Outcome) error { return pipeline.Ended(ctx, out) },
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...)})
	if err != nil {
		t.Fatal(err)
	}
	pipeline, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: runtime, Log: log, HostMaxDequeueCount: 8,
		History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Queues: messages})
	if err != nil {
		t.Fatal(err)
	}
	return runtime, pipeline
}

func (p *platform) send(t *testing.T, body string) {
	t.Helper()
	if _, err := p.queues.Send(t.Context(), hmac.Queue, []byte(body), 0); err != nil {
		t.Fatal(err)
	}
}

// host hands out what is visible for as long, as the Functions host would. A process that dies is followed by one that
// does not.
func (p *platform) host(t *testing.T, plan *faults.Plan, lasts time.Duration) {
	t.Helper()
	_, pipeline := p.process(t, plan)
	end, sweep := time.Now().Add(lasts), time.Now()
	for ; time.Now().Before(end); time.Sleep(p.pace) { // virtual
		if !time.Now().Before(sweep) {
			p.deliver(t)
			sweep = time.Now().Add(time.Hour)
		}
		for queue, handle := range map[string]func(*engine.Pipeline, context.Context, engine.Delivery) error{hmac.Queue: (*engine.Pipeline).Handle,
			"orchestration-signals": (*engine.Pipeline).HandleSignal, "orchestration-schedules": (*engine.Pipeline).HandleSignal} {
			messages, err := p.queues.Receive(t.Context(), queue, 1, visibility)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				if plan.Crashed() {
					_, pipeline = p.process(t, &faults.Plan{})
				}
				d := engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}
				if handle(pipeline, t.Context(), d) != nil {
					continue
				}
				err := p.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
				if err != nil && !errors.Is(err, queues.ErrNotFound) && !errors.Is(err, queues.ErrPopReceipt) { // a slow call took longer than it was hidden
					t.Fatal(err)
				}
			}
		}
	}
	plan.Wait()
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

// shown is what the history tells of the run.
func (p *platform) shown(t *testing.T) []string {
	t.Helper()
	return p.shownOf(t, "c1")
}

func (p *platform) shownOf(t *testing.T, run string) (all []string) {
	t.Helper()
	entries, err := engine.NewHistory(p.tables, "").Run(t.Context(), hmac.Engine, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, strings.TrimSpace(fmt.Sprint(e.Operation, " ", e.Status, " ", e.RunStatus)))
	}
	return all
}

// slots are those that have a usable version.
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

func (p *platform) deadLetters(t *testing.T) []engine.DeadLetter {
	t.Helper()
	return p.deadLettersOf(t, "c1")
}

func (p *platform) deadLettersOf(t *testing.T, run string) []engine.DeadLetter {
	t.Helper()
	dead, err := engine.NewDeadLetters(p.tables, "").Pending(t.Context(), hmac.Engine, run)
	if err != nil {
		t.Fatal(err)
	}
	return dead
}

// From the message to the history: the operations show while the run waits for the end of the grace, in which both keys are
// usable, and the run has succeeded when it is over.
func TestRotationFromTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		older := p.before(t)
		for range 2 { // the second message changes nothing
			p.send(t, rotate)
			p.host(t, &faults.Plan{}, time.Hour)
			if diff := cmp.Diff([]string{"rotate Succeeded", "notify Succeeded"}, p.shown(t)); diff != "" {
				t.Errorf("in the grace (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" {
				t.Errorf("usable in the grace (-want +got):\n%s", diff)
			}
		}
		p.host(t, &faults.Plan{}, hmac.DefaultTiming().Grace)
		if diff := cmp.Diff([]string{"rotate Succeeded", "notify Succeeded Succeeded"}, p.shown(t)); diff != "" {
			t.Errorf("in the end (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]bool{"before": false, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("usable in the end (-want +got):\n%s", diff)
		}
		events := p.events(t)
		if last := events[len(events)-1]; len(events) != 2 || !strings.Contains(string(last.Payload), `"previousVersion":"`+older.Version+`"`) || last.CorrelationID != "c1" {
			t.Errorf("events: %+v", events)
		}
	})
}

// A message that only tells makes nothing, waits for nothing and retires nothing.
func TestNotifyFromTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		p.before(t)
		made, err := p.steps(t).Rotate(t.Context(), hmac.RotateInput{InstanceID: "i1", Slot: "now", JobID: "j"})
		if err != nil {
			t.Fatal(err)
		}
		p.send(t, fmt.Sprintf(notify, made.Version))
		p.host(t, &faults.Plan{}, time.Minute)
		if diff := cmp.Diff([]string{"notify Succeeded Succeeded"}, p.shown(t)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		p.host(t, &faults.Plan{}, 48*time.Hour)
		if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("usable (-want +got):\n%s", diff)
		}
	})
}

// When the older key cannot be disabled, the message is a dead letter in the end; sent again, it goes on where it was.
func TestRetireFailsForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		p.before(t)
		p.send(t, rotate)
		began := time.Now()
		away := &faults.Plan{Refuse: func(c faults.Call) bool {
			return c.Target == secrets.DevelopmentTable && c.Operation == "Apply" && time.Since(began) > time.Hour
		}}
		p.host(t, away, hmac.DefaultTiming().Grace+2*time.Hour)
		dead := p.deadLetters(t)
		if len(dead) != 1 {
			t.Fatalf("dead letters: %+v", dead)
		}
		d, err := engine.NewDeadLetters(p.tables, "").Get(t.Context(), hmac.Engine, dead[0].RowKey)
		if err != nil || d.DetectedReason != engine.ReasonAttemptsExhausted || !strings.Contains(d.ErrorMessage, "retire the older keys of instance i1") ||
			!strings.Contains(d.ErrorMessage, "throttled") || string(d.OriginalMessage) != rotate {
			t.Errorf("%+v, %v", d, err)
		}
		if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("usable (-want +got):\n%s", diff)
		}
		keys := len(p.random.keys())
		p.send(t, strings.Replace(rotate, "c1", "c2", 1))
		p.host(t, &faults.Plan{}, time.Hour)
		if diff := cmp.Diff(map[string]bool{"before": false, "now": true}, p.slots(t)); diff != "" || len(p.random.keys()) != keys || len(p.events(t)) != 2 {
			t.Errorf("%d keys of %d, %d events; usable (-want +got):\n%s", keys, len(p.random.keys()), len(p.events(t)), diff)
		}
	})
}

// Every call to storage, the vault's and the slots' included, goes wrong in every way, and the process dies there where it
// can. Whatever happens, the run succeeds, with one key made, told once, and the older one retired.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlatform(t)
			p.before(t)
			p.send(t, rotate)
			p.host(t, plan, hmac.DefaultTiming().Grace+time.Hour)
			var operations []string
			for _, e := range p.shown(t) {
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
			if events, dead := p.events(t), p.deadLetters(t); len(events) != 2 || len(dead) != 0 {
				t.Errorf("events %+v, dead letters %+v", events, dead)
			}
		})
	}
	count := &faults.Plan{}
	run(t, count)
	for at, call := range count.Calls() {
		for _, fault := range faults.Faults() {
			if fault == faults.Conflict && call.Target == secrets.DevelopmentTable {
				continue // its keys are random: a conflict there is the answer to a request that was sent twice
			}
			t.Run(fmt.Sprintf("%d-%s-%s-%s", at+1, call.Service, call.Operation, fault), func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
		}
	}
}
