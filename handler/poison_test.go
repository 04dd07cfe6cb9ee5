package handler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// twoEngines returns an app with messages that the host has abandoned.
func twoEngines() handler.App {
	run := func(*orchestrator.Context, engine.Request[struct{}]) (bool, error) { return true, nil }
	step := func(context.Context, int) (bool, error) { return true, nil }
	first, other := orchestrator.NewActivity("first", step), orchestrator.NewActivity("other", step)
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "one", Queue: "one-queue", Orchestrator: engine.Orchestrate("one", run), Operations: []orchestrator.AnyActivity{first}},
			{Name: "two", Queue: "two-queue", Orchestrator: engine.Orchestrate("two", run), Operations: []orchestrator.AnyActivity{other}}}, nil
	}}
}

// givenUp holds the messages that the host has moved to poison queues: texts by queue, and the originals of their
// dead letters.
type givenUp struct {
	texts   map[string][]string
	letters []string
}

// add adds a message, which becomes a dead letter unless it has nothing to lose.
func (g *givenUp) add(queue, text string, lost bool) {
	queue += engine.PoisonSuffix
	g.texts[queue] = append(g.texts[queue], text)
	if lost {
		g.letters = append(g.letters, string(queues.Decode(text)))
	}
}

// kinds returns the ways to add the message number n, or a pair of messages.
func (g *givenUp) kinds(n int) []func() {
	queue := []string{"one-queue", "two-queue"}[n%2]
	of := func(name, more string) string {
		return fmt.Sprintf(`{"engine":%q,"correlationId":"c%d","instanceId":"i"%s}`, name, n, more)
	}
	own := of(strings.TrimSuffix(queue, "-queue"), "")
	return []func(){
		func() { g.add(queue, own, true) },
		func() { g.add(queue, own, true); g.add(queue, own, false) }, // the host has copied it twice
		func() { g.add(queue, fmt.Sprint("not JSON ", n), true) },
		func() { g.add(queue, of("roundabout", ""), true) },
		func() { g.add(queue, of("one", `,"input":"`+strings.Repeat("x", 64<<10-80)+`"`), true) },
		func() { g.add("orchestration-signals", strayEvent(n), true) },
		func() { g.add("orchestration-signals", `{"roundhouseQueueProbe":"2026-01-01T00:00:00Z"}`, false) },
		func() { g.add("orchestration-schedules", fmt.Sprintf(`[%d]`, n), true) },
		func() { g.add("orchestration-activities", fmt.Sprintf(`{"execution":%d}`, n), true) },
		func() { g.add("outbox-wake", fmt.Sprintf(`{"tenant":"t%d"}`, n), false) },
	}
}

// strayEvent returns an event for an orchestration that was never started.
func strayEvent(n int) string {
	return fmt.Sprintf(`{"signalId":"s%d","workflowInstanceId":"one-nobody-%[1]d","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"go","data":true}}`, n)
}

// eachKind returns a message of each kind.
func eachKind() *givenUp {
	g := &givenUp{texts: map[string][]string{}}
	for n := range g.kinds(0) {
		g.kinds(n)[n]()
	}
	return g
}

func (g *givenUp) send(t *testing.T, h *handlertest.Host) {
	t.Helper()
	for queue, texts := range g.texts {
		if err := h.Queues.CreateQueue(t.Context(), queue); err != nil { // as the host does, when it moves the first message there
			t.Fatal(err)
		}
		for _, text := range texts {
			testenv.Must(h.Queues.SendText(t.Context(), queue, text, 0))(t)
		}
	}
}

// check compares the dead letters with the expectation, and checks that no message is left.
func (g *givenUp) check(t *testing.T, h *handlertest.Host) {
	t.Helper()
	var got []string
	letters := engine.NewDeadLetters(h.Tables, "")
	for _, name := range []string{"one", "two", "roundabout", engine.SignalEngine} {
		for _, l := range h.DeadLetters(name) {
			whole, err := letters.Get(t.Context(), l.Engine, l.RowKey)
			testenv.OK(t, err)
			got = append(got, string(whole.OriginalMessage))
			if whole.DetectedReason != engine.ReasonPoison || whole.DequeueCount < 100 || strings.HasSuffix(whole.OriginalQueue, engine.PoisonSuffix) {
				t.Errorf("the dead letter of %.60s: %s after %d, from %s", whole.OriginalMessage, whole.DetectedReason, whole.DequeueCount, whole.OriginalQueue)
			}
		}
	}
	want := slices.Sorted(slices.Values(g.letters))
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dead letters (-want +got):\n%.2000s", diff)
	}
	for queue := range g.texts {
		if n, err := h.Queues.Length(t.Context(), queue); err != nil || n != 0 {
			t.Errorf("%s has %d messages, %v", queue, n, err)
		}
	}
}

