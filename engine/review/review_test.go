package review_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/review"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const queue = "hmac-rotation-queue"

// morgue holds one dead letter.
type morgue struct {
	letters *engine.DeadLetters
	reviews *review.Reviews
	queues  *queues.Memory
	letter  engine.DeadLetter
}

func buried() engine.DeadLetter {
	return engine.DeadLetter{Engine: "hmac", MessageID: "m", OriginalQueue: queue, OriginalMessage: []byte(`{"correlationId":"c"}`), CorrelationID: "c",
		ErrorMessage: "status 503" + strings.Repeat("!", 3000), InsertedAtUtc: time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC), LastFailureAtUtc: time.Date(1999, 12, 31, 1, 0, 0, 0, time.UTC)}
}

func newMorgue(t *testing.T) *morgue {
	t.Helper()
	m := &morgue{letters: engine.NewDeadLetters(tables.NewMemory(), ""), queues: queues.NewMemory()}
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: m.letters, Queues: m.queues})
	if err == nil {
		m.reviews, err = review.New(review.Config{Letters: m.letters, Retrier: retrier, Roles: []string{"operator"}})
	}
	if err := errors.Join(err, m.letters.CreateTable(t.Context()), m.queues.CreateQueue(t.Context(), queue)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.letters.Add(t.Context(), buried()); err != nil {
		t.Fatal(err)
	}
	page, err := m.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}})
	if err != nil || len(page.DeadLetters) != 1 {
		t.Fatal(page, err)
	}
	m.letter = page.DeadLetters[0]
	return m
}

// asked is the input of a review.
type asked struct {
	Engine string `json:"engine"`
	RowKey string `json:"rowKey"`
	Error  string `json:"errorMessage"`
}

func (m *morgue) decide(t *testing.T) {
	if _, err := m.letters.Decide(context.Background(), "hmac", m.letter.RowKey, engine.Decision{Status: engine.StatusResolved, By: "kim", At: time.Now()}); err != nil {
		t.Error(err)
	}
}

// The decision of a reviewer is applied to the dead letter once, with a crash at any point; a decision made elsewhere
// stays.
func TestReviews(t *testing.T) {
	t.Parallel()
	answer := func(at time.Duration, action review.Action) []orchestratortest.Step {
		return []orchestratortest.Step{{At: at, Task: review.Task, Data: review.Verdict{Action: action, Notes: "so it is"}, By: "ann"}}
	}
	for name, c := range map[string]struct {
		steps   []orchestratortest.Step
		decided time.Duration // by kim
		deleted bool
		output  string
		status  engine.DeadLetterStatus
		by      string
		sent    int
		elapsed time.Duration
	}{
		"retried":                {steps: answer(time.Hour, review.Retry), output: "retry", status: engine.StatusResolved, by: "ann", sent: 1, elapsed: time.Hour},
		"resolved after days":    {steps: answer(50*time.Hour, review.Resolve), output: "resolve", status: engine.StatusResolved, by: "ann", elapsed: 50 * time.Hour},
		"expired":                {steps: answer(time.Hour, review.Expire), output: "expire", status: engine.StatusExpired, by: "ann", elapsed: time.Hour},
		"left":                   {steps: answer(time.Hour, review.Leave), output: "leave", status: engine.StatusPending, elapsed: time.Hour},
		"decided elsewhere":      {decided: 30 * time.Hour, output: "decided elsewhere", status: engine.StatusResolved, by: "kim", elapsed: 48 * time.Hour},
		"decided shortly before": {steps: answer(2*time.Hour, review.Retry), decided: time.Hour, output: "decided elsewhere", status: engine.StatusResolved, by: "kim", elapsed: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orchestratortest.CrashEverywhere(t, func(t *testing.T) orchestratortest.Scenario[asked, string] {
				t.Helper()
				m := newMorgue(t)
				if c.decided > 0 {
					time.AfterFunc(c.decided, func() { m.decide(t) })
				}
				return orchestratortest.Scenario[asked, string]{Orchestrator: m.reviews.Orchestrator, Activities: m.reviews.Activities(),
					Input: asked{"hmac", m.letter.RowKey, "status 503"}, Steps: c.steps, Check: func(t *testing.T, r orchestratortest.Result[string]) {
						t.Helper()
						d, err := m.letters.Get(t.Context(), "hmac", m.letter.RowKey)
						sent, lengthErr := m.queues.Length(t.Context(), queue)
						if err := errors.Join(err, lengthErr); err != nil {
							t.Fatal(err)
						}
						if r.Output != c.output || d.Status != c.status || d.ResolvedBy != c.by || min(sent, 1) != c.sent || r.Elapsed.Round(time.Minute) != c.elapsed {
							t.Errorf("%s; the dead letter is %s by %q, %d messages were sent", r, d.Status, d.ResolvedBy, sent)
						}
					}}
			})
		})
	}
}

