package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// stepKinds returns the steps of a program. "stumble" is an activity that fails in the first attempt, after which the
// previous results are kept; "trip" is an error of the code, after which the attempt starts over; and "fall" is a
// permanent error, until the dead letter is retried.
func stepKinds() []string {
	return []string{"act", "child", "detached", "timer", "ask", "wait", "publish", "send", "stumble", "trip", "fall"}
}

type programStep struct {
	What  string `json:"what"`
	Fails int    `json:"fails"`
}

type workProgram struct {
	Steps []programStep `json:"steps"`
}

// randomProgram draws a program with at most one failure. A program that has waited for an event does not stumble: an
// event is no result that is kept.
func randomProgram(r *rand.Rand) (p workProgram) {
	waited, broken := false, false
	for range 2 + r.IntN(7) {
		s := programStep{What: stepKinds()[r.IntN(len(stepKinds()))], Fails: r.IntN(3)}
		breaks := s.What == "stumble" || s.What == "trip" || s.What == "fall"
		if breaks && broken || s.What == "stumble" && waited {
			s.What, breaks = "act", false
		}
		waited, broken = waited || s.What == "wait", broken || breaks
		p.Steps = append(p.Steps, s)
	}
	return p
}

// workshop is an app that runs programs, and records earlier failures.
type workshop struct {
	mu    sync.Mutex
	tried map[string]int
}

func (w *workshop) before(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried[key]++
	return w.tried[key] - 1
}

type actInput struct{ N, Fails, Execution int }

func (w *workshop) app() handler.App {
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		act := orchestrator.NewActivity("act", func(_ context.Context, in actInput) (int, error) {
			if w.before(fmt.Sprint("act", in)) < in.Fails {
				return 0, errors.New("not now")
			}
			return in.N, nil
		})
		sub := orchestrator.NewActivity("sub", func(_ context.Context, n int) (int, error) { return n, nil })
		child := orchestrator.NewOrchestrator("small", func(ctx *orchestrator.Context, n int) (int, error) { return sub.Call(ctx, n).Await() })
		stumbles := orchestrator.NewActivity("stumbles", func(_ context.Context, n int) (bool, error) {
			if w.before(fmt.Sprint("stumble", n)) == 0 {
				return false, errors.New("stumbled")
			}
			return true, nil
		})
		run := func(ctx *orchestrator.Context, r engine.Request[workProgram]) (string, error) {
			for n, s := range r.Input.Steps {
				if err := w.step(ctx, n, s, act, child, stumbles); err != nil {
					return "", err
				}
			}
			return "done", nil
		}
		return []engine.Definition{{Name: "work", Queue: "work-queue", Orchestrator: engine.Orchestrate("work", run), Operations: []orchestrator.AnyActivity{act},
			Activities: []orchestrator.AnyActivity{sub, stumbles}, Children: []orchestrator.AnyOrchestrator{child}}}, nil
	}}
}

func (w *workshop) step(ctx *orchestrator.Context, n int, s programStep, act *orchestrator.Activity[actInput, int], child *orchestrator.Orchestrator[int, int], stumbles *orchestrator.Activity[int, bool]) (err error) {
	switch s.What {
	case "act":
		_, err = act.Call(ctx, actInput{N: n, Fails: s.Fails}, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 4})).Await()
	case "child":
		_, err = child.Call(ctx, n).Await()
	case "detached":
		_, err = child.Start(ctx, "", n)
	case "timer":
		err = ctx.Sleep(time.Minute)
	case "ask":
		_, err = orchestrator.AskPerson[bool](ctx, orchestrator.HumanTask{Name: "approve"}).Await()
	case "wait":
		_, err = orchestrator.Event[int](ctx, "go").Await()
	case "publish":
		err = ctx.Publish(orchestrator.Publication{TenantID: "acme", Type: "made", Payload: json.RawMessage(fmt.Sprint(n))})
	case "send":
		err = orchestrator.RaiseEvent(ctx, ctx.ID(), "echo", n)
	case "stumble":
		_, err = stumbles.Call(ctx, n).Await()
	case "trip":
		if w.before(fmt.Sprint("trip", ctx.ID(), n)) == 0 {
			return errors.New("tripped")
		}
	case "fall":
		if w.before(fmt.Sprint("fall", ctx.ID(), n)) == 0 {
			return orchestrator.Permanent(errors.New("fell"))
		}
	}
	return err
}

