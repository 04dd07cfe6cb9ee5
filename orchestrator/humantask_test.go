package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

var ann = tasks.Person{ID: "ann", Roles: []string{"approver"}}

type answer struct {
	Approved bool `json:"approved"`
}

// withPeople are the scenarios with human tasks.
func withPeople() map[string]scenario {
	return map[string]scenario{
		"a person answers":   {make: withQuestion, output: `"ann says true, 3"`, operate: []request{{time.Hour, answers(ann, 0, true)}}},
		"nobody answers":     {make: withQuestion, output: `"too late"`, operate: []request{{30 * time.Hour, tooLate}}},
		"an escalation":      {make: withEscalation, output: `"true"`, operate: []request{{3 * time.Hour, answers(tasks.Person{ID: "boss", Roles: []string{"manager"}}, 0, true)}}},
		"three are asked":    {make: withThreeQuestions, output: `"first 1"`, operate: []request{{time.Hour, answers(ann, 1, true)}}},
		"ends with a task":   {make: withLeftTask, output: `2`},
		"terminated tasks":   {make: withQuestion, status: Terminated, output: "the orchestration was terminated: enough", operate: []request{{time.Hour, func(ctx context.Context, rt *Runtime) error { return rt.Terminate(ctx, "a", "enough") }}}},
		"generations of it":  {make: withTaskGenerations, output: `"3 true"`, operate: []request{{time.Hour, answersAny(ann)}}},
		"fails, asks anew":   {make: withFailureAfterAnswer, output: `"true 2"`, most: map[string]int{"picky": 4}, operate: []request{{time.Hour, answers(ann, 0, true)}, {3 * time.Hour, runAgain}}},
		"canceled by others": {make: withQuestion, status: Canceled, output: "the orchestration was canceled: enough", operate: []request{{time.Hour, func(ctx context.Context, rt *Runtime) error { return rt.Cancel(ctx, "a", "enough") }}}},
	}
}

// answers completes the n-th of the tasks that orchestration a ever made.
func answers(by tasks.Person, n int, approved bool) func(context.Context, *Runtime) error {
	return func(ctx context.Context, rt *Runtime) error {
		ref, err := taskOf(ctx, rt, n)
		if err != nil {
			return err
		}
		_, err = rt.Tasks().Complete(ctx, ref, by, fmt.Appendf(nil, `{"approved":%v}`, approved), "", "")
		return err
	}
}

// answersAny completes the task that is open.
func answersAny(by tasks.Person) func(context.Context, *Runtime) error {
	return func(ctx context.Context, rt *Runtime) error {
		done, err := rt.Tasks().List(ctx, tasks.Filter{Status: tasks.Completed}, 1, "")
		if err != nil || len(done.Tasks) > 0 {
			return err
		}
		page, err := rt.Tasks().List(ctx, tasks.Filter{Role: by.Roles[0]}, 1, "")
		if err == nil && len(page.Tasks) == 0 {
			err = errors.New("no task yet")
		}
		if err != nil {
			return err
		}
		_, err = rt.Tasks().Complete(ctx, page.Tasks[0].Ref, by, []byte(`{"approved":true}`), "", "")
		return err
	}
}

func taskOf(ctx context.Context, rt *Runtime, n int) (tasks.Ref, error) {
	out, err := rt.Get(ctx, "a")
	if err != nil {
		return tasks.Ref{}, err
	}
	for _, o := range append(out.Earlier, out) {
		for _, c := range o.Calls {
			if c.Kind != TaskCall {
				continue
			}
			if n == 0 {
				return tasks.Ref{Orchestration: "a", ID: c.TaskID()}, nil
			}
			n--
		}
	}
	return tasks.Ref{}, errors.New("no such task yet")
}

// tooLate: a canceled task cannot be completed.
func tooLate(ctx context.Context, rt *Runtime) error {
	err := answers(ann, 0, true)(ctx, rt)
	if errors.Is(err, tasks.ErrConflict) {
		return nil
	}
	return fmt.Errorf("completion of a canceled task: %v", err)
}

func question() HumanTask {
	return HumanTask{Name: "approve the update", Roles: []string{"approver"}, Payload: map[string]int{"version": 2}, Due: 4 * time.Hour,
		Form: json.RawMessage(`{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}`)}
}

func withQuestion(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		asked := AskPerson[answer](ctx, question())
		if Any(ctx, asked, Timer(ctx, 24*time.Hour)) == 1 {
			Cancel(ctx, asked)
			return "too late", nil
		}
		said, err := asked.Await()
		if err != nil {
			return "", err
		}
		v, err = step.Call(ctx, v).Await()
		return fmt.Sprintf("%s says %v, %d", said.By, said.Output.Approved, v), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

func withEscalation(*ledger) ([]AnyOrchestrator, []AnyActivity) {
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		h := question()
		h.Escalation = &Escalation{After: 2 * time.Hour, Roles: []string{"manager"}}
		said, err := AskPerson[answer](ctx, h).Await()
		return fmt.Sprint(said.Output.Approved), err
	})
	return []AnyOrchestrator{o}, nil
}

