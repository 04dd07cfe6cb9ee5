package spn_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
)

// model holds the announcements to consumers, in order, the arrivals, and since when versions are disabled.
type model struct {
	w        *world
	steps    *spn.Steps
	made     []spn.RotateOutput
	had      map[string]map[string]time.Time // by consumer and version; the receiver of events has no name
	disabled map[string]time.Time            // by version
	removals []removal
}

type removal struct {
	run int
	at  time.Time
}

// TestLifecycle lets rotations of an application overlap in any order, with a receiver of events that goes down and
// comes back, consumers that acknowledge at any time, and operators who enable and disable versions. No version is
// disabled that a consumer still needs, and no password is removed that was not disabled for long enough.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(draw *rapid.T) {
		seed := rapid.Uint64().Draw(draw, "seed")
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			m := newModel(t, r)
			actions := []func(*testing.T, *rand.Rand){m.rotate, m.pass, m.pass, m.turn, m.acknowledge, m.acknowledge, m.retire, m.retire, m.remove, m.remove, m.change}
			for range 80 {
				actions[r.IntN(len(actions))](t, r)
			}
			if t.Failed() {
				t.Logf("the seed is %d", seed)
			}
		})
	})
}

func newModel(t *testing.T, r *rand.Rand) *model {
	t.Helper()
	m := &model{w: newWorld(t), had: map[string]map[string]time.Time{"": {}}, disabled: map[string]time.Time{}}
	m.w.names = []string{"gateway", "audit"}[:r.IntN(3)]
	for _, name := range m.w.names {
		m.had[name] = map[string]time.Time{}
	}
	m.steps = m.w.steps(t)
	return m
}

func (m *model) pass(t *testing.T, r *rand.Rand) {
	t.Helper()
	time.Sleep(time.Duration(1+r.IntN(20)) * time.Hour)
	m.receive(t)
}

// turn stops or starts the receiver of events.
func (m *model) turn(t *testing.T, _ *rand.Rand) {
	t.Helper()
	if m.w.outbox.Down = !m.w.outbox.Down; !m.w.outbox.Down {
		m.w.outbox.Recover()
	}
	m.receive(t)
}

// change enables or disables a version, as an operator.
func (m *model) change(t *testing.T, r *rand.Rand) {
	t.Helper()
	if len(m.made) == 0 {
		return
	}
	made := m.made[r.IntN(len(m.made))]
	if _, off := m.disabled[made.Version]; off {
		m.w.enable(t, made)
		delete(m.disabled, made.Version)
		return
	}
	if err := m.w.vault.Disable(t.Context(), made.SecretName, made.Version); err != nil {
		t.Fatal(err)
	}
	m.disabled[made.Version] = time.Now()
}

func (m *model) rotate(t *testing.T, _ *rand.Rand) {
	t.Helper()
	made := rotated(t, m.w, fmt.Sprint(len(m.made)))
	m.made = append(m.made, made)
	payload, err := json.Marshal(spn.Rotated{KeyID: made.KeyID})
	if err != nil {
		t.Fatal(err)
	}
	err = m.w.outbox.Publish(t.Context(), []orchestrator.Publication{{TenantID: engine.PublisherInstance, Type: spn.EventRotated, Payload: payload, Key: spn.EventRotated + "/" + made.KeyID}})
	if err != nil {
		t.Fatal(err)
	}
	m.receive(t)
}

// receive records the events that the receiver has, and since when.
func (m *model) receive(t *testing.T) {
	t.Helper()
	m.w.outbox.Sweep()
	for _, made := range m.made {
		e, err := m.w.outbox.Admin().Get(t.Context(), engine.PublisherInstance, eventID(engine.PublisherInstance, spn.EventRotated, spn.EventRotated+"/"+made.KeyID))
		if err != nil {
			t.Fatal(err)
		}
		if e.Status == outbox.StatusProcessed {
			m.had[""][made.Version] = e.ProcessedAt
		}
	}
}

func (m *model) acknowledge(t *testing.T, r *rand.Rand) {
	t.Helper()
	if len(m.made) == 0 || len(m.w.names) == 0 {
		return
	}
	c, err := consumers.New(consumers.Config{Engine: spn.Engine, Tables: m.w.Tables, Outbox: m.w.outbox.Admin(),
		Targets: map[string]consumers.Target{application: {Names: m.w.names}}, Knows: m.steps.Knows})
	if err != nil {
		t.Fatal(err)
	}
	version, name := m.made[r.IntN(len(m.made))].Version, m.w.names[r.IntN(len(m.w.names))]
	if _, again := m.had[name][version]; !again && len(m.had[name]) == 10 {
		return // ten versions of a consumer are kept
	}
	a, err := c.Acknowledge(t.Context(), consumers.Acknowledgement{Target: application, Version: version, Consumer: name})
	if err != nil {
		t.Fatal(err)
	}
	m.had[name][version] = a.AtUtc
}

