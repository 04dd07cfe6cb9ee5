package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// plant holds the installed components, as the steps of an update change them.
type plant struct {
	ledger

	mu        sync.Mutex
	installed map[string]int
	unhealthy int // how often verify fails
	halfway   int // how often rollback fails after it has done its work
}

type change struct {
	Component string
	Version   int
}

func (p *plant) set(c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.installed[c.Component] = c.Version
}

func (p *plant) versions() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.installed)
}

// engine updates two components, verifies a day later, and rolls its updates back if that fails.
func (p *plant) engine() ([]AnyOrchestrator, []AnyActivity) {
	update := NewActivity("update", func(_ context.Context, c change) (change, error) {
		p.add("update " + c.Component)
		p.set(c)
		return c, nil
	})
	verify := NewActivity("verify", func(_ context.Context, version int) (int, error) {
		if p.add("verify") <= p.unhealthy {
			return 0, errors.New("unhealthy")
		}
		return version, nil
	})
	rollback := NewActivity("rollback", func(_ context.Context, c change) (change, error) {
		p.set(change{c.Component, 1})
		if p.add("rollback") <= p.halfway {
			return c, errors.New("connection lost")
		}
		return c, nil
	})
	components := []string{"database", "web"}
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		var updates []*Future[change]
		for _, component := range components {
			updates = append(updates, update.Call(ctx, change{component, 2}))
		}
		made, err := All(updates...)
		if err == nil {
			_, err = Timer(ctx, 24*time.Hour).Await()
		}
		if err == nil {
			_, err = verify.Call(ctx, 2).Await()
		}
		if err == nil {
			return fmt.Sprint("updated ", len(made)), nil
		}
		for _, component := range slices.Backward(components) {
			if _, failed := rollback.Call(ctx, change{component, 2}).Await(); failed != nil {
				return "", errors.Join(err, failed)
			}
		}
		return "", Permanent(err)
	})
	return []AnyOrchestrator{o}, []AnyActivity{update, verify, rollback}
}

// An engine that rolls its updates back, and then gets a second attempt, updates again: it does not succeed on work
// that it undid itself, also when the undo failed half way.
func TestARunNeverSucceedsOnWorkThatItUndid(t *testing.T) {
	t.Parallel()
	for name, again := range secondChances() {
		for halfway := range 2 {
			t.Run(fmt.Sprintf("%s, rollbacks that fail %d", name, halfway), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					w, p := newWorld(t), &plant{installed: map[string]int{}, unhealthy: 1, halfway: halfway}
					orchestrators, activities := p.engine()
					rt := w.signalling(t, nil, orchestrators, activities)
					mustRun(t, rt, startOf("a", 1))
					w.settle(t, rt)
					if out := mustGet(t, rt, "a"); out.Status != Failed {
						t.Fatalf("the first attempt: %s", stands(t, rt, "a"))
					}
					noError(t, again(t.Context(), rt))
					w.settle(t, rt)
					wants(t, "it ends", stands(t, rt, "a"), `Completed "updated 2"`)
					wants(t, "installed", p.versions(), map[string]int{"database": 2, "web": 2})
					wants(t, "updates", []int{p.count("update database"), p.count("update web")}, []int{2, 2})
					w.replays(t, rt)
				})
			})
		}
	}
}