// takePoison fires the timer that handles poison queues, and reports whether it succeeded.
func takePoison(h *handlertest.Host) bool { return h.Tick("orchestration-sweep-timer", time.Now()) }

// Each message that the host has abandoned is one dead letter with its bytes, and none stays; a second run changes
// nothing.
func TestWhatTheHostGaveUpIsDeadLetters(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t)
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(seed), 5))
				h := handlertest.New(t, twoEngines(), nil)
				g := &givenUp{texts: map[string][]string{}}
				for n := range 60 {
					kinds := g.kinds(n)
					kinds[random.IntN(len(kinds))]()
				}
				g.send(t, h)
				for range 2 {
					if !takePoison(h) {
						t.Error("the timer failed")
					}
					g.check(t, h)
				}
			})
		})
	}
}

// Two processes that receive the same messages, because one was frozen, have the same result as one.
func TestPoisonQueuesOfTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := eachKind()
		one := handlertest.New(t, twoEngines(), nil)
		late := make(chan struct{})
		var armed, stood atomic.Bool
		stand := func(ctx context.Context, c faults.Call, do func(context.Context) error) error {
			if armed.Load() && c.Target == "engineDlq" {
				stood.Store(true)
			}
			if stood.Load() { // with the lock of the timer, which expires
				<-late
			}
			return do(ctx)
		}
		g.send(t, one)
		two := handlertest.NewWith(t, twoEngines(), nil, func(c *handler.Config) {
			c.Tables, c.Queues, c.Blobs = faults.Tables(one.Tables, stand), one.Queues, one.Blobs
		})
		armed.Store(true)
		var stands sync.WaitGroup
		stands.Go(func() { takePoison(two) })
		time.Sleep(11 * time.Minute)
		if !stood.Load() || !takePoison(one) {
			t.Error("the other process does not take over")
		}
		g.check(t, one)
		close(late)
		stands.Wait() // it has timed out, so it has requeued its messages with a short delay
		time.Sleep(time.Minute)
		takePoison(one)
		g.check(t, one)
	})
}

// A fault at any call of storage, of the timer and its handlers, loses nothing and duplicates nothing.
func TestPoisonQueuesAndFaults(t *testing.T) {
	t.Parallel()
	faultstest.EachCall(t, []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Unknown, faults.Applied, faults.Throttled}, 40, takenWith)
}

// takenWith lets a process with a plan receive messages, and another one the rest.
func takenWith(t *testing.T, plan *faults.Plan) {
	var on atomic.Bool
	h := handlertest.NewWith(t, twoEngines(), nil, func(c *handler.Config) { through(c, while(&on, plan.Intercept)) })
	g := eachKind()
	g.send(t, h)
	on.Store(true)
	takePoison(h)
	h.Restart(nil, func(*handler.Config) {})
	for range 2 { // the requeued messages, and then the others
		time.Sleep(11 * time.Minute)
		takePoison(h)
	}
	g.check(t, h)
}

// While storage refuses the messages of one queue, the others are handled, and the timer reports a failure.
func TestOnePoisonQueueThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := false
		plan := &faults.Plan{Refuse: func(c faults.Call) bool { return refused && c.Target == "one-queue-poison" }}
		h := handlertest.NewWith(t, twoEngines(), nil, func(c *handler.Config) { c.Queues = faults.Queues(c.Queues, plan.Intercept) })
		g := eachKind()
		g.send(t, h)
		refused = true
		if takePoison(h) {
			t.Error("nobody is told")
		}
		for queue := range g.texts {
			if n, err := h.Queues.Length(t.Context(), queue); err != nil || (n > 0) != (queue == "one-queue-poison") {
				t.Errorf("%s has %d messages, %v", queue, n, err)
			}
		}
		refused = false
		if !takePoison(h) {
			t.Error("it goes on failing")
		}
		g.check(t, h)
	})
}
