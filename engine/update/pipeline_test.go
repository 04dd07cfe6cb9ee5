package update_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/queues"
)

// plant is a site with everything that the engine runs on.
type plant struct {
	*site
	blobs  *blobs.Memory
	queues *queues.Memory

	mu   sync.Mutex
	told map[string]release.Finished // by key, as the outbox keeps them
}

// publish takes what the engine publishes.
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

const visibility = 30 * time.Second

func newPlant(t *testing.T) *plant {
	t.Helper()
	p := &plant{site: newSite(t), blobs: blobs.NewMemory(), queues: queues.NewMemory(), told: map[string]release.Finished{}}
	pipeline, rt := p.process(t, &faults.Plan{})
	if err := errors.Join(pipeline.Prepare(t.Context()), rt.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return p
}

// process is one process; with a plan that has crashed, nothing of it reaches storage any more.
func (p *plant) process(t *testing.T, plan *faults.Plan) (*engine.Pipeline, *orchestrator.Runtime) {
	t.Helper()
	return p.node(t, "", plan)
}

// node is a process of this name.
func (p *plant) node(t *testing.T, name string, plan *faults.Plan) (*engine.Pipeline, *orchestrator.Runtime) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, messages := faults.Tables(p.tables, plan.Intercept), faults.Queues(p.queues, plan.Intercept)
	reg := registry.New(store, "")
	d := update.Definition(p.steps(t, reg))
	var pipeline *engine.Pipeline
	rt, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: faults.Blobs(p.blobs, plan.Intercept), Queues: messages, Node: name, Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...),
		Publish: p.publish, Ended: func(ctx context.Context, out orchestrator.Outcome) error { return pipeline.Ended(ctx, out) }})
	if err != nil {
		t.Fatal(err)
	}
	pipeline, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: rt, Log: log, HostMaxDequeueCount: 8, Locks: reg,
		History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Queues: messages})
	if err != nil {
		t.Fatal(err)
	}
	return pipeline, rt
}

func (p *plant) send(t *testing.T, correlationID, input string) {
	t.Helper()
	p.sendFor(t, correlationID, "", input)
}

func (p *plant) sendFor(t *testing.T, correlationID, operation, input string) {
	t.Helper()
	body := fmt.Sprintf(`{"correlationId":%q,"engine":"update","operation":%q,"instanceId":%q,"input":%s}`, correlationID, operation, instance, input)
	if _, err := p.queues.Send(t.Context(), update.Queue, []byte(body), 0); err != nil {
		t.Fatal(err)
	}
}

// host delivers until the queues are empty, each message to the process that next gives.
func (p *plant) host(t *testing.T, next func() *engine.Pipeline) {
	t.Helper()
	for range 20_000 {
		left, idle := 0, true
		for _, queue := range []string{update.Queue, "orchestration-signals", "orchestration-schedules"} {
			n, err := p.queues.Length(t.Context(), queue)
			if err != nil {
				t.Error(err)
				return
			}
			left += n
			messages, err := p.queues.Receive(t.Context(), queue, 1, 10*time.Minute)
			if err != nil || len(messages) == 0 {
				continue
			}
			idle = false
			m, pipeline := messages[0], next()
			handle := pipeline.HandleSignal
			if queue == update.Queue {
				handle = pipeline.Handle
			}
			if handle(t.Context(), engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}) != nil {
				_, err = p.queues.Renew(t.Context(), queue, m.ID, m.PopReceipt, visibility)
			} else {
				err = p.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if left == 0 {
			return
		}
		if idle {
			time.Sleep(visibility / 3)
		}
	}
	t.Error("the messages do not come to rest")
}

// history is what the rows of a run say: operation and status, of the run, too, for the last.
func (p *plant) history(t *testing.T, correlationID string) []string {
	t.Helper()
	entries, err := engine.NewHistory(p.tables, "").Run(t.Context(), update.Engine, correlationID)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, e := range entries {
		rows = append(rows, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Operation, e.Status, e.RunStatus)))
	}
	return rows
}

func (p *plant) deadLetters(t *testing.T) []engine.DeadLetter {
	t.Helper()
	page, err := engine.NewDeadLetters(p.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{update.Engine}})
	if err != nil {
		t.Fatal(err)
	}
	return page.DeadLetters
}

func TestFromMessageToHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		pipeline, _ := p.process(t, &faults.Plan{})
		p.send(t, "c1", twoUp)
		p.host(t, func() *engine.Pipeline { return pipeline })
		want := []string{"process Succeeded", "component-update Succeeded", "component-update Succeeded Succeeded"}
		if diff := cmp.Diff(want, p.history(t, "c1")); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if dead, s := p.deadLetters(t), p.state(t); len(dead) != 0 || s.Version != "2.0" || s.Web != "1.1" || s.Lock != "" {
			t.Errorf("%+v, dead letters %+v", s, dead)
		}
	})
}

func TestFromMessageToDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		pipeline, _ := p.process(t, &faults.Plan{})
		p.send(t, "c1", withNew+updatetest.Broken+`"}]}`)
		p.host(t, func() *engine.Pipeline { return pipeline })
		dead := p.deadLetters(t)
		if len(dead) != 1 || dead[0].InstanceID != instance || !strings.Contains(dead[0].ErrorMessage, "it does not start; all components are what they were before") {
			t.Errorf("dead letters: %+v", dead)
		}
		want := []string{"process Succeeded", "component-update Succeeded", "component-update Succeeded", "component-update Failed",
			"component-update Succeeded", "component-update Succeeded", "component-update Succeeded Failed"}
		if diff := cmp.Diff(want, p.history(t, "c1")); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		if s := p.state(t); s.Web != "1.0" || s.Db != "7" || s.Version != "" || s.Pending || s.Lock != "" {
			t.Errorf("%+v", s)
		}
	})
}