// A run that failed without an answer in time waits as long again in the next attempt.
func TestAnApprovalThatTimedOutIsWaitedForAgain(t *testing.T) {
	t.Parallel()
	type wait struct {
		run     func(*Context) (bool, error)
		approve func(context.Context, *Runtime) error
	}
	waits := map[string]wait{
		"an event": {
			run: func(ctx *Context) (bool, error) {
				approval := Event[bool](ctx, "approval")
				if Any(ctx, approval, Timer(ctx, 48*time.Hour)) == 1 {
					Cancel(ctx, approval)
					return false, errors.New("nobody approved in time")
				}
				return approval.Await()
			},
			approve: func(ctx context.Context, rt *Runtime) error { return rt.Raise(ctx, "a", "approval", true, "") },
		},
		"a person": {
			run: func(ctx *Context) (bool, error) {
				asked := AskPerson[answer](ctx, question())
				if Any(ctx, asked, Timer(ctx, 48*time.Hour)) == 1 {
					Cancel(ctx, asked)
					return false, errors.New("nobody approved in time")
				}
				said, err := asked.Await()
				return said.Output.Approved, err
			},
			approve: answerLatest,
		},
	}
	for what, wait := range waits {
		for name, again := range secondChances() {
			t.Run(what+", "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					w := newWorld(t)
					o := NewOrchestrator("test", func(ctx *Context, _ int) (bool, error) { return wait.run(ctx) })
					rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
					mustRun(t, rt, startOf("a", 1))
					w.settle(t, rt)
					wants(t, "the first attempt", stands(t, rt, "a"), "Failed: nobody approved in time")
					noError(t, again(t.Context(), rt))
					w.attend(t, rt, 40*time.Hour)
					if out := mustGet(t, rt, "a"); out.Status != Running {
						t.Fatalf("the second attempt does not wait: %s after %v", stands(t, rt, "a"), out.EndedAt.Sub(out.StartedAt))
					}
					noError(t, wait.approve(t.Context(), rt))
					w.attend(t, rt, 10*time.Minute)
					wants(t, "the approval", stands(t, rt, "a"), "Completed true")
					w.replays(t, rt)
				})
			})
		}
	}
}

// answerLatest approves the task of the present attempt.
func answerLatest(ctx context.Context, rt *Runtime) error {
	out, err := rt.Get(ctx, "a")
	if err != nil {
		return err
	}
	asked := slices.IndexFunc(out.Calls, func(c Call) bool { return c.Kind == TaskCall })
	ref := tasks.Ref{Orchestration: "a", ID: out.Calls[asked].TaskID()}
	_, err = rt.Tasks().Complete(ctx, ref, ann, []byte(`{"approved":true}`), "", "")
	return err
}

// Between two attempts an orchestration is not over: an event and a command that arrive then are for the next attempt.
func TestAnEventBetweenTwoAttemptsIsKept(t *testing.T) {
	t.Parallel()
	type news struct {
		send func(context.Context, *Runtime) error
		want string
	}
	all := map[string]news{
		"an event":     {func(ctx context.Context, rt *Runtime) error { return rt.Raise(ctx, "a", "number", 5, "") }, "Completed 5"},
		"a cancel":     {func(ctx context.Context, rt *Runtime) error { return rt.Cancel(ctx, "a", "no need") }, "Canceled: the orchestration was canceled: no need"},
		"a suspension": {func(ctx context.Context, rt *Runtime) error { return rt.Suspend(ctx, "a", "no need") }, "Suspended"},
	}
	tests := map[string]func(*testing.T){}
	for name, news := range all {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			once := NewActivity("once", func(context.Context, int) (int, error) {
				if l.add("once") == 1 {
					return 0, errors.New("not yet")
				}
				return 1, nil
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{stepThenNumber(once)}, []AnyActivity{once})
			s := willRetry(startOf("a", 1))
			mustRun(t, rt, s)
			wants(t, "between the attempts, it is", mustGet(t, rt, "a").Status, Retrying)
			noError(t, news.send(t.Context(), rt))
			w.deliverDue(t, rt)
			time.Sleep(10 * time.Minute)
			mustRun(t, rt, s)
			w.attend(t, rt, time.Hour)
			if got := stands(t, rt, "a"); !strings.HasPrefix(got, news.want) {
				t.Errorf("after the next attempt: %s, want %s", got, news.want)
			}
		}
	}
	inBubbles(t, tests)
}

// stepThenNumber calls a step, and returns the event "number".
func stepThenNumber(step *Activity[int, int]) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		if _, err := step.Call(ctx, n).Await(); err != nil {
			return 0, err
		}
		return Event[int](ctx, "number").Await()
	})
}