// happened is the expected record: the steps of a program, in words, in the order of the run itself; others are their
// consequences.
type happened struct{ own, others []string }

func (w workProgram) happens() (h happened) {
	own := func(text string) { h.own = append(h.own, text) }
	other := func(all ...string) { h.others = append(h.others, all...) }
	own("message")
	other("orchestration Completed")
	acted := map[int]bool{} // a failure before a fall does not repeat, and a received event is passed to the next attempt
	steps := func(from, to int) {
		for n := from; n < to; n++ {
			switch s := w.Steps[n]; s.What {
			case "act":
				attempts := s.Fails + 1
				if acted[n] {
					attempts = 1
				}
				own(fmt.Sprintf("call Activity act Completed x%d", attempts))
			case "child":
				own("call Orchestration small Completed x1")
				other("orchestration Completed called", "call Activity sub Completed x1")
			case "detached":
				own("link Started small")
				other("message", "orchestration Completed", "call Activity sub Completed x1")
			case "timer":
				own("timer Completed")
			case "ask":
				own("task created")
				own("task assigned by")
				own("task completed by")
			case "wait":
				own("call Event go Awaited x0")
				if !acted[n] {
					own("event go")
					other("action raise go Done by")
				}
			case "publish":
				own("publication made processed")
				other("delivery made")
			case "send":
				own("link EventSent echo") // the run may have ended when it arrives
			}
			acted[n] = true
		}
	}
	begin := 0
	for n, s := range w.Steps {
		failed := func() {
			own("change AttemptFailed")
			own("change AttemptBegan")
		}
		switch s.What {
		case "stumble":
			steps(begin, n)
			own("call Activity stumbles Failed x1")
			failed()
			own("call Activity stumbles Completed x1")
			begin = n + 1
		case "trip":
			steps(begin, n)
			failed()
			begin = 0
		case "fall":
			steps(begin, n)
			failed()
			other("deadLetter", "deadLetterChange Retried", "deadLetterChange Resolved")
			begin = 0
		}
	}
	steps(begin, len(w.Steps))
	return h
}

// told formats an item of a timeline in the same way.
type told struct {
	ID    string    `json:"id"`
	AtUtc time.Time `json:"atUtc"`
	Kind  string    `json:"kind"`
	Call  *struct {
		OrchestrationID, Type, Name, Status string
		Attempts                            []struct{ Attempt int }
	}
	Timer            *struct{ OrchestrationID, Status string }
	Event            *struct{ OrchestrationID, Name, SenderID string }
	Task             *struct{ OrchestrationID, What, By, Status string }
	Publication      *struct{ OrchestrationID, EventType, Status string }
	Delivery         *struct{ EventType, Error string }
	Link             *struct{ OrchestrationID, What, Name string }
	Change           *struct{ OrchestrationID, What string }
	Message          *struct{ OrchestrationID string }
	Orchestration    *struct{ ID, Status, ParentID string }
	DeadLetterChange *struct{ What string }
	Action           *struct{ What, By, Outcome string }
}

// words returns the words of an item, and its run, if it is one of the run's own entries.
func (i told) words() (text, run string) {
	flag := func(text, word string, on bool) string {
		if on {
			return text + " " + word
		}
		return text
	}
	switch {
	case i.Call != nil:
		return fmt.Sprintf("call %s %s %s x%d", i.Call.Type, i.Call.Name, i.Call.Status, len(i.Call.Attempts)), i.Call.OrchestrationID
	case i.Timer != nil:
		return "timer " + i.Timer.Status, i.Timer.OrchestrationID
	case i.Event != nil && i.Event.SenderID != "":
		return "event " + i.Event.Name + " sent", ""
	case i.Event != nil:
		return "event " + i.Event.Name, i.Event.OrchestrationID
	case i.Task != nil:
		return flag("task "+i.Task.What, "by", i.Task.By != "" && i.Task.What != "created"), i.Task.OrchestrationID
	case i.Publication != nil:
		return "publication " + i.Publication.EventType + " " + i.Publication.Status, i.Publication.OrchestrationID
	case i.Delivery != nil:
		return flag("delivery "+i.Delivery.EventType, "failed", i.Delivery.Error != ""), ""
	case i.Link != nil:
		return "link " + i.Link.What + " " + i.Link.Name, i.Link.OrchestrationID
	case i.Change != nil:
		return "change " + i.Change.What, i.Change.OrchestrationID
	case i.Message != nil:
		return "message", i.Message.OrchestrationID
	case i.Orchestration != nil:
		return flag("orchestration "+i.Orchestration.Status, "called", i.Orchestration.ParentID != ""), ""
	case i.DeadLetterChange != nil:
		return "deadLetterChange " + i.DeadLetterChange.What, ""
	case i.Action != nil:
		return flag("action "+i.Action.What+" "+i.Action.Outcome, "by", i.Action.By != ""), ""
	}
	return i.Kind, ""
}

