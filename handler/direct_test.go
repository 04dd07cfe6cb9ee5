package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// errand is the behavior of a run of the engine "errand".
type errand struct {
	Event, Ask bool
	Nap        time.Duration
}

// errands is an app whose activity fails while broken is set.
type errands struct {
	broken atomic.Bool
	ran    atomic.Int64
}

func (e *errands) app() handler.App {
	work := orchestrator.NewActivity("work", func(context.Context, string) (string, error) {
		e.ran.Add(1)
		if e.broken.Load() {
			return "", orchestrator.Permanent(errors.New("it is broken"))
		}
		return "done", nil
	})
	child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, s string) (string, error) { return work.Call(ctx, s).Await() })
	run := func(ctx *orchestrator.Context, r engine.Request[errand]) (string, error) {
		if r.Input.Event {
			if _, err := orchestrator.Event[bool](ctx, "go").Await(); err != nil {
				return "", err
			}
		}
		if r.Input.Ask {
			if _, err := orchestrator.AskPerson[bool](ctx, orchestrator.HumanTask{Name: "approve"}).Await(); err != nil {
				return "", err
			}
		}
		if r.Input.Nap > 0 {
			if err := ctx.Sleep(r.Input.Nap); err != nil {
				return "", err
			}
		}
		return child.Call(ctx, "x").Await()
	}
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "errand", Queue: "errand-queue", Orchestrator: engine.Orchestrate("errand", run), Children: []orchestrator.AnyOrchestrator{child},
			Operations: []orchestrator.AnyActivity{work}, Intakes: []engine.Intake{{Function: "errand-intake", Route: "errands"}}}}, nil
	}}
}

// queueCalls counts requests by operation and queue.
type queueCalls struct {
	mu    sync.Mutex
	calls map[string]int
}

func (q *queueCalls) intercept(ctx context.Context, c faults.Call, do func(context.Context) error) error {
	q.mu.Lock()
	q.calls[c.Operation+" "+c.Target]++
	q.mu.Unlock()
	return do(ctx)
}

// take returns the counts since its last call.
func (q *queueCalls) take() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.calls
	q.calls = map[string]int{}
	return taken
}

// eager returns an app that handles its own messages immediately; nothing is delivered to it.
func eager(t *testing.T, a handler.App) (*handlertest.Host, *queueCalls) {
	calls := &queueCalls{calls: map[string]int{}}
	h := handlertest.NewWith(t, a, map[string]string{"ROUNDHOUSE_DIRECT": "64"}, func(c *handler.Config) { c.Queues = faults.Queues(c.Queues, calls.intercept) })
	calls.take()
	return h, calls
}

// post sends a request that is accepted, and runs its consequences in the app.
func post(t *testing.T, h *handlertest.Host, path, body string) string {
	t.Helper()
	status, answer := h.Do(http.MethodPost, path, body)
	if status < 200 || status > 299 {
		t.Fatalf("%s: %d %s", path, status, answer)
	}
	synctest.Wait()
	return answer
}

const durableBase = "/api/runtime/webhooks/durabletask"