// The effects of an execution's last round are carried out before anything follows it, wherever the committing process
// died.
func TestEffectsArePaidBeforeTheNextExecution(t *testing.T) {
	t.Parallel()
	start := func(reuse Reuse) func(context.Context, *Runtime) error {
		return func(ctx context.Context, rt *Runtime) error {
			_, err := rt.Start(ctx, startRequest("a", 2, "second", reuse))
			return err
		}
	}
	followers := secondChances()
	followers["it is restarted"] = func(ctx context.Context, rt *Runtime) error {
		_, err := rt.Restart(ctx, "a", "restart")
		return err
	}
	followers["its id is used again"] = start(ReuseEnded)
	followers["its id is used again in any case"] = start(ReuseAny)
	followers["it is purged"] = func(ctx context.Context, rt *Runtime) error { return rt.Purge(ctx, "a") }
	for name, follow := range followers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := &faults.Plan{}
			synctest.Test(t, func(t *testing.T) { owing(t, count, follow) })
			for at := range count.Calls() {
				inSample(t, fmt.Sprint("died after call ", at+1), func(t *testing.T) {
					owing(t, &faults.Plan{At: at + 1, Fault: faults.CrashAfter}, follow)
				})
			}
		})
	}
}

// owing ends an execution in a process with the plan, with a publication and a detached start in its last round, and
// checks that both happened after follow.
func owing(t *testing.T, plan *faults.Plan, follow func(context.Context, *Runtime) error) {
	w, p := newWorld(t), &post{}
	other := NewOrchestrator("other", func(*Context, int) (int, error) { return 1, nil })
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		if ctx.Execution() > 1 {
			return n, nil
		}
		if err := ctx.Publish(Publication{TenantID: "t", Type: "owed", Payload: []byte("1")}); err != nil {
			return 0, err
		}
		if _, err := other.Start(ctx, "b", n); err != nil {
			return 0, err
		}
		return 0, errors.New("not yet")
	})
	code := []AnyOrchestrator{o, other}
	_, _ = w.publishing(t, plan, p, code, nil).Run(t.Context(), startOf("a", 1)) // it may die
	rt := w.publishing(t, nil, p, code, nil)
	if out, err := rt.Get(t.Context(), "a"); err != nil || !out.Ended() {
		return // it has died before that
	}
	noError(t, follow(t.Context(), rt))
	w.settle(t, rt)
	if len(p.events) != 1 {
		t.Errorf("%d events were published, 1 is owed", len(p.events))
	}
	wants(t, "the detached start", stands(t, rt, "b"), "Completed 1")
}

// A start that takes the id of a run that another process drives ends that run. Its driver does nothing for the new
// one under the old correlation id, and its caller does not get the new run's outcome, whichever process gets the
// message of the new run.
func TestAReusedIDIsNotDrivenByTheOldRun(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, toOld := range map[string]bool{"the message comes to another process": false, "the message comes to the old process": true} {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			work := NewActivity("work", func(ctx context.Context, n int) (int, error) {
				l.add(fmt.Sprint(n, " for ", Info(ctx).CorrelationID))
				if n < 3 { // the old run's, which continues for a while
					time.Sleep(time.Duration(n) * time.Second)
				}
				return n, nil
			})
			o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
				_, err := All(work.Call(ctx, n), work.Call(ctx, n+1))
				return fmt.Sprint(n, " for ", ctx.CorrelationID()), err
			})
			code := []AnyOrchestrator{o}
			here, there := w.signalling(t, nil, code, []AnyActivity{work}), w.signalling(t, nil, code, []AnyActivity{work})
			before, after := startOf("a", 1), startRequest("a", 3, "second", ReuseAny)
			before.CorrelationID, after.CorrelationID = "old", "new"
			done := runInBackground(t.Context(), here, before)
			synctest.Wait()
			noError(t, errorOf(there.Start(t.Context(), after)))
			delivered := make(chan struct{})
			go func() {
				defer close(delivered)
				if toOld {
					w.deliverDue(t, here)
				}
			}()
			if r := <-done; r.err == nil && (r.out.CorrelationID != "old" || r.out.Status != Terminated) {
				t.Errorf("the old caller gets %s for %s: %s", r.out.Status, r.out.CorrelationID, r.out.Output)
			}
			<-delivered
			w.attend(t, there, time.Hour)
			wants(t, "the new run", stands(t, there, "a"), `Completed "3 for new"`)
			wants(t, "calls", l.all(), map[string]int{"1 for old": 1, "2 for old": 1, "3 for new": 1, "4 for new": 1})
			w.replays(t, there)
		}
	}
	inBubbles(t, tests)
}