type toldPage struct {
	Items             []told `json:"items"`
	Truncated         bool   `json:"truncated"`
	ContinuationToken string `json:"continuationToken"`
}

func get[T any](t *testing.T, h *handlertest.Host, path string) (data T) {
	t.Helper()
	status, body := h.Do(http.MethodGet, path, "")
	var answer struct{ Data *T }
	answer.Data = &data
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", path, status, body, err)
	}
	return data
}

func send(t *testing.T, h *handlertest.Host, path, body string) {
	t.Helper()
	if status, answer := h.Do(http.MethodPost, path, body); status > 299 {
		t.Fatalf("%s: %d %s", path, status, answer)
	}
}

// pages reads a timeline in pages of a size; between is called after the first.
func pages(t *testing.T, h *handlertest.Host, path string, size int, between func()) (all []told) {
	t.Helper()
	token := ""
	for {
		page := get[toldPage](t, h, fmt.Sprintf("%s?limit=%d%s", path, size, token))
		if page.Truncated || len(page.Items) > size || len(page.Items) == 0 && between == nil {
			t.Fatalf("a page of %d of %d, truncated: %v", len(page.Items), size, page.Truncated)
		}
		if all = append(all, page.Items...); page.ContinuationToken == "" {
			return all
		}
		if token == "" && between != nil {
			between()
		}
		token = "&continuationToken=" + page.ContinuationToken
	}
}

// operate plays operators and time, until no work is left.
func operate(t *testing.T, h *handlertest.Host, run string) {
	t.Helper()
	for range 60 {
		h.Deliver()
		time.Sleep(time.Second) // times of rounds are a little ahead, because they are unique
		for _, task := range get[struct {
			Items []struct{ OrchestrationID, TaskID string }
		}](t, h, "/api/tasks").Items {
			path := "/api/tasks/" + url.PathEscape(task.OrchestrationID) + "/" + task.TaskID
			send(t, h, path+"/claim", "{}")
			send(t, h, path+"/complete", `{"output":true}`)
		}
		raise(t, h, run)
		for _, l := range h.DeadLetters("work") {
			if l.Status == engine.StatusPending {
				send(t, h, "/api/dlq/work/"+url.PathEscape(l.RowKey)+"/retry", "{}")
			}
		}
		time.Sleep(20 * time.Second)
	}
}

// raise raises an event for each wait that has none.
func raise(t *testing.T, h *handlertest.Host, run string) {
	t.Helper()
	waits := 0
	for _, i := range pages(t, h, "/api/timeline/c1", 1000, nil) {
		switch text, of := i.words(); {
		case of == run && strings.HasPrefix(text, "call Event"):
			waits++
		case text == "event go":
			waits--
		}
	}
	for range waits {
		if status, body := h.Do(http.MethodPost, "/api/orchestrations/"+run+"/events/go", "1"); status > 299 && status != http.StatusConflict {
			t.Fatal(status, body)
		}
	}
}

// For any run, its timeline has each event once and in order, in pages of every size, and continues when the run is
// purged during the read.
func TestTimelineOfRandomRuns(t *testing.T) {
	t.Parallel()
	for _, breaks := range []string{"stumble", "trip", "fall"} { // after every step that is repeated or not
		t.Run(breaks, func(t *testing.T) {
			t.Parallel()
			var p workProgram
			for _, what := range []string{"act", "child", "detached", "timer", "ask", "publish", "send", breaks, "act"} {
				p.Steps = append(p.Steps, programStep{What: what, Fails: 1})
			}
			synctest.Test(t, func(t *testing.T) { checkRandomRun(t, p) })
		})
	}
	for _, seed := range sample.Seeds(t, 12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t)
			synctest.Test(t, func(t *testing.T) { checkRandomRun(t, randomProgram(rand.New(rand.NewPCG(uint64(seed), 1)))) })
		})
	}
}

