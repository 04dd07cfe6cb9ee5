package update_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// plant is a site with the engine's whole environment.
type plant struct {
	*site
	*enginetest.World

	mu   sync.Mutex
	told map[string]release.Finished // by key, as the outbox keeps them
}

// publish records the engine's events.
func (p *plant) publish(_ context.Context, events []orchestrator.Publication) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		var f release.Finished
		if err := json.Unmarshal(e.Payload, &f); err != nil || e.Type != release.EventFinished || e.OrderKey == "" {
			return fmt.Errorf("event %+v: %w", e, err)
		}
		p.told[e.Key] = f
	}
	return nil
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	p := &plant{site: newSite(t), told: map[string]release.Finished{}}
	p.World = enginetest.New(t, enginetest.Config{Tables: p.tables, Publish: p.publish,
		Engines: func(s enginetest.Stores) []engine.Definition {
			return []engine.Definition{update.Definition(p.steps(t, registry.New(s.Tables, "")))}
		}})
	return p
}

func (p *plant) send(correlationID, input string) { p.sendFor(correlationID, "", input) }

func (p *plant) sendFor(correlationID, operation, input string) {
	p.Send(update.Queue, fmt.Sprintf(`{"correlationId":%q,"engine":"update","operation":%q,"instanceId":%q,"input":%s}`,
		correlationID, operation, instance, input))
}

// history returns the rows of a run: operation and status, and the run's status for the last.
func (p *plant) history(correlationID string) (rows []string) {
	for _, e := range p.History(update.Engine, correlationID) {
		rows = append(rows, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Operation, e.Status, e.RunStatus)))
	}
	return rows
}

func (p *plant) deadLetters() []engine.DeadLetter { return p.DeadLetters(update.Engine) }

func TestFromMessageToHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		p.send("c1", twoUp)
		p.Run()
		want := []string{"process Succeeded", "component-update Succeeded", "component-update Succeeded Succeeded"}
		if diff := cmp.Diff(want, p.history("c1")); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if dead, s := p.deadLetters(), p.state(t); len(dead) != 0 || s.Version != "2.0" || s.Web != "1.1" || s.Lock != "" {
			t.Errorf("%+v, dead letters %+v", s, dead)
		}
	})
}

func TestFromMessageToDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		p.send("c1", withNew+updatetest.Broken+`"}]}`)
		p.Run()
		dead := p.deadLetters()
		if len(dead) != 1 || dead[0].InstanceID != instance || !strings.Contains(dead[0].ErrorMessage, "it does not start; all components are what they were before") {
			t.Errorf("dead letters: %+v", dead)
		}
		want := []string{"process Succeeded", "component-update Succeeded", "component-update Succeeded", "component-update Failed",
			"component-update Succeeded", "component-update Succeeded", "component-update Succeeded", "process Failed Failed"}
		if diff := cmp.Diff(want, p.history("c1")); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if s := p.state(t); s.Web != "1.0" || s.Db != "7" || s.Version != "" || s.Pending || s.Lock != "" {
			t.Errorf("%+v", s)
		}
	})
}

// The retry of an update whose approval timed out asks again.
func TestAnApprovalIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		asked := strings.Replace(twoUp, "{", `{"approval":{"deadlineSeconds":86400},`, 1)
		began := time.Now()
		p.send("c1", asked)
		p.Run()
		if dead, took := p.deadLetters(), time.Since(began); len(dead) != 1 || took < 24*time.Hour || took > 25*time.Hour {
			t.Errorf("after %v: %+v", took, dead)
		}
		p.send("c1", asked)
		go func() {
			time.Sleep(20 * time.Hour)
			asked, err := p.Runtime().Tasks().List(t.Context(), tasks.Filter{}, 2, "")
			if err != nil || len(asked.Tasks) != 1 {
				t.Errorf("open tasks: %+v, %v", asked, err)
				return
			}
			if _, err := p.Runtime().Tasks().Complete(t.Context(), asked.Tasks[0].Ref, tasks.Person{ID: "ann"}, []byte(`{"approved":true}`), "", ""); err != nil {
				t.Error(err)
			}
		}()
		p.Run()
		synctest.Wait()
		if s := p.state(t); s.Version != "2.0" || len(p.deadLetters()) != 1 {
			t.Errorf("%+v, dead letters %+v, history %v", s, p.deadLetters(), p.history("c1"))
		}
	})
}