// withThreeQuestions wants the first of three answers.
func withThreeQuestions(*ledger) ([]AnyOrchestrator, []AnyActivity) {
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		a, b, c := AskPerson[answer](ctx, question()), AskPerson[answer](ctx, question()), AskPerson[answer](ctx, question())
		first := Any(ctx, a, b, c)
		Cancel(ctx, a, b, c)
		return fmt.Sprint("first ", first), nil
	})
	return []AnyOrchestrator{o}, nil
}

// withLeftTask ends with an open human task.
func withLeftTask(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		AskPerson[answer](ctx, question())
		return step.Call(ctx, n).Await()
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

// withTaskGenerations leaves a task behind in each generation but the last.
func withTaskGenerations(*ledger) ([]AnyOrchestrator, []AnyActivity) {
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		asked := AskPerson[answer](ctx, question())
		if n < 3 {
			_ = ctx.Sleep(time.Minute)
			return "", ContinueAsNew(n + 1)
		}
		said, err := asked.Await()
		return fmt.Sprint(n, " ", said.Output.Approved), err
	})
	return []AnyOrchestrator{o}, nil
}

// withFailureAfterAnswer fails once after the answer, which the next execution has.
func withFailureAfterAnswer(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	picky := NewActivity("picky", func(ctx context.Context, n int) (int, error) {
		l.add("picky")
		if Info(ctx).Execution == 1 {
			return 0, errors.New("not yet")
		}
		return n + 1, nil
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		said, err := AskPerson[answer](ctx, question()).Await()
		if err != nil {
			return "", err
		}
		v, err := picky.Call(ctx, n).Await()
		return fmt.Sprint(said.Output.Approved, " ", v), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{picky}
}

// checkTasks: each task of an orchestration has ended as its rounds say, and the index agrees.
func (w *world) checkTasks(t *testing.T, rt *Runtime, out Outcome) {
	t.Helper()
	service := rt.Tasks()
	ended := map[string]tasks.Status{}
	for _, o := range append(out.Earlier, out) {
		for _, c := range o.Calls {
			if c.Kind != TaskCall || c.Reused {
				continue
			}
			want := tasks.Canceled
			if c.Output != nil {
				want = tasks.Completed
			}
			got, err := service.Get(t.Context(), tasks.Ref{Orchestration: out.ID, ID: c.TaskID()})
			if errors.Is(err, tasks.ErrNotFound) && want == tasks.Canceled && c.EndedAt.IsZero() && len(out.Calls) >= maxOpenTasks {
				continue // made and canceled in one turn, so it never existed
			}
			if err != nil || got.Status != want {
				t.Errorf("task %s is %s, the rounds say %s: %v", got.Ref, got.Status, want, err)
			}
			ended[got.ID] = got.Status
		}
	}
	open, err := service.List(t.Context(), tasks.Filter{}, 100, "")
	if err != nil || len(open.Tasks) != 0 {
		t.Errorf("the index has %d open tasks: %v %v", len(open.Tasks), open.Tasks, err)
	}
	listed := map[string]tasks.Status{}
	for _, status := range []tasks.Status{tasks.Completed, tasks.Canceled} {
		page := must(service.List(t.Context(), tasks.Filter{Status: status}, 100, ""))(t)
		for _, e := range page.Tasks {
			listed[e.ID] = e.Status
		}
	}
	for id, status := range ended {
		if listed[id] != status {
			t.Errorf("the index says that task %s is %q, it is %s", id, listed[id], status)
		}
	}
}

// askedRun starts an orchestration that waits for an answer.
func askedRun(t *testing.T) (w *world, code deployment, rt *Runtime, task tasks.Ref) {
	t.Helper()
	w = newWorld(t)
	code.orchestrators, code.activities = withQuestion(&ledger{})
	rt = w.signalling(t, nil, code.orchestrators, code.activities)
	mustRun(t, rt, startOf("a", 1))
	task = must(taskOf(t.Context(), rt, 0))(t)
	return w, code, rt, task
}

// isAnswered checks that the run has ended with the answer, and its task with it.
func (w *world) isAnswered(t *testing.T, rt *Runtime) {
	t.Helper()
	out := mustGet(t, rt, "a")
	if string(out.Output) != `"ann says true, 3"` {
		t.Fatalf("%s %s", out.Status, out.Output)
	}
	w.checkTasks(t, rt, out)
}

// A task is completed, the process dies before it sends the signal, and the person does not retry.
func TestCompletionThatNobodyHearsOf(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, code, rt, ref := askedRun(t)
		plan := &faults.Plan{At: 4, Fault: faults.CrashBefore} // read, guard, end, then the signal
		dying := w.signalling(t, plan, code.orchestrators, code.activities)
		if _, err := dying.Tasks().Complete(t.Context(), ref, ann, []byte(`{"approved":true}`), "", ""); err == nil {
			t.Fatal("it was told")
		}
		if open, err := rt.Tasks().List(t.Context(), tasks.Filter{Role: "approver"}, 10, ""); err != nil || len(open.Tasks) != 1 {
			t.Fatalf("the index knows already: %v %v", open, err)
		}
		time.Sleep(time.Hour)
		if n, err := rt.Sweep(t.Context(), 10); n != 1 || err != nil {
			t.Fatalf("the sweeper woke %d: %v", n, err)
		}
		for w.deliver(t.Context(), t, rt) {
		}
		w.isAnswered(t, rt)
	})
}

