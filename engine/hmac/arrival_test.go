package hmac_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

const (
	day   = 24 * time.Hour
	grace = day // hmac.DefaultTiming().Grace
)

// twoRotations creates a key, and the runs c1 and c2 that follow it, a day apart, while the receiver of events is
// down.
func twoRotations(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(t)
	p.before(t)
	p.outbox.Down = true
	p.send(rotate)
	p.pass(day)
	p.send(strings.NewReplacer("c1", "c2", "now", "next").Replace(rotate))
	p.pass(grace + time.Hour)
	return p
}

// open returns the open human tasks.
func (p *platform) open(t *testing.T) []tasks.Task {
	t.Helper()
	runtime := p.Restart(nil).Runtime
	var open []tasks.Task
	page, err := runtime.Tasks().List(t.Context(), tasks.Filter{}, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range page.Tasks {
		if !task.Open() {
			continue
		}
		whole, err := runtime.Tasks().Get(t.Context(), task.Ref)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, whole)
	}
	return open
}

// waiting counts the credentials that wait.
func (p *platform) waiting(t *testing.T) int {
	t.Helper()
	count, err := consumers.CountWaiting(t.Context(), p.tables, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return count[hmac.Engine]
}

func (p *platform) expect(t *testing.T, when string, slots map[string]bool, open, waiting int) {
	t.Helper()
	if diff := cmp.Diff(slots, p.slots(t)); diff != "" {
		t.Errorf("%s, usable (-want +got):\n%s", when, diff)
	}
	if tasks := p.open(t); len(tasks) != open {
		t.Errorf("%s, %d tasks are open, want %d: %+v", when, len(tasks), open, tasks)
	}
	if got := p.waiting(t); got != waiting {
		t.Errorf("%s, %d credentials wait, want %d", when, got, waiting)
	}
}

// Rotated twice while the receiver of events is down, no key is disabled: tasks are created. When the receiver is
// back and has the later version, both older keys are retired.
func TestNothingIsRetiredWhileTheReceiverIsDown(t *testing.T) {
	t.Parallel()
	all := map[string]bool{"before": true, "now": true, "next": true}
	synctest.Test(t, func(t *testing.T) {
		p := twoRotations(t)
		p.expect(t, "after both graces", all, 2, 1)
		p.pass(3 * day)
		p.expect(t, "after days", all, 2, 1)
		p.outbox.Recover()
		p.pass(2 * time.Hour)
		p.expect(t, "when it has just come back", all, 0, 0) // consumers get their promised time
		p.pass(grace)
		p.expect(t, "a grace later", map[string]bool{"before": false, "now": false, "next": true}, 0, 0)
		for _, run := range []string{"c1", "c2"} {
			if diff := cmp.Diff([]string{"rotate Succeeded", "notify Succeeded Succeeded"}, p.shown(run)); diff != "" || len(p.pending(run)) != 0 {
				t.Errorf("%s: dead letters %+v, history (-want +got):\n%s", run, p.pending(run), diff)
			}
		}
	})
}

// A version that does not arrive becomes a dead letter, once a run. Its retry continues to wait with the same key,
// and succeeds when the receiver is back.
func TestNotAcknowledged(t *testing.T) {
	t.Parallel()
	all := map[string]bool{"before": true, "now": true, "next": true}
	synctest.Test(t, func(t *testing.T) {
		p := twoRotations(t)
		p.pass(consumers.DefaultPatience)
		p.expect(t, "at the deadline", all, 0, 1)
		keys, events := len(p.random.keys()), p.outbox.Events()
		for i, run := range []string{"c1", "c2"} {
			p.checkOverdue(t, run, events[i+1].ID)
		}
		p.pass(3 * time.Hour)
		p.expect(t, "when nobody waits any more", all, 0, 0)
		for _, slot := range []string{"c1", "c2"} { // as a retry of the dead letter sends it
			p.send(strings.NewReplacer("c1", slot, "now", map[string]string{"c1": "now", "c2": "next"}[slot]).Replace(rotate))
		}
		p.pass(day)
		p.expect(t, "after a retry", all, 2, 1)
		p.outbox.Recover()
		p.pass(grace + 2*time.Hour)
		p.expect(t, "when the receiver is back", map[string]bool{"before": false, "now": false, "next": true}, 0, 0)
		if len(p.random.keys()) != keys || len(p.outbox.Events()) != len(events) {
			t.Errorf("%d keys and %d events, want %d and %d: a retry rotates nothing", len(p.random.keys()), len(p.outbox.Events()), keys, len(events))
		}
		for _, run := range []string{"c1", "c2"} {
			if shown := p.shown(run); !strings.HasSuffix(shown[len(shown)-1], "Succeeded Succeeded") {
				t.Errorf("%s: %v", run, shown)
			}
		}
	})
}

// checkOverdue checks the dead letter of a run whose version has not arrived.
func (p *platform) checkOverdue(t *testing.T, run, event string) {
	t.Helper()
	dead := p.pending(run)
	if len(dead) != 1 {
		t.Fatalf("%s: dead letters %+v", run, dead)
	}
	d := dead[0]
	for _, says := range []string{"receiver of event " + event + " (dead)", "i1", "retry this: it goes on waiting", "stays usable"} {
		if d.DetectedReason != engine.ReasonNotAcknowledged || !strings.Contains(d.ErrorMessage, says) {
			t.Errorf("%s: %s %s: it does not say %q", run, d.DetectedReason, d.ErrorMessage, says)
		}
	}
}

// An operator can decide that a version has arrived, or that the run continues to wait; the former is in the history.
func TestAPersonDecides(t *testing.T) {
	t.Parallel()
	for _, action := range []consumers.Action{consumers.Retire, consumers.Wait} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := twoRotations(t)
				for _, task := range p.open(t) {
					if task.CorrelationID != "c2" {
						continue
					}
					if task.Name != consumers.Task || !strings.Contains(string(task.Payload), `"target":"i1"`) {
						t.Errorf("task %s: %s", task.Name, task.Payload)
					}
					said := fmt.Sprintf(`{"action":%q,"note":"the gateway has both"}`, action)
					if _, err := p.Runtime().Tasks().Complete(t.Context(), task.Ref, tasks.Person{ID: "t/grace", Name: "Grace"}, []byte(said), "", ""); err != nil {
						t.Fatal(err)
					}
				}
				p.pass(2 * time.Hour)
				if action == consumers.Wait {
					p.expect(t, "waited on", map[string]bool{"before": true, "now": true, "next": true}, 1, 1)
					return
				}
				p.expect(t, "retired", map[string]bool{"before": false, "now": false, "next": true}, 0, 0)
				entries := p.History(hmac.Engine, "c2")
				if len(entries) != 3 || entries[2].Operation != hmac.OperationConfirm || !strings.Contains(string(entries[2].Input), "t/grace (Grace)") {
					t.Errorf("history: %+v", entries)
				}
				if shown := p.shown("c1"); shown[len(shown)-1] != "notify Succeeded Succeeded" {
					t.Errorf("the run whose work was done by another: %v", shown)
				}
			})
		})
	}
}