// An app handles an accepted HTTP request immediately, without a delivery, for every kind of request.
func TestTakenAtOnce(t *testing.T) {
	t.Parallel()
	intake := func(c, input string) [2]string {
		return [2]string{"/api/errands", `{"correlationId": "` + c + `", "input": ` + input + `}`}
	}
	command := func(operation string) [2]string {
		return [2]string{"/api/orchestrations/errand-c1/" + operation, `{"reason": "so"}`}
	}
	waits := intake("c1", `{"Event": true}`)
	goes := [2]string{"/api/orchestrations/errand-c1/events/go", `true`}
	for name, tt := range map[string]struct {
		steps [][2]string // path and body
		want  orchestrator.Status
	}{
		"a message":               {[][2]string{intake("c1", `{}`)}, orchestrator.Completed},
		"a start":                 {[][2]string{{"/api/orchestrations", `{"orchestrator": "errand", "correlationId": "c1", "input": null}`}}, orchestrator.Completed},
		"a start of Durable":      {[][2]string{{durableBase + "/orchestrators/errand", `{"correlationId": "c1"}`}}, orchestrator.Completed},
		"a run that waits":        {[][2]string{waits}, orchestrator.Running},
		"an event":                {[][2]string{waits, goes}, orchestrator.Completed},
		"an event of Durable":     {[][2]string{waits, {durableBase + "/instances/errand-c1/raiseEvent/go", `true`}}, orchestrator.Completed},
		"a suspension":            {[][2]string{waits, command("suspend"), goes}, orchestrator.Suspended},
		"a resumption":            {[][2]string{waits, command("suspend"), goes, command("resume")}, orchestrator.Completed},
		"a cancellation":          {[][2]string{waits, command("cancel")}, orchestrator.Canceled},
		"a termination":           {[][2]string{waits, command("terminate")}, orchestrator.Terminated},
		"a termination (Durable)": {[][2]string{waits, {durableBase + "/instances/errand-c1/terminate?reason=so", ""}}, orchestrator.Terminated},
		"a restart":               {[][2]string{waits, goes, command("restart")}, orchestrator.Running},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			var e errands
			h, calls := eager(t, e.app())
			began := time.Now()
			for _, step := range tt.steps {
				post(t, h, step[0], step[1])
			}
			testenv.Equal(t, "its status", tt.want, h.Outcome("errand-c1").Status)
			testenv.Equal(t, "how long it took", 0, time.Since(began))
			for call, n := range calls.take() {
				if !strings.Contains(call, "schedules") && (strings.HasPrefix(call, "Send ") || strings.HasPrefix(call, "Re")) {
					t.Errorf("%d times %s: a host would have to bring it", n, call)
				}
			}
			for _, queue := range []string{"errand-queue", "orchestration-signals"} {
				if n, err := h.Queues.Length(t.Context(), queue); err != nil || n != 0 {
					t.Errorf("%d messages are left in %s, %v", n, queue, err)
				}
			}
		})
	}
}

// An answer to a human task, and a retried dead letter, are handled immediately, too.
func TestAnswersAndRetriesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e errands
		h, calls := eager(t, e.app())
		post(t, h, "/api/errands", `{"correlationId": "c1", "input": {"Ask": true}}`)
		_, list := h.Do(http.MethodGet, "/api/tasks", "")
		var page struct {
			Data struct {
				Items []struct{ OrchestrationID, TaskID string }
			}
		}
		if err := json.Unmarshal([]byte(list), &page); err != nil || len(page.Data.Items) != 1 {
			t.Fatalf("%v: %s", err, list)
		}
		task := "/api/tasks/" + page.Data.Items[0].OrchestrationID + "/" + page.Data.Items[0].TaskID
		post(t, h, task+"/claim", "{}")
		post(t, h, task+"/complete", `{"output": true}`)
		testenv.Equal(t, "its status after the answer", orchestrator.Completed, h.Outcome("errand-c1").Status)

		e.broken.Store(true)
		calls.take()
		post(t, h, "/api/errands", `{"correlationId": "c2", "input": {}}`)
		testenv.Equal(t, "requests of a message", map[string]int{"SendHidden errand-queue": 1, "Delete errand-queue": 1}, engineCalls(calls.take()))
		letters := h.DeadLetters("errand")
		if len(letters) != 1 {
			t.Fatalf("%d dead letters", len(letters))
		}
		e.broken.Store(false)
		post(t, h, "/api/dlq/errand/"+letters[0].RowKey+"/retry", "{}")
		testenv.Equal(t, "its status after the retry", orchestrator.Completed, h.Outcome("errand-c2").Status)
	})
}

