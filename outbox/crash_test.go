package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
)

// crashScenario is the work of one process, with faults or without. It may stop at any error.
type crashScenario struct {
	// messages are added by the process; each is stored or had an error.
	messages []Message
	// fails is how often the destination refuses each message before it accepts it; permanent means that it always does.
	fails     int
	permanent bool
	many      bool
	// direct makes the process deliver its own messages, while another one sweeps.
	direct bool
}

func crashScenarios() map[string]crashScenario {
	ordered := func(n int) Message { m := message1(n); m.OrderKey = "k"; return m }
	large := message1(2)
	large.Payload = text(spillPayload + 1)
	medium := message1(3)
	medium.Payload = text(inlinePayload + 1)
	return map[string]crashScenario{
		"plain":   {messages: []Message{message1(0), message1(1)}},
		"many":    {messages: []Message{message1(0), message1(1), message1(2)}, many: true},
		"ordered": {messages: []Message{ordered(0), ordered(1), ordered(2)}},
		"sizes":   {messages: []Message{message1(0), large, medium}},
		"retried": {messages: []Message{message1(0), message1(1)}, fails: 2},
		"dies":    {messages: []Message{message1(0), ordered(1), ordered(2)}, permanent: true},

		"direct":         {messages: []Message{message1(0), message1(1)}, direct: true},
		"direct many":    {messages: []Message{message1(0), message1(1), message1(2)}, many: true, direct: true},
		"direct ordered": {messages: []Message{ordered(0), ordered(1), ordered(2)}, direct: true},
		"direct sizes":   {messages: []Message{message1(0), large, medium}, direct: true},
		"direct retried": {messages: []Message{message1(0), ordered(1)}, fails: 2, direct: true},
		"direct dies":    {messages: []Message{message1(0), ordered(1), ordered(2)}, permanent: true, direct: true},
	}
}

// world returns a world with the scenario's destination. It counts deliveries by key.
func (s crashScenario) world(t testing.TB) *world {
	w := newWorld(t)
	refused := map[uuid.UUID]int{}
	w.deliver = func(_ context.Context, e Event) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.permanent {
			return &DeliveryError{Permanent: true, Err: errors.New("never")}
		}
		if refused[e.Key] < s.fails {
			refused[e.Key]++
			return errors.New("not yet")
		}
		return nil
	}
	return w
}

// run runs the process until it has nothing to do, or fails. accepted receives the keys that Add has accepted.
func (s crashScenario) run(t testing.TB, w *world, plan *faults.Plan, accepted map[uuid.UUID]bool) {
	p := w.process(t, plan)
	if s.direct {
		p.direct()
	}
	if s.many {
		if added, err := p.writer.AddMany(t.Context(), "acme", s.messages); err == nil {
			for _, a := range added {
				accepted[a.Key] = true
			}
		}
	} else {
		for _, m := range s.messages {
			if added, err := p.writer.Add(t.Context(), m); err == nil {
				accepted[added.Key] = true
			}
		}
	}
	if s.direct {
		_, _ = w.process(t, nil).dispatcher.sweepOpen(t.Context()) // of another process; its remaining messages are checked below
		_ = p.dispatcher.Close(t.Context())
	}
	for range s.fails + 1 {
		_, _ = p.dispatcher.sweepOpen(t.Context())
		w.pass(time.Hour)
	}
}