// A registered consumer has to acknowledge, too; a later version is sufficient.
func TestRegisteredConsumers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		p.names = []string{"gateway", "audit"}
		p.Restart(nil)
		p.before(t)
		p.send(rotate)
		p.pass(grace + time.Hour)
		both := map[string]bool{"before": true, "now": true}
		p.expect(t, "nobody has acknowledged", both, 1, 1)
		arrivals := p.arrivals(t, p.tables, func() *hmac.Steps { return p.steps(t) })
		version := p.told(t, 1)
		acknowledge := func(consumer, version string) {
			if _, err := arrivals.Acknowledge(t.Context(), consumers.Acknowledgement{Target: "i1", Version: version, Consumer: consumer}); err != nil {
				t.Fatal(err)
			}
		}
		acknowledge("gateway", version)
		acknowledge("audit", p.told(t, 0)) // the version before
		p.pass(2 * day)
		p.expect(t, "one has acknowledged", both, 1, 1)
		p.send(strings.NewReplacer("c1", "c2", "now", "next").Replace(rotate))
		p.pass(time.Hour)
		acknowledge("audit", p.told(t, 2))
		p.pass(grace - 2*time.Hour)
		p.expect(t, "the other's grace lasts", map[string]bool{"before": true, "now": true, "next": true}, 0, 0)
		p.pass(3 * time.Hour)
		p.expect(t, "the other has a later one", map[string]bool{"before": false, "now": true, "next": true}, 1, 1)
	})
}

// told returns the version in the event of that number.
func (p *platform) told(t *testing.T, number int) string {
	t.Helper()
	_, rest, _ := strings.Cut(string(p.outbox.Events()[number].Payload), `"version":"`)
	version, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("event %d names no version", number)
	}
	return version
}

// Every storage call fails in every way while a run waits for the receiver of events, and the process dies there
// where it can. No key is disabled before the receiver is back, all old ones afterwards, and no task is left open.
func TestCrashesWhileWaiting(t *testing.T) {
	t.Parallel()
	began := 0
	skip := func(at int, c enginetest.Call, f enginetest.Fault) bool { return at <= began || randomKeys(at, c, f) }
	enginetest.FailEverywhere(t, skip, func(t *testing.T, plan *enginetest.Plan) {
		p := newPlatform(t)
		p.before(t)
		p.outbox.Down = true
		p.send(rotate)
		p.Restart(plan)
		p.pass(time.Hour)
		if plan.At == 0 {
			began = len(plan.Calls())
		}
		p.pass(grace + time.Hour)
		if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" {
			t.Errorf("while the receiver is down (-want +got):\n%s", diff)
		}
		p.outbox.Recover()
		p.pass(grace + 4*time.Hour)
		plan.Wait()
		if n := len(plan.Calls()) - began; plan.At == 0 && n < 50 {
			t.Fatalf("%d calls while it waits; the plan misses some", n)
		}
		p.expect(t, "in the end", map[string]bool{"before": false, "now": true}, 0, 0)
		if shown, dead := p.shown("c1"), p.pending("c1"); len(dead) != 0 || shown[len(shown)-1] != "notify Succeeded Succeeded" {
			t.Errorf("history %v, dead letters %+v", shown, dead)
		}
	})
}