// retire runs the step after the overlap of a run.
func (m *model) retire(t *testing.T, r *rand.Rand) {
	t.Helper()
	due := 0
	for due < len(m.made) && time.Since(m.made[due].CreatedAtUtc) >= overlap {
		due++
	}
	if due == 0 {
		return
	}
	run := r.IntN(due)
	before := m.states(t)
	out, err := m.steps.Retire(t.Context(), replaces(m.made[run]))
	usable := slices.IndexFunc(m.made[run:], func(v spn.RotateOutput) bool { return before[v.Version].enabled && before[v.Version].live })
	if (err != nil) != (usable < 0) {
		t.Fatalf("Retire of %d = %v, and the first usable one from there on is %d", run, err, usable)
	}
	all := run
	for i := range m.made[:run] {
		if usable == 0 && before[m.made[i].Version].live && m.takenUp(run, before) {
			continue
		}
		all = -1
	}
	after := m.states(t)
	for i, v := range m.made {
		was, is := before[v.Version], after[v.Version]
		if was.live != is.live {
			t.Fatalf("the password of version %d was removed by Retire", i)
		}
		if was.enabled && !is.enabled && (i >= run || !m.takenUp(run, before)) {
			t.Fatalf("version %d was disabled by the run of %d, and consumers had %v", i, run, m.had)
		}
		if was.enabled && !is.enabled {
			m.disabled[v.Version] = time.Now()
		}
		if all == run && i < run && is.enabled {
			t.Fatalf("version %d is enabled after the run of %d, and consumers had %v", i, run, m.had)
		}
	}
	if !out.RemoveAtUtc.IsZero() {
		m.removals = append(m.removals, removal{run, out.RemoveAtUtc})
	}
}

// remove runs the step after the second wait of a run.
func (m *model) remove(t *testing.T, r *rand.Rand) {
	t.Helper()
	ready := slices.DeleteFunc(slices.Clone(m.removals), func(r removal) bool { return time.Now().Before(r.at) })
	if len(ready) == 0 {
		return
	}
	run := ready[r.IntN(len(ready))].run
	before := m.states(t)
	out, err := m.steps.Remove(t.Context(), replaces(m.made[run]))
	after := m.states(t)
	for i, v := range m.made {
		was, is := before[v.Version], after[v.Version]
		since, off := m.disabled[v.Version]
		long := off && time.Since(since) >= removeAfter-11*time.Minute
		if was.live && !is.live && (i >= run || !long) {
			t.Fatalf("the password of version %d was removed by the run of %d; disabled: %t, for %v", i, run, off, time.Since(since))
		}
		if err == nil && i < run && is.live && off && time.Since(since) > removeAfter {
			t.Fatalf("the password of version %d is there after the run of %d, and was disabled for %v", i, run, time.Since(since))
		}
		if kept := slices.Contains(out.Kept, spn.Password{KeyID: v.KeyID, Version: v.Version}); err == nil && kept != (i < run && was.live && !off) {
			t.Fatalf("version %d counts as objected: %t, disabled: %t", i, kept, off)
		}
	}
	if m.w.graph.Live(application)[m.w.foreign] == "" {
		t.Fatal("a password of somebody else is gone")
	}
}

type state struct{ enabled, live bool }

func (m *model) states(t *testing.T) map[string]state {
	t.Helper()
	live, states := m.w.graph.Live(application), map[string]state{}
	for _, v := range m.w.versions(t) {
		states[v.Version] = state{v.Enabled, live[v.Tags[spn.TagKey]] != ""}
	}
	return states
}

// takenUp reports whether every consumer has had the version of a run, or a later usable one, for nine tenths of the
// overlap.
func (m *model) takenUp(run int, states map[string]state) bool {
	for _, had := range m.had {
		if !slices.ContainsFunc(m.made[run:], func(v spn.RotateOutput) bool {
			since, ok := had[v.Version]
			return ok && states[v.Version].enabled && states[v.Version].live && time.Since(since) >= overlap*9/10
		}) {
			return false
		}
	}
	return true
}