// A dead letter of an update that nobody approved in time asks again when it is retried.
func TestAnApprovalIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		pipeline, rt := p.process(t, &faults.Plan{})
		next := func() *engine.Pipeline { return pipeline }
		asked := strings.Replace(twoUp, "{", `{"approval":{"deadlineSeconds":86400},`, 1)
		began := time.Now()
		p.send(t, "c1", asked)
		p.host(t, next)
		if dead, took := p.deadLetters(t), time.Since(began); len(dead) != 1 || took < 24*time.Hour || took > 25*time.Hour {
			t.Errorf("after %v: %+v", took, dead)
		}
		p.send(t, "c1", asked)
		go func() {
			time.Sleep(20 * time.Hour)
			asked, err := rt.Tasks().List(t.Context(), tasks.Filter{}, 2, "")
			if err != nil || len(asked.Tasks) != 1 {
				t.Errorf("open tasks: %+v, %v", asked, err)
				return
			}
			if _, err := rt.Tasks().Complete(t.Context(), asked.Tasks[0].Ref, tasks.Person{ID: "ann"}, []byte(`{"approved":true}`), "", ""); err != nil {
				t.Error(err)
			}
		}()
		p.host(t, next)
		synctest.Wait()
		if s := p.state(t); s.Version != "2.0" || len(p.deadLetters(t)) != 1 {
			t.Errorf("%+v, dead letters %+v, history %v", s, p.deadLetters(t), p.history(t, "c1"))
		}
	})
}

// Two updates for one instance, sent together, to three processes at once: one runs, the other waits and runs after it;
// both succeed, and the registry and the components are those of the second.
func TestTwoUpdatesForOneInstance(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlant(t)
				p.send(t, "one", `{"version":"one","components":[{"name":"web","version":"one"},{"name":"db","version":"one"}]}`)
				p.send(t, "two", `{"version":"two","components":[{"name":"db","version":"two"},{"name":"web","version":"two"},{"name":"new","version":"two"}]}`)
				var hosts sync.WaitGroup
				for range 3 {
					pipeline, _ := p.process(t, &faults.Plan{})
					hosts.Go(func() { p.host(t, func() *engine.Pipeline { return pipeline }) })
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
					rows := p.history(t, id)
					if len(rows) != n || rows[n-1] != "component-update Succeeded Succeeded" {
						t.Errorf("history of %s: %v", id, rows)
					}
				}
				if dead := p.deadLetters(t); len(dead) != 0 {
					t.Errorf("dead letters: %+v", dead)
				}
			})
		})
	}
}

// A process that dies at any call while it updates, with another update waiting: whoever resumes goes on, gives the lock
// up, and the other runs.
func TestKilledWhileItHoldsTheLock(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan) (held bool) {
		t.Helper()
		p := newPlant(t)
		p.send(t, "one", twoUp)
		p.send(t, "two", `{"version":"three","components":[{"name":"web","version":"three"}]}`)
		pipeline, _ := p.process(t, plan)
		dead := false
		next := func() *engine.Pipeline {
			if plan.Crashed() && !dead {
				dead, held = true, p.state(t).Lock != ""
				pipeline, _ = p.process(t, &faults.Plan{})
			}
			return pipeline
		}
		p.host(t, next)
		for _, id := range []string{"one", "two"} {
			rows := p.history(t, id)
			if len(rows) == 0 || rows[len(rows)-1] != "component-update Succeeded Succeeded" {
				t.Errorf("history of %s: %v", id, rows)
			}
		}
		if s := p.state(t); s.Lock != "" || s.Pending || s.Db != "8" || len(p.deadLetters(t)) != 0 {
			t.Errorf("%+v, dead letters %+v", s, p.deadLetters(t))
		}
		return held
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, count) })
	held := 0
	for at := range count.Calls() {
		for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied} {
			t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if run(t, &faults.Plan{At: at + 1, Fault: fault}) {
						held++
					}
				})
			})
		}
	}
	if held < 20 {
		t.Errorf("only %d processes died with the lock in their hands", held)
	}
}

// The runtime counts from 1 again when it has forgotten an orchestration. The components remember what they were asked for
// then, and are to take nothing that they are asked for now for a repetition of it.
func TestAfterAPurge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		pipeline, rt := p.process(t, &faults.Plan{})
		var want []string
		for _, id := range []string{"c1", "c1", "c2"} {
			p.send(t, id, withNew+updatetest.Broken+`"}]}`)
			p.host(t, func() *engine.Pipeline { return pipeline })
			want = append(want, "new 1", "web 1.1", "db "+updatetest.Broken, "db 7", "web 1.0", "new -")
			if err := rt.Purge(t.Context(), "update-"+instance); err != nil {
				t.Fatal(err)
			}
		}
		got := strings.ReplaceAll(strings.Join(p.server.Log(), ", "), instance+" ", "")
		if diff := cmp.Diff(strings.Join(want, ", "), got); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	})
}

// An update that was cut off and planned again goes back, if it must, to what was before it, not to what it left behind.
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