// Two updates for one instance, sent together, to three processes: one runs, the other waits and runs after it; both
// succeed, and the registry and the components are those of the second.
func TestTwoUpdatesForOneInstance(t *testing.T) {
	t.Parallel()
	for _, round := range sample.Seeds(t, 20) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlant(t)
				p.send("one", `{"version":"one","components":[{"name":"web","version":"one"},{"name":"db","version":"one"}]}`)
				p.send("two", `{"version":"two","components":[{"name":"db","version":"two"},{"name":"web","version":"two"},{"name":"new","version":"two"}]}`)
				var hosts sync.WaitGroup
				for range 3 {
					process := p.Restart(nil)
					hosts.Go(func() { process.Run() })
				}
				hosts.Wait()
				done := strings.ReplaceAll(strings.Join(p.server.Log(), ", "), instance+" ", "")
				one, two := "web one, db one", "db two, web two, new two"
				last := "two"
				if done != one+", "+two {
					last = "one"
				}
				if done != one+", "+two && done != two+", "+one {
					t.Errorf("they got in each other's way: %s", done)
				}
				want := state{Web: last, Db: last, New: "two", Version: last, Noted: map[string]string{"web": last, "db": last, "new": "two", "cache": "3"}}
				if diff := cmp.Diff(want, p.state(t)); diff != "" {
					t.Errorf("state (-want +got):\n%s", diff)
				}
				for id, n := range map[string]int{"one": 3, "two": 4} {
					rows := p.history(id)
					if len(rows) != n || rows[n-1] != "component-update Succeeded Succeeded" {
						t.Errorf("history of %s: %v", id, rows)
					}
				}
				if dead := p.deadLetters(); len(dead) != 0 {
					t.Errorf("dead letters: %+v", dead)
				}
			})
		})
	}
}

// A process dies at any call of an update, while another update waits: the next process continues, releases the lock,
// and the other update runs.
func TestKilledWhileItHoldsTheLock(t *testing.T) {
	t.Parallel()
	refused := func(_ int, _ enginetest.Call, f enginetest.Fault) bool { return f > faults.Applied }
	enginetest.FailEverywhere(t, refused, func(t *testing.T, plan *enginetest.Plan) {
		p := newPlant(t)
		p.send("one", twoUp)
		p.send("two", `{"version":"three","components":[{"name":"web","version":"three"}]}`)
		held := 0
		plan.Refuse = func(enginetest.Call) bool {
			if p.state(t).Lock != "" {
				held++
			}
			return false
		}
		p.Restart(plan)
		p.Run()
		for _, id := range []string{"one", "two"} {
			rows := p.history(id)
			if len(rows) == 0 || rows[len(rows)-1] != "component-update Succeeded Succeeded" {
				t.Errorf("history of %s: %v", id, rows)
			}
		}
		if s := p.state(t); s.Lock != "" || s.Pending || s.Db != "8" || len(p.deadLetters()) != 0 {
			t.Errorf("%+v, dead letters %+v", s, p.deadLetters())
		}
		if plan.At == 0 && held < 10 {
			t.Errorf("only %d calls with the lock in its hands", held)
		}
	})
}

// The runtime counts from 1 again when an orchestration was purged. The components remember the old requests, and
// must not take new ones for repeats.
func TestAfterAPurge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		var want []string
		for _, id := range []string{"c1", "c1", "c2"} {
			p.send(id, withNew+updatetest.Broken+`"}]}`)
			p.Run()
			want = append(want, "new 1", "web 1.1", "db "+updatetest.Broken, "db 7", "web 1.0", "new -")
			if err := p.Runtime().Purge(t.Context(), "update-"+instance); err != nil {
				t.Fatal(err)
			}
		}
		got := strings.ReplaceAll(strings.Join(p.server.Log(), ", "), instance+" ", "")
		if diff := cmp.Diff(strings.Join(want, ", "), got); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	})
}

// An update that was cut off and planned again rolls back to the state before it, not to the one that it left behind.
func TestPlanOfAnUpdateThatWasCutOff(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	steps := s.steps(t, s.registry)
	plan := func(job string) []update.Change {
		if _, err := s.registry.Acquire(t.Context(), instance, job, 0); err != nil {
			t.Fatal(err)
		}
		got, err := steps.Process(t.Context(), update.ProcessInput{InstanceID: instance, JobID: job, Components: []update.Target{{Name: "web", Version: "1.1"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.registry.Release(t.Context(), instance, job); err != nil {
			t.Fatal(err)
		}
		return got.Changes
	}
	first := plan("one")
	s.server.Install(instance, "web", "1.1") // and then it was cut off
	if diff := cmp.Diff(first, plan("one")); diff != "" {
		t.Errorf("planned again (-first +got):\n%s", diff)
	}
	if other := plan("two"); other[0].From != "1.1" {
		t.Errorf("another update: %+v", other)
	}
	_, err := steps.ComponentUpdate(t.Context(), update.ComponentInput{InstanceID: instance, JobID: "two", Change: update.Change{Component: "web", To: "2"}})
	if !errors.Is(err, registry.ErrLocked) || s.server.Version(instance, "web") != "1.1" || len(s.server.Log()) != 0 {
		t.Errorf("without the lock: %v, asked for %v", err, s.server.Log())
	}
}