func checkRandomRun(t *testing.T, p workProgram) {
	t.Helper()
	w := &workshop{tried: map[string]int{}}
	h := handlertest.New(t, w.app(), map[string]string{"ROUNDHOUSE_OUTBOX": toQueue})
	input, err := json.Marshal(p)
	testenv.OK(t, err)
	h.Send("work-queue", fmt.Sprintf(`{"correlationId":"c1","input":%s}`, input))
	h.Send("work-queue", `{"correlationId":"c2","input":{"steps":[{"what":"act"},{"what":"publish"}]}}`)
	const path, run = "/api/timeline/c1", "work-c1"
	operate(t, h, run)
	whole := pages(t, h, path, 1000, nil)
	want := p.happens()
	var got happened
	history, echoes := 0, 0
	for _, i := range whole {
		text, of := i.words()
		switch {
		case i.Kind == "history":
			history++
		case text == "event echo sent":
			echoes++
		case of == run:
			got.own = append(got.own, text)
		default:
			got.others = append(got.others, text)
		}
	}
	slices.Sort(want.others)
	slices.Sort(got.others)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(happened{})); diff != "" {
		t.Errorf("%+v (-want +got):\n%s", p, diff)
	}
	kept := 0
	for _, e := range h.History("work") {
		if e.CorrelationID == "c1" {
			kept++
		}
	}
	if sent := strings.Count(strings.Join(want.own, "\n"), "EventSent"); echoes > sent {
		t.Errorf("%d events came of %d", echoes, sent)
	}
	testenv.Equal(t, "entries of the history", kept, history)
	seen := map[string]bool{}
	for n, i := range whole {
		if seen[i.ID] || n > 0 && i.AtUtc.Before(whole[n-1].AtUtc) {
			t.Errorf("%s is there twice, or not in order", i.ID)
		}
		seen[i.ID] = true
	}
	for size := 1; size <= len(whole); size++ {
		if size == 2 || sample.Keep(t, size) {
			testenv.Equal(t, fmt.Sprintf("pages of %d", size), whole, pages(t, h, path, size, nil))
		}
	}
	rest := pages(t, h, path, len(whole)/2, func() {
		if status, body := h.Do(http.MethodDelete, "/api/orchestrations/"+run, ""); status > 299 {
			t.Errorf("%d %s", status, body)
		}
	})
	for n, i := range rest {
		if !seen[i.ID] || n >= len(whole)/2 && i.Kind == "timer" {
			t.Errorf("after the purge there is %+v", i)
		}
	}
}

// A page costs a bounded number of reads, for any amount of other data: one for each source of each engine and for
// each run, and one for each event and each decided dead letter.
func TestWhatATimelineCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &workshop{tried: map[string]int{}}
		var reads atomic.Int64
		h := handlertest.NewWith(t, w.app(), map[string]string{"ROUNDHOUSE_OUTBOX": toQueue}, func(c *handler.Config) {
			c.Tables = faults.Tables(c.Tables, func(ctx context.Context, call faults.Call, next func(context.Context) error) error {
				reads.Add(1)
				return next(ctx)
			})
		})
		h.Send("work-queue", `{"correlationId":"c1","input":{"steps":[{"what":"act"},{"what":"child"},{"what":"ask"},{"what":"publish"},{"what":"fall"}]}}`)
		for n := range 20 {
			h.Send("work-queue", fmt.Sprintf(`{"correlationId":"other-%d","input":{"steps":[{"what":"child"},{"what":"publish"}]}}`, n))
		}
		operate(t, h, "work-c1")
		before := reads.Load()
		items := len(pages(t, h, "/api/timeline/c1", 1000, nil))
		// 3 engines: 3 of the history, 3 of the dead letters, 1 for the run of "work"; the list and its 3 runs; rounds and dead letters of
		// 3 runs, tasks of one, actions on 3 in two months; 2 events; 1 dead letter.
		testenv.Equal(t, fmt.Sprintf("reads for %d items", items), 27, reads.Load()-before)
	})
}
