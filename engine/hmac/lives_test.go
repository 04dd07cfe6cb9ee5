package hmac_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/outbox"
)

// Weeks of an instance, from its messages to its history: rotations, a receiver that is down for days, late
// acknowledgements, operators who let runs wait, retries of dead letters. No key is disabled that a consumer still
// needs, and in the end only the last one and no open task are left.
func TestWeeks(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { weeks(t, rand.New(rand.NewPCG(uint64(seed), 2))) })
		})
	}
}

func weeks(t *testing.T, r *rand.Rand) {
	t.Helper()
	l := &life{platform: newPlatform(t), r: r, m: model{had: map[string]map[string]time.Time{"": {}}}}
	l.names = named[:r.IntN(len(named)+1)]
	l.Restart(nil)
	for _, name := range l.names {
		l.m.had[name] = map[string]time.Time{}
	}
	actions := []func(*testing.T){l.rotate, l.rotate, l.turn, l.acknowledge, l.acknowledge, l.answer, l.retry, func(t *testing.T) { l.pass(t, 2*day) }}
	for range 20 {
		actions[r.IntN(len(actions))](t)
		l.pass(t, time.Duration(r.IntN(30))*time.Hour)
	}
	l.settle(t)
}

// life is an instance over weeks.
type life struct {
	*platform
	r    *rand.Rand
	m    model // announcements and arrivals
	runs []string
}

func (l *life) rotate(t *testing.T) {
	t.Helper()
	l.runs = append(l.runs, fmt.Sprint("run", len(l.runs)))
	l.ask(t, l.runs[len(l.runs)-1])
}

// ask sends the message of a run, for the first time or as the retry of its dead letter.
func (l *life) ask(t *testing.T, run string) {
	t.Helper()
	l.send(strings.NewReplacer("c1", run, "now", "slot of "+run).Replace(rotate))
}

func (l *life) turn(t *testing.T) {
	t.Helper()
	if l.outbox.Down = !l.outbox.Down; !l.outbox.Down {
		l.outbox.Recover()
	}
}

func (l *life) acknowledge(t *testing.T) {
	t.Helper()
	if len(l.names) == 0 || len(l.m.told) == 0 {
		return
	}
	a := consumers.Acknowledgement{Target: "i1", Version: l.m.told[l.r.IntN(len(l.m.told))].Version, Consumer: l.names[l.r.IntN(len(l.names))]}
	if _, again := l.m.had[a.Consumer][a.Version]; !again && len(l.m.had[a.Consumer]) == 9 {
		return // ten versions of a consumer are kept
	}
	said, err := l.arrivals(t, l.tables, func() *hmac.Steps { return l.steps(t) }).Acknowledge(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	l.m.had[a.Consumer][a.Version] = said.AtUtc
}

// answer lets a run wait on, as an operator.
func (l *life) answer(t *testing.T) {
	t.Helper()
	open := l.open(t)
	if len(open) == 0 {
		return
	}
	if _, err := l.Runtime().Tasks().Complete(t.Context(), open[0].Ref, tasks.Person{ID: "t/grace", All: true}, []byte(`{"action":"wait"}`), "", ""); err != nil {
		t.Fatal(err)
	}
}

// retry retries dead letters.
func (l *life) retry(t *testing.T) {
	t.Helper()
	for _, run := range l.runs {
		if shown := l.shown(run); len(l.pending(run)) > 0 && !strings.HasSuffix(shown[len(shown)-1], "Succeeded Succeeded") {
			l.ask(t, run)
		}
	}
}

// pass advances the time by about an hour at a time, and compares disabled versions with arrivals.
func (l *life) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		before := l.enabledOf(t)
		l.platform.pass(2 * time.Hour)
		l.learn(t)
		after := l.enabledOf(t)
		for at, told := range l.m.told {
			if before[told.Version] && !after[told.Version] && !l.m.takenUp(at, l.unionWith(before, after), time.Now()) {
				t.Fatalf("key %d was disabled, and consumers had %v of %v", at, l.m.had, l.m.told)
			}
		}
	}
}

func (l *life) unionWith(a, b map[string]bool) map[string]bool {
	all := map[string]bool{}
	for version := range a {
		all[version] = a[version]
	}
	for version := range b {
		all[version] = all[version] || b[version]
	}
	return all
}

// learn reads the published events, and which were delivered.
func (l *life) learn(t *testing.T) {
	t.Helper()
	l.m.told, l.m.had[""] = nil, map[string]time.Time{}
	for _, e := range l.outbox.Events() {
		var told hmac.NotifyOutput
		if err := json.Unmarshal(e.Payload, &told); err != nil {
			t.Fatal(err)
		}
		l.m.told = append(l.m.told, told)
		if e.Status == outbox.StatusProcessed {
			l.m.had[""][told.Version] = e.ProcessedAt
		}
	}
}

func (l *life) enabledOf(t *testing.T) map[string]bool {
	t.Helper()
	versions, err := l.vault.Versions(t.Context(), "hmac-i1")
	if err != nil {
		t.Fatal(err)
	}
	enabled := map[string]bool{}
	for _, v := range versions {
		enabled[v.Version] = v.Enabled
	}
	return enabled
}

// settle fixes everything, and checks the result.
func (l *life) settle(t *testing.T) {
	t.Helper()
	l.rotate(t)
	l.pass(t, 3*time.Hour)
	if l.outbox.Down {
		l.turn(t)
	}
	for _, name := range l.names {
		a := consumers.Acknowledgement{Target: "i1", Version: l.m.told[len(l.m.told)-1].Version, Consumer: name}
		said, err := l.arrivals(t, l.tables, func() *hmac.Steps { return l.steps(t) }).Acknowledge(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		l.m.had[name][a.Version] = said.AtUtc
	}
	l.retry(t)
	l.pass(t, 2*grace+4*time.Hour)
	last := l.m.told[len(l.m.told)-1].Version
	for version, enabled := range l.enabledOf(t) {
		if enabled != (version == last) {
			t.Errorf("version %s is enabled: %t; the last is %s", version, enabled, last)
		}
	}
	if open := l.open(t); len(open) != 0 || l.waiting(t) != 0 || len(l.m.told) != len(l.runs) {
		t.Errorf("%d tasks are open, %d credentials wait, %d events of %d runs", len(open), l.waiting(t), len(l.m.told), len(l.runs))
	}
	for _, run := range l.runs {
		if shown := l.shown(run); !strings.HasSuffix(shown[len(shown)-1], "Succeeded Succeeded") {
			t.Errorf("%s: %v, dead letters %+v", run, shown, l.pending(run))
		}
	}
}
