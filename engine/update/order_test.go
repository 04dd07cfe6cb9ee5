package update_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/semver"

	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// webTo returns an update of the instance to a version, which is that of its only component, too.
func webTo(version, more string) string {
	return fmt.Sprintf(`{"version":%q,"components":[{"name":"web","version":%[1]q}]%s}`, version, more)
}

// desired returns the desired state of the instance.
func (s *site) desired(t testing.TB) update.Desired {
	t.Helper()
	i, err := s.registry.Get(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	d, err := update.DesiredOf(i)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ends returns the outcomes of the runs, in order: "correlation id status", with the superseding version.
func (p *plant) ends() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []release.Finished
	for _, f := range p.told {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b release.Finished) int { return a.FinishedAtUtc.Compare(b.FinishedAtUtc) })
	var ends []string
	for _, f := range all {
		ends = append(ends, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.CorrelationID, f.Status, f.SupersededBy)))
	}
	return ends
}

// An older update that was requeued behind a newer one changes nothing, and its run, its history and its report name
// the newer release.
func TestTheOlderUpdateComesLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		p.send("new", webTo("2.1", ""))
		p.send("old", webTo("2.0", ""))
		var other sync.WaitGroup
		other.Go(func() { // both are delivered at the same time: the older one is requeued
			time.Sleep(time.Second)
			p.Run()
		})
		p.Run()
		other.Wait()
		if s, d := p.state(t), p.desired(t); s.Version != "2.1" || s.Web != "2.1" || s.Lock != "" || d.Version != "2.1" || d.CorrelationID != "new" {
			t.Errorf("%+v, desired %+v", s, d)
		}
		if diff := cmp.Diff([]string{"new Updated", "old Superseded 2.1"}, p.ends()); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"process Succeeded Succeeded"}, p.history("old")); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		out, err := p.Runtime().Get(t.Context(), "update-"+instance)
		if err != nil {
			t.Fatal(err)
		}
		var result update.Result
		if err := json.Unmarshal(out.Output, &result); err != nil || result.Status != release.Superseded || result.SupersededBy.Version != "2.1" || result.SupersededBy.CorrelationID != "new" {
			t.Errorf("%s, %v", out.Output, err)
		}
		if dead := p.deadLetters(); len(dead) != 0 {
			t.Errorf("dead letters: %+v", dead)
		}
	})
}

