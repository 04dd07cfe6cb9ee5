package hmac_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/services/secrets"
)

// model is what consumers and people know of an instance: what they were told, in order, and what they did themselves.
type model struct {
	w      *world
	all    []string            // the versions, in the order in which they were made: their names are not the same each time
	made   []hmac.RotateOutput // that nobody was told of
	told   []hmac.NotifyOutput
	byHand map[string]bool // made, or disabled
	slots  int
}

// TestLifecycle lets rotations of an instance overlap in any order, with people at work on the vault, and holds what is
// usable against what consumers were told.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{w: newWorld(t), byHand: map[string]bool{}}
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
				}
				m.made = slices.Delete(m.made, at, at+1)
			},
			"time passes": func(rt *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "hours")) * time.Hour)
				m.w.move(now)
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

// checkOrder: what consumers are told first becomes active first.
func (m *model) checkOrder(rt *rapid.T) {
	for i := 1; i < len(m.told); i++ {
		if a, b := m.told[i-1], m.told[i]; !a.ActiveAtUtc.Before(b.ActiveAtUtc) {
			rt.Fatalf("%+v is not active after %+v", b, a)
		}
	}
}

// retire ends a run, and holds what became of each version against what may and what has to.
func (m *model) retire(t *testing.T, rt *rapid.T, run hmac.NotifyOutput, now time.Time) {
	t.Helper()
	before := m.w.usable(t)
	m.w.retire(t, run)
	after := m.w.usable(t)
	order := func(version string) int {
		return slices.IndexFunc(m.told, func(n hmac.NotifyOutput) bool { return n.Version == version })
	}
	own := order(run.Version)
	for _, version := range m.all {
		if !before[version] {
			continue
		}
		at, next := order(version), -1
		for i := at + 1; at >= 0 && i < len(m.told) && next < 0; i++ {
			if before[m.told[i].Version] {
				next = i
			}
		}
		// The end of the grace is in the event of the one that follows; that of one that follows nothing has none.
		over := next >= 0 && !m.told[next].GraceEndsAtUtc.IsZero() && !now.Before(m.told[next].GraceEndsAtUtc)
		if due := over && at < own; after[version] == due {
			rt.Fatalf("version %s (told %d, followed by %d) is usable: %t, when the run of %d ends at %v", version, at, next, after[version], own, now)
		}
	}
}