// The review decides as when its history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	m := newMorgue(t)
	orchestratortest.Golden(t, "testdata/review.json", orchestratortest.Scenario[asked, string]{Orchestrator: m.reviews.Orchestrator, Activities: m.reviews.Activities(),
		Input: asked{"hmac", "m-19991231T000000.000000Z", "status 503"},
		Steps: []orchestratortest.Step{{At: 30 * time.Hour, Task: review.Task, Data: review.Verdict{Action: review.Resolve}, By: "ann"}}})
}

// A dead letter whose review cannot begin is not settled: its message is redelivered, and then both exist once.
func TestADeadLetterIsNotWrittenWithoutItsReview(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m := newMorgue(t)
	broken := true
	store, signals := tables.NewMemory(), queues.NewMemory()
	plan := &faults.Plan{Refuse: func(faults.Call) bool { return broken }}
	rt, err := orchestrator.New(orchestrator.Config{Tables: faults.Tables(store, plan.Intercept), Blobs: blobs.NewMemory(), Queues: signals,
		Orchestrators: []orchestrator.AnyOrchestrator{m.reviews.Orchestrator}, Activities: m.reviews.Activities(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.letters.OnAdd(func(ctx context.Context, d engine.DeadLetter) error { return m.reviews.Begin(ctx, rt, d) })
	letter := buried()
	letter.MessageID = "m2"
	if _, err := m.letters.Add(ctx, letter); err == nil {
		t.Error("it is settled")
	}
	broken = false
	if err := rt.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if created, err := m.letters.Add(ctx, letter); created || err != nil {
			t.Error(created, err)
		}
	}
	found, _, err := rt.List(ctx, orchestrator.Filter{Prefix: "review-"}, 10, "")
	if err != nil || len(found) != 1 || found[0].CorrelationID != "c" {
		t.Fatalf("%+v, %v", found, err)
	}
	received, err := signals.Receive(ctx, rt.SignalQueue(), 1, time.Minute)
	if err != nil || len(received) != 1 {
		t.Fatal(received, err)
	}
	s, err := orchestrator.DecodeSignal(queues.Decode(received[0].Text))
	if err == nil {
		_, err = rt.Deliver(ctx, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	page, err := rt.Tasks().List(ctx, tasks.Filter{Role: "operator"}, 10, "")
	if err != nil || len(page.Tasks) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	task, err := rt.Tasks().Get(ctx, page.Tasks[0].Ref)
	if shown := string(task.Payload); err != nil || !strings.Contains(shown, `"rowKey":"m2-`) || len(shown) > 3000 || strings.Contains(shown, `"correlationId\"`) {
		t.Errorf("%s, %v", shown, err)
	}
	resolved := buried()
	resolved.MessageID, resolved.Status = "m3", engine.StatusResolved
	if _, err := m.letters.Add(ctx, resolved); err != nil {
		t.Error(err)
	}
	if found, _, err := rt.List(ctx, orchestrator.Filter{Prefix: "review-"}, 10, ""); err != nil || len(found) != 1 {
		t.Errorf("what is resolved is reviewed: %d, %v", len(found), err)
	}
}