// Orders of updates, one after the other, and the outcome of each.
func TestWhichReleaseWins(t *testing.T) {
	t.Parallel()
	released := func(day int) string { return fmt.Sprintf(`,"released":"2026-11-%02dT00:00:00Z"`, day) }
	broken := func(version string) string {
		return fmt.Sprintf(`{"version":%q,"components":[{"name":"web","version":%q}]}`, version, updatetest.Broken)
	}
	one := func(component, version string) string {
		return fmt.Sprintf(`{"components":[{"name":%q,"version":%q}]}`, component, version)
	}
	for name, c := range map[string]struct {
		inputs, want []string
		web, version string
	}{
		"newer by version":                {inputs: []string{webTo("2.9", ""), webTo("2.10", "")}, want: []string{"Updated", "Updated"}, web: "2.10", version: "2.10"},
		"older by version":                {inputs: []string{webTo("2.10", ""), webTo("2.9", released(9))}, want: []string{"Updated", "Superseded 2.10"}, web: "2.10", version: "2.10"},
		"older by time":                   {inputs: []string{webTo("b", released(2)), webTo("a", released(1))}, want: []string{"Updated", "Superseded b"}, web: "b", version: "b"},
		"no order":                        {inputs: []string{webTo("b", released(2)), webTo("a", "")}, want: []string{"Updated", "Updated"}, web: "a", version: "a"},
		"the same again":                  {inputs: []string{webTo("2.0", ""), webTo("2.0", "")}, want: []string{"Updated", "Updated"}, web: "2.0", version: "2.0"},
		"a downgrade":                     {inputs: []string{webTo("2.1", ""), webTo("2.0", `,"downgrade":true`)}, want: []string{"Updated", "Updated"}, web: "2.0", version: "2.0"},
		"behind a downgrade":              {inputs: []string{webTo("2.1", ""), webTo("1.9", `,"downgrade":true`), webTo("2.0", "")}, want: []string{"Updated", "Updated", "Updated"}, web: "2.0", version: "2.0"},
		"behind one that was rolled back": {inputs: []string{broken("2.1"), webTo("2.0", ""), webTo("2.0", `,"downgrade":true`)}, want: []string{"RolledBack", "Superseded 2.1", "Updated"}, web: "2.0", version: "2.0"},
		"of a component":                  {inputs: []string{one("web", "1.2"), one("web", "1.1"), one("db", "1.1")}, want: []string{"Updated", "Superseded 1.2", "Updated"}, web: "1.2"},
		"a component behind a release":    {inputs: []string{webTo("2.0", ""), one("web", "1.9")}, want: []string{"Updated", "Superseded 2.0"}, web: "2.0", version: "2.0"},
		"a release behind a component":    {inputs: []string{one("web", "1.9"), webTo("1.5", "")}, want: []string{"Updated", "Updated"}, web: "1.5", version: "1.5"},
		"before there was a note":         {inputs: []string{"noted 3.0", webTo("2.0", "")}, want: []string{"Superseded 3.0"}, web: "1.0", version: "3.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlant(t)
				for n, input := range c.inputs {
					if version, ok := strings.CutPrefix(input, "noted "); ok {
						_, err := p.registry.Update(t.Context(), instance, "", func(i *registry.Instance) error { return i.SetField("version", version) })
						if err != nil {
							t.Fatal(err)
						}
						continue
					}
					operation := update.OperationProcess
					if !strings.Contains(input, `{"version"`) || strings.HasPrefix(input, `{"components"`) {
						operation = update.OperationComponentUpdate
					}
					p.sendFor(fmt.Sprint("c", n), operation, input)
					p.Run()
				}
				var want []string
				for n, end := range c.want {
					want = append(want, fmt.Sprintf("c%d %s", n+len(c.inputs)-len(c.want), end))
				}
				if diff := cmp.Diff(want, p.ends()); diff != "" {
					t.Errorf("ends (-want +got):\n%s", diff)
				}
				if s := p.state(t); s.Web != c.web || s.Version != c.version || s.Lock != "" || s.Pending {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A superseded update asks for no approval: an update that waited behind another one checks before it asks. The ring
// names the approvers where the message does not.
func TestNobodyIsAskedForWhatIsSuperseded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more string
		asks bool
	}{
		"older, by its message": {more: `2.0,"approval":{"roles":["owner"]}`},
		"older, by its ring":    {more: `2.0,"ring":"canary"`},
		"newer, by its ring":    {more: `2.2,"ring":"canary"`, asks: true},
		"another ring":          {more: `2.2,"ring":"stable"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlant(t)
				version, more, _ := strings.Cut(c.more, ",")
				p.send("first", webTo("2.1", ""))
				p.Run()
				p.send("second", webTo(version, ","+more))
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.Run()
				}()
				time.Sleep(time.Minute)
				open, err := p.Runtime().Tasks().List(t.Context(), tasks.Filter{}, 2, "")
				if err != nil || (len(open.Tasks) == 1) != c.asks {
					t.Errorf("asked: %+v, %v", open, err)
				}
				if c.asks && len(open.Tasks) == 1 {
					if roles := open.Tasks[0].Roles; !slices.Equal(roles, []string{"approver"}) {
						t.Errorf("asked %v", roles)
					}
					if _, err := p.Runtime().Tasks().Complete(t.Context(), open.Tasks[0].Ref, tasks.Person{ID: "ann", Roles: []string{"approver"}}, []byte(`{"approved":true}`), "", ""); err != nil {
						t.Fatal(err)
					}
				}
				<-done
				end := map[string]string{"2.0": "second Superseded 2.1", "2.2": "second Updated"}[version]
				if diff := cmp.Diff([]string{"first Updated", end}, p.ends()); diff != "" {
					t.Errorf("ends (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// wanted is a message of the random test, and the approver's answer.
type wanted struct {
	version, said     string
	broken, downgrade bool
}

func (m wanted) input() string {
	target := m.version
	if m.broken {
		target = updatetest.Broken
	}
	more := ""
	if m.said != "" {
		more += fmt.Sprintf(`,"approval":{"assignee":%q}`, m.said)
	}
	if m.downgrade {
		more += `,"downgrade":true`
	}
	return fmt.Sprintf(`{"version":%q,"components":[{"name":"web","version":%q}]%s}`, m.version, target, more)
}

// reference is an instance that handles one message after the other.
type reference struct{ desired, has, web string }

func (r *reference) take(m wanted) string {
	switch {
	case !m.downgrade && r.desired != "" && semver.Compare("v"+m.version, "v"+r.desired) < 0:
		return "Superseded " + r.desired
	case m.said == "no":
		return "Rejected"
	}
	r.desired = m.version
	if m.broken {
		return "RolledBack"
	}
	r.has, r.web = m.version, m.version
	return "Updated"
}

// Random updates in random orders, to several processes of which one dies, with approvals, failures and downgrades.
// In any order of the runs, the outcomes of the runs and of the instance are the same as one after the other.
func TestRandomUpdates(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { randomUpdates(t, rand.New(rand.NewPCG(uint64(seed), 17))) })
		})
	}
}

func randomUpdates(t *testing.T, r *rand.Rand) {
	t.Helper()
	p := newPlant(t)
	messages := map[string]wanted{}
	for n := range 2 + r.IntN(5) {
		m := wanted{version: []string{"2.0", "2.1", "2.2", "2.10"}[r.IntN(4)], said: []string{"", "", "yes", "no"}[r.IntN(4)], broken: r.IntN(4) == 0, downgrade: r.IntN(5) == 0}
		messages[fmt.Sprint("c", n)] = m
		p.send(fmt.Sprint("c", n), m.input())
	}
	var hosts sync.WaitGroup
	hosts.Go(func() { p.answer(t) })
	crash := &enginetest.Plan{At: 1 + r.IntN(300), Fault: []enginetest.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied}[r.IntN(3)]}
	for _, process := range []*enginetest.Process{p.Restart(crash), p.Restart(nil)} {
		hosts.Go(func() { process.Run() })
	}
	hosts.Wait()
	model, decided := reference{has: "", web: "1.0"}, map[string]bool{}
	for _, end := range p.ends() {
		id, status, _ := strings.Cut(end, " ")
		if strings.HasPrefix(status, "Failed") { // an attempt that the dead process could not finish
			continue
		}
		// A process that dies between the end of a failed run and its dead letter leaves the message to another
		// attempt.
		again := decided[id] && status != "RolledBack"
		if want := model.take(messages[id]); again || status != want {
			t.Errorf("%s %+v: %s, want %s", id, messages[id], status, want)
		}
		decided[id] = true
	}
	s, d := p.state(t), p.desired(t)
	if got := (reference{d.Version, s.Version, s.Web}); len(decided) != len(messages) || got != model || s.Lock != "" {
		t.Errorf("%d of %d ended; %+v, want %+v, lock %q\n%+v\n%v", len(decided), len(messages), got, model, s.Lock, messages, p.ends())
	}
}

// answer answers each task as its assignee's name says, until no message is left.
func (p *plant) answer(t *testing.T) {
	for range 1000 {
		time.Sleep(time.Minute)
		open, err := p.Runtime().Tasks().List(t.Context(), tasks.Filter{}, 10, "")
		if err != nil {
			t.Error(err)
			return
		}
		for _, task := range open.Tasks {
			_, err := p.Runtime().Tasks().Complete(t.Context(), task.Ref, tasks.Person{ID: task.Assignee}, fmt.Appendf(nil, `{"approved":%v}`, task.Assignee == "yes"), "", "")
			if err != nil {
				t.Log(err) // it has ended meanwhile
			}
		}
		if n, err := p.Queues.Length(t.Context(), update.Queue); err != nil || n == 0 && len(open.Tasks) == 0 {
			return
		}
	}
}

// An update of an unregistered instance is dead-lettered immediately.
func TestUnknownInstance(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"to be asked for": `,"approval":{}`, "at once": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlant(t)
				p.Send(update.Queue, fmt.Sprintf(`{"correlationId":"c1","engine":"update","instanceId":"nobody","input":%s}`, webTo("2.0", more)))
				p.Run()
				dead := p.deadLetters()
				if len(dead) != 1 || dead[0].DequeueCount != 1 || !strings.Contains(dead[0].ErrorMessage, "not in the registry") {
					t.Errorf("%+v", dead)
				}
			})
		})
	}
}

// The engine decides as when these histories were written, in which runs check before they ask and report their
// outcome.
func TestGoldenOrder(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden-ring.json", newSite(t).scenario(t, message("", strings.Replace(twoUp, "{", `{"ring":"canary","released":"2026-11-01T00:00:00Z",`, 1)), nil,
		orchestratortest.Step{At: time.Hour, Task: update.TaskApproval, Data: update.Decision{Approved: true}, By: "ann"}))
	s := newSite(t)
	if _, err := s.registry.Update(t.Context(), instance, "", func(i *registry.Instance) error { return i.SetField("version", "3.0") }); err != nil {
		t.Fatal(err)
	}
	orchestratortest.Golden(t, "testdata/golden-superseded.json", s.scenario(t, message("", twoUp), nil))
	orchestratortest.Golden(t, "testdata/golden-told.json", newSite(t).scenario(t, message("", withNew+updatetest.Broken+`"}]}`), nil))
}
