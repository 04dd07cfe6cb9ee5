package hmac_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// model holds the announcements to consumers, in order, and the actions of operators and consumers.
type model struct {
	w      *world
	all    []string            // the versions, in the order of their creation: their names are random
	made   []hmac.RotateOutput // without an announcement
	told   []hmac.NotifyOutput
	byHand map[string]bool // made, or disabled
	slots  int
	// had is when consumers received a version, by consumer; the receiver of events has no name.
	had map[string]map[string]time.Time
}

// named are the consumers that acknowledge on their own.
var named = []string{"gateway", "audit"}

// TestLifecycle lets rotations of an instance overlap in any order, with operators who change the vault, a receiver
// of events that goes down and comes back, operators who skip and retry events, and consumers that acknowledge at any
// time. It compares usable versions with announcements and arrivals.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{w: newWorld(t), byHand: map[string]bool{}, had: map[string]map[string]time.Time{"": {}}}
		m.w.names = named[:rapid.IntRange(0, len(named)).Draw(rt, "consumers")]
		for _, name := range m.w.names {
			m.had[name] = map[string]time.Time{}
		}
		arrivals := m.w.arrivals(t, m.w.tables, func() *hmac.Steps { return m.w.steps(t) })
		now := start
		rt.Repeat(map[string]func(*rapid.T){
			"rotate": func(*rapid.T) {
				m.slots++
				made := m.w.decided(t, fmt.Sprint(m.slots))
				m.made, m.all = append(m.made, made), append(m.all, made.Version)
			},
			"tell": func(rt *rapid.T) {
				if len(m.made) == 0 {
					rt.Skip("nothing to tell")
				}
				at := rapid.IntRange(0, len(m.made)-1).Draw(rt, "slot")
				if !m.byHand[m.made[at].Version] {
					m.told = append(m.told, m.w.tell(t, m.made[at]))
					m.receive(t)
				}
				m.made = slices.Delete(m.made, at, at+1)
			},
			"time passes": func(rt *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "hours")) * time.Hour)
				m.w.move(now)
				m.w.outbox.Sweep()
				m.receive(t)
			},
			"the receiver goes down or comes back": func(*rapid.T) { m.w.outbox.Down = !m.w.outbox.Down },
			"an operator acts on an event": func(rt *rapid.T) {
				if len(m.told) == 0 {
					rt.Skip("no event")
				}
				event := rapid.SampledFrom(m.told).Draw(rt, "event").EventID
				admin, err := m.w.outbox.Admin(), error(nil)
				switch rapid.IntRange(0, 2).Draw(rt, "action") {
				case 0:
					err = admin.Retry(t.Context(), "t1", event, "")
				case 1:
					err = admin.Skip(t.Context(), "t1", event, "somebody")
				default:
					err = admin.Replay(t.Context(), "t1", event, "")
				}
				if err != nil && !errors.Is(err, outbox.ErrState) {
					rt.Fatal(err)
				}
				m.w.outbox.Sweep()
				m.receive(t)
			},
			"acknowledge": func(rt *rapid.T) {
				if len(m.told) == 0 || len(m.w.names) == 0 {
					rt.Skip("nobody, or nothing to acknowledge")
				}
				version, name := rapid.SampledFrom(m.told).Draw(rt, "version").Version, rapid.SampledFrom(m.w.names).Draw(rt, "consumer")
				if _, again := m.had[name][version]; !again && len(m.had[name]) == 10 {
					rt.Skip("of a consumer ten versions are remembered")
				}
				a, err := arrivals.Acknowledge(t.Context(), consumers.Acknowledgement{Target: instance, Version: version, Consumer: name})
				if err != nil {
					rt.Fatal(err)
				}
				if first, again := m.had[name][version]; again && !a.AtUtc.Equal(first) {
					rt.Fatalf("acknowledged again at %v, first at %v", a.AtUtc, first)
				}
				m.had[name][version] = a.AtUtc
			},
			"a run ends": func(rt *rapid.T) {
				if len(m.told) == 0 {
					rt.Skip("no run waits")
				}
				told := rapid.SampledFrom(m.told).Draw(rt, "run")
				if told.PreviousVersion == "" {
					rt.Skip("a run with nothing to retire does not wait")
				}
				if now.Before(told.GraceEndsAtUtc) {
					now = told.GraceEndsAtUtc
					m.w.move(now)
				}
				m.retire(t, rt, told, now)
			},
			"by hand": func(*rapid.T) {
				version := m.w.byHand(t)
				m.byHand[version], m.all = true, append(m.all, version)
			},
			"disable by hand": func(rt *rapid.T) {
				enabled := m.w.usable(t)
				usable := slices.DeleteFunc(slices.Clone(m.all), func(version string) bool { return !enabled[version] })
				if len(usable) == 0 {
					rt.Skip("nothing to disable")
				}
				version := rapid.SampledFrom(usable).Draw(rt, "version")
				if err := m.w.vault.Disable(t.Context(), secrets.Name(hmac.Engine, instance), version); err != nil {
					t.Fatal(err)
				}
				m.byHand[version] = true
			},
			"": m.checkOrder,
		})
	})
}