// verify lets a process without faults finish, and checks the final state. The process adds no messages: the accepted
// ones have to leave by themselves.
func (s crashScenario) verify(t testing.TB, w *world, accepted map[uuid.UUID]bool, plans ...*faults.Plan) {
	for _, plan := range plans {
		plan.Wait() // for late calls in storage
	}
	p := w.process(t, nil)
	for range 12 {
		w.pass(time.Hour)
		if _, err := p.dispatcher.sweepOpen(t.Context()); err != nil { // the promise does not include the round of all tenants
			t.Error(err)
		}
	}
	statuses := w.check(t, "acme")
	if statuses[StatusPending] != 0 {
		t.Errorf("still pending: %v", statuses)
	}
	times := map[uuid.UUID]int{}
	for _, e := range w.events() {
		times[e.Key]++
	}
	dead := map[uuid.UUID]int{}
	for _, e := range w.deaths() {
		dead[e.Key]++
	}
	faulty := 0
	for _, plan := range plans {
		faulty += boolToInt(len(plan.Calls()) >= plan.At)
	}
	for _, m := range s.messages {
		r, err := p.admin.Get(t.Context(), "acme", m.Key.String())
		there := err == nil
		ended := times[m.Key] + dead[m.Key]
		switch {
		case accepted[m.Key] && !there:
			t.Errorf("%s was added and is not there", m.Payload[:min(20, len(m.Payload))])
		case there && ended == 0:
			t.Errorf("message %s is %s and never left", r.ID, r.Status)
		case !there && ended > 0:
			t.Errorf("message %s left without a row", m.Key)
		case ended > 1+faulty:
			t.Errorf("message %s left %d times with %d faults", r.ID, ended, faulty)
		}
		if r.Status == StatusProcessed && times[m.Key] == 0 || r.Status == StatusDead && dead[m.Key] == 0 {
			t.Errorf("message %s is %s, but was delivered %d times and dead-lettered %d times", r.ID, r.Status, times[m.Key], dead[m.Key])
		}
		delete(times, m.Key)
	}
	for k := range times {
		t.Errorf("%s was delivered and never added", k)
	}
}

// Every storage call and every delivery fails in every way. No message is lost, none leaves without its row, and a
// message leaves twice only when its delivery was not settled, under the same key.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, s := range crashScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := &faults.Plan{}
			synctest.Test(t, func(t *testing.T) {
				w, accepted := s.world(t), map[uuid.UUID]bool{}
				s.run(t, w, count, accepted)
				s.verify(t, w, accepted)
				if len(accepted) != len(s.messages) {
					t.Errorf("%d messages are in", len(accepted))
				}
				if n := len(w.events()) + len(w.deaths()); n != len(s.messages) {
					t.Errorf("%d left without a fault", n)
				}
			})
			for at := range count.Calls() {
				for _, fault := range faults.Faults() {
					name := fmt.Sprintf("%s-%d", fault, at+1)
					if !sample.Keep(t, name) {
						continue
					}
					t.Run(name, func(t *testing.T) {
						sample.Repeat(t)
						synctest.Test(t, func(t *testing.T) {
							w, accepted := s.world(t), map[uuid.UUID]bool{}
							plan := &faults.Plan{At: at + 1, Fault: fault}
							s.run(t, w, plan, accepted)
							s.verify(t, w, accepted, plan)
							for key, times := range w.leftTwice() {
								if !mayBeUnsettled(plan, key) {
									t.Errorf("message %s left %d times without an unsettled delivery; calls: %v", key, times, plan.Calls())
								}
							}
						})
					})
				}
			}
		})
	}
}

// leftTwice returns the messages that were delivered or dead-lettered more than once.
func (w *world) leftTwice() map[uuid.UUID]int {
	times := map[uuid.UUID]int{}
	for _, e := range w.events() {
		times[e.Key]++
	}
	for _, e := range w.deaths() {
		times[e.Key]++
	}
	maps.DeleteFunc(times, func(_ uuid.UUID, n int) bool { return n < 2 })
	return times
}

// mayBeUnsettled reports whether the process started to deliver a message before its fault, which may have prevented
// the settlement. Calls are concurrent: a process that dies after call n may have started later calls before it died.
func mayBeUnsettled(plan *faults.Plan, key uuid.UUID) bool {
	begun := plan.Calls() // those before the crash, if the fault is one
	if plan.Fault != faults.CrashAfter {
		begun = begun[:min(plan.At, len(begun))]
	}
	return slices.Contains(begun, deliveryOf(key))
}

// Several processes, each with a random fault.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	for name, s := range crashScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				var plans []*faults.Plan
				for range rapid.IntRange(1, 5).Draw(rt, "processes") {
					plans = append(plans, &faults.Plan{
						At:    rapid.IntRange(1, 20).Draw(rt, "at"),
						Fault: rapid.SampledFrom(faults.Faults()).Draw(rt, "fault"),
					})
				}
				synctest.Test(t, func(t *testing.T) {
					w, accepted := s.world(t), map[uuid.UUID]bool{}
					for _, plan := range plans {
						s.run(t, w, plan, accepted)
					}
					s.verify(t, w, accepted, plans...)
				})
				if t.Failed() {
					rt.FailNow()
				}
			})
		})
	}
}