func engineCalls(all map[string]int) map[string]int {
	own := map[string]int{}
	for call, n := range all {
		if strings.HasSuffix(call, "errand-queue") {
			own[call] = n
		}
	}
	return own
}

// A timer of up to ten minutes fires when it is due, in the process that parked its orchestration. If that process is
// gone, the queue delivers its message some seconds later.
func TestTimersWithoutAHost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		nap   time.Duration
		dies  bool
		late  time.Duration
		ended bool
	}{
		"near":                {90 * time.Second, false, 100 * time.Millisecond, true},
		"very near":           {200 * time.Millisecond, false, 100 * time.Millisecond, true},
		"far":                 {time.Hour, false, time.Minute, false},
		"the process is gone": {90 * time.Second, true, 3 * time.Second, false},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			var e errands
			h, _ := eager(t, e.app())
			body, err := json.Marshal(errand{Nap: tt.nap})
			testenv.OK(t, err)
			post(t, h, "/api/errands", `{"correlationId": "c1", "input": `+string(body)+`}`)
			if tt.dies {
				h.Restart(nil, func(*handler.Config) {})
			}
			time.Sleep(tt.nap - time.Millisecond)
			if e.ran.Load() > 0 {
				t.Error("it went off early")
			}
			time.Sleep(tt.late + time.Millisecond)
			synctest.Wait()
			testenv.Equal(t, fmt.Sprintf("it has ended %v after its time", tt.late), tt.ended, h.Outcome("errand-c1").Ended())
			time.Sleep(time.Minute)
			h.Deliver()
			if !h.Outcome("errand-c1").Ended() {
				t.Error("the queue does not show the message of its timer")
			}
		})
	}
}

// A process dies at any call while it handles its own messages: another process completes every accepted request,
// none by half.
func TestTakenAtOnceAndCrashed(t *testing.T) {
	t.Parallel()
	faultstest.EachCall(t, []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Unknown, faults.Applied}, 20, crashed)
}

// crashed starts a run, raises its event and lets its timer become due in a process with a plan, and lets another one
// finish.
func crashed(t *testing.T, plan *faults.Plan) {
	var e errands
	var on atomic.Bool
	h := handlertest.NewWith(t, e.app(), map[string]string{"ROUNDHOUSE_DIRECT": "64"}, func(c *handler.Config) { through(c, while(&on, plan.Intercept)) })
	on.Store(true)
	accepted := func(path, body string) {
		for range 5 { // a refused caller retries, if needed at another process
			status, _ := h.Do(http.MethodPost, path, body)
			synctest.Wait()
			if status/100 == 2 {
				return
			}
			if plan.Crashed() {
				h.Restart(nil, func(*handler.Config) {})
			}
			time.Sleep(time.Minute)
			h.Deliver()
		}
		t.Errorf("%s is not taken", path)
	}
	accepted("/api/errands", `{"correlationId": "c1", "input": {"Event": true, "Nap": 90000000000}}`)
	accepted("/api/orchestrations/errand-c1/events/go", `true`)
	time.Sleep(3 * time.Minute)
	before := e.ran.Load()
	h.Restart(nil, func(*handler.Config) {})
	for range 3 * 60 {
		time.Sleep(10 * time.Second)
		h.Deliver()
	}
	testenv.Equal(t, "its status", orchestrator.Completed, h.Outcome("errand-c1").Status)
	if plan.At == 0 && before != 1 {
		t.Errorf("the activity ran %d times before another process came", before)
	}
	if n := e.ran.Load(); n < 1 || n > 2 || plan.At == 0 && n != 1 {
		t.Errorf("the activity ran %d times", n)
	}
	succeeded := 0
	for _, entry := range h.History("errand") {
		if entry.Status == engine.StatusSucceeded && entry.Operation == "errand" {
			succeeded++
		}
	}
	if letters := h.DeadLetters("errand"); succeeded > 1 || len(letters) > 0 {
		t.Errorf("%d successes, dead letters %+v", succeeded, letters)
	}
}