// checkOrder checks that versions become active in the order of their announcements.
func (m *model) checkOrder(rt *rapid.T) {
	for i := 1; i < len(m.told); i++ {
		if a, b := m.told[i-1], m.told[i]; !a.ActiveAtUtc.Before(b.ActiveAtUtc) {
			rt.Fatalf("%+v is not active after %+v", b, a)
		}
	}
}

// retire ends a run, and compares each version with the allowed and required results.
func (m *model) retire(t *testing.T, rt *rapid.T, run hmac.NotifyOutput, now time.Time) {
	t.Helper()
	before := m.w.usable(t)
	m.w.retire(t, run)
	after := m.w.usable(t)
	order := func(version string) int {
		return slices.IndexFunc(m.told, func(n hmac.NotifyOutput) bool { return n.Version == version })
	}
	own := order(run.Version)
	last := -1
	for _, version := range m.all {
		at := order(version)
		if before[version] && m.over(at, before, now) && at < own {
			last = max(last, at)
		}
	}
	taken := last >= 0 && m.takenUp(last, before, now)
	for _, version := range m.all {
		at := order(version)
		if !before[version] {
			continue
		}
		if due := taken && at <= last && m.over(at, before, now); after[version] == due {
			rt.Fatalf("version %s (told %d) is usable: %t, when the run of %d ends at %v", version, at, after[version], own, now)
		}
	}
}

// over reports whether the announced time of a version is over: that in the event of its successor. A version without
// a predecessor has none.
func (m *model) over(at int, usable map[string]bool, now time.Time) bool {
	for i := at + 1; at >= 0 && i < len(m.told); i++ {
		if next := m.told[i]; usable[next.Version] {
			return !next.GraceEndsAtUtc.IsZero() && !now.Before(next.GraceEndsAtUtc)
		}
	}
	return false
}

// takenUp reports whether every consumer has had a usable later version for at least a grace without its propagation.
func (m *model) takenUp(at int, usable map[string]bool, now time.Time) bool {
	timing := hmac.DefaultTiming()
	for _, had := range m.had {
		will := slices.ContainsFunc(m.told[at+1:], func(n hmac.NotifyOutput) bool {
			since, ok := had[n.Version]
			if since.Before(n.ActiveAtUtc) {
				since = n.ActiveAtUtc
			}
			return ok && usable[n.Version] && !now.Before(since.Add(timing.Grace-timing.Propagation))
		})
		if !will {
			return false
		}
	}
	return true
}

// receive records the events that the receiver has, and since when.
func (m *model) receive(t *testing.T) {
	t.Helper()
	m.had[""] = map[string]time.Time{}
	for _, e := range m.w.outbox.Events() {
		at := slices.IndexFunc(m.told, func(n hmac.NotifyOutput) bool { return n.EventID == e.ID })
		if e.Status == outbox.StatusProcessed && at >= 0 {
			m.had[""][m.told[at].Version] = e.ProcessedAt
		}
	}
}