// A task is completed while its orchestration is about to cancel it: the completion that was confirmed to the person
// counts.
func TestCompletionBeforeTheRoundThatGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, code, rt, ref := askedRun(t)
		time.Sleep(25 * time.Hour)
		completed := false
		late := w.configured(t, nil, Config{Orchestrators: code.orchestrators, Activities: code.activities, Queues: w.queues})
		before := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Operation == "Apply" && c.Target == "orchestrations" && !completed {
				completed = true
				if _, err := rt.Tasks().Complete(ctx, ref, ann, []byte(`{"approved":true}`), "", ""); err != nil {
					t.Errorf("completion: %v", err)
				}
			}
			return next(ctx)
		}
		late.config.Tables = faults.Tables(w.tables, before)
		late.journal.tables = late.config.Tables
		for w.deliver(t.Context(), t, late) {
		}
		if !completed {
			t.Error("the round that gives up was not committed")
		}
		w.isAnswered(t, rt)
	})
}

// Two people complete a task at the same time: one wins, the other learns the winner and the time.
func TestTwoPeopleAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, _, rt, ref := askedRun(t)
		results := make(chan error)
		for _, name := range []string{"ann", "bob"} {
			go func() {
				_, err := rt.Tasks().Complete(t.Context(), ref, tasks.Person{ID: name, Roles: []string{"approver"}}, []byte(`{"approved":true}`), "", "")
				results <- err
			}()
		}
		one, two := <-results, <-results
		if one != nil {
			one, two = two, one
		}
		var conflict *tasks.ConflictError
		if one != nil || !errors.As(two, &conflict) || conflict.Status != tasks.Completed || conflict.At.IsZero() {
			t.Fatalf("%v, %v", one, two)
		}
	})
}

// The snapshot names the task that the run waits for.
func TestSnapshotOfAWaitForAPerson(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, _, _, _ := askedRun(t)
		row := w.status(t, "a")
		got := []string{row.String("ActiveTaskId"), row.String("WaitingKind"), row.String("WaitingToken")}
		if diff := cmp.Diff([]string{"1-2", "TaskCompletion", "1-2"}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		state, err := decodeState(row.String("StateJson"))
		if until := row.Time("WaitingUntilUtc"); err != nil || until.IsZero() || !state.Waiting.UntilUtc.Equal(until) || state.Resume.EntryPointKind != "TaskOnComplete" {
			t.Errorf("%s: %v, want a wait until %v for the answer of a person", row.String("StateJson"), err, until)
		}
	})
}

// The branch of a resume pointer is the coroutine that waits.
func TestBranchOfTheResumePointer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
			return Go(ctx, func(ctx *Context) (int, error) { return Event[int](ctx, "number").Await() }).Await()
		})
		mustRun(t, w.signalling(t, nil, []AnyOrchestrator{o}, nil), startOf("a", 1))
		state, err := decodeState(w.status(t, "a").String("StateJson"))
		if diff := cmp.Diff([]int{2}, state.Resume.BranchPath); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	})
}

// An invalid task fails the call, and the error names the mistake.
func TestTasksThatCannotBe(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		bad := map[string]func(*HumanTask){
			"no name":       func(h *HumanTask) { h.Name = "" },
			"no schema":     func(h *HumanTask) { h.Form = json.RawMessage(`{"type":"nothing"}`) },
			"remote schema": func(h *HumanTask) { h.Form = json.RawMessage(`{"$ref":"https://example.com/schema"}`) },
			"large":         func(h *HumanTask) { h.Payload = make([]byte, tasks.MaxPayload) },
			"no time":       func(h *HumanTask) { h.Escalation = &Escalation{} },
			"no role":       func(h *HumanTask) { h.Roles = []string{""} },
		}
		o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
			refused := 0
			for _, spoil := range bad {
				h := question()
				spoil(&h)
				if _, err := AskPerson[answer](ctx, h).Await(); errors.Is(err, tasks.ErrInvalid) {
					refused++
				}
			}
			for range maxOpenTasks {
				AskPerson[answer](ctx, question())
			}
			if _, err := AskPerson[answer](ctx, question()).Await(); errors.Is(err, tasks.ErrInvalid) {
				refused++
			}
			return refused, nil
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		out := mustRun(t, rt, startOf("a", 1))
		if string(out.Output) != fmt.Sprint(len(bad)+1) {
			t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
		}
		w.checkTasks(t, rt, out)
		noError(t, rt.Purge(t.Context(), "a"))
		if left, err := rt.Tasks().List(t.Context(), tasks.Filter{Status: tasks.Canceled}, 100, ""); err != nil || len(left.Tasks) != 0 {
			t.Errorf("%d tasks of a purged orchestration are listed: %v", len(left.Tasks), err)
		}
	})
}
