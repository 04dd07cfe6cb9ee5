package tracing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is an exporter that keeps spans.
type told struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

// ExportSpans keeps spans.
func (o *told) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans = append(o.spans, spans...)
	return nil
}

// Shutdown does nothing.
func (o *told) Shutdown(context.Context) error { return nil }

// line holds the compared attributes of a span.
type line struct{ Name, Parent, Kind, Failure, Status string }

// trees checks that the spans are one trace without orphans and that spans with the same id are equal, and returns
// their attributes.
func (o *told) trees(t *testing.T) []line {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	byID := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, s := range o.spans {
		id := s.SpanContext().SpanID()
		if before := byID[id]; before != nil && (before.Name() != s.Name() || !before.StartTime().Equal(s.StartTime()) || !before.EndTime().Equal(s.EndTime()) || before.Parent().SpanID() != s.Parent().SpanID()) {
			t.Errorf("two spans have the id %s: %s from %v to %v and %s from %v to %v", id, before.Name(), before.StartTime(), before.EndTime(), s.Name(), s.StartTime(), s.EndTime())
		}
		byID[id] = s
	}
	var out []line
	for _, s := range byID {
		l := line{s.Name(), "", s.SpanKind().String(), s.Status().Description, statusAttribute(s)}
		if s.Parent().IsValid() {
			parent := byID[s.Parent().SpanID()]
			if parent == nil {
				t.Errorf("%s is an orphan", s.Name())
				continue
			}
			l.Parent = parent.Name()
			if s.StartTime().Before(parent.StartTime().Add(-time.Millisecond)) { // times of one orchestration differ by a microsecond at least
				t.Errorf("%s begins before its parent %s", s.Name(), parent.Name())
			}
		}
		if s.SpanContext().TraceID() != o.spans[0].SpanContext().TraceID() {
			t.Errorf("%s is in another trace", s.Name())
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Failure, b.Failure), cmp.Compare(a.Status, b.Status))
	})
	return out
}

// statusAttribute returns the final status of the span.
func statusAttribute(s sdktrace.ReadOnlySpan) string {
	for _, a := range s.Attributes() {
		if a.Key == "durabletask.task.status" {
			return a.Value.AsString()
		}
	}
	return ""
}

// journey does everything that makes spans, in two generations.
func journey() ([]orchestrator.AnyOrchestrator, []orchestrator.AnyActivity) {
	step := orchestrator.NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	flaky := orchestrator.NewActivity("flaky", func(ctx context.Context, n int) (int, error) {
		if orchestrator.Info(ctx).Attempt == 1 {
			return 0, errors.New("not yet")
		}
		return n, nil
	}, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 2, FirstInterval: time.Minute}))
	child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, n int) (int, error) {
		if err := ctx.Sleep(time.Hour); err != nil {
			return 0, err
		}
		return step.Call(ctx, n).Await()
	})
	friend := orchestrator.NewOrchestrator("friend", func(ctx *orchestrator.Context, id string) (string, error) {
		return "", orchestrator.RaiseEvent(ctx, id, "hello", 1)
	})
	root := orchestrator.NewOrchestrator("root", func(ctx *orchestrator.Context, generation int) (int, error) {
		n, err := orchestrator.All(step.Call(ctx, 1), flaky.Call(ctx, 2), step.Call(ctx, 3, orchestrator.WithLocal()))
		if err != nil {
			return 0, err
		}
		if generation == 1 {
			return 0, orchestrator.ContinueAsNew(2)
		}
		if _, err := child.Call(ctx, n[0]).Await(); err != nil {
			return 0, err
		}
		if _, err := friend.Start(ctx, "friend", ctx.ID()); err != nil {
			return 0, err
		}
		if _, err := orchestrator.Event[int](ctx, "hello").Await(); err != nil {
			return 0, err
		}
		if _, err := orchestrator.Event[int](ctx, "go").Await(); err != nil {
			return 0, err
		}
		if err := ctx.Publish(orchestrator.Publication{TenantID: "t", Type: "done", Payload: json.RawMessage("1")}); err != nil {
			return 0, err
		}
		lost := step.Call(ctx, 7)
		orchestrator.Cancel(ctx, lost)
		return n[1], ctx.Sleep(time.Second)
	})
	return []orchestrator.AnyOrchestrator{root, child, friend}, []orchestrator.AnyActivity{step, flaky}
}

// traveller drives a journey on storage that outlives its processes.
type traveller struct {
	tables *tables.Memory
	blobs  *blobs.Memory
	queues *queues.Memory
	tracer *Tracer
}

// process is a runtime over the storage.
func (w *traveller) process(t *testing.T, plan *faults.Plan) *orchestrator.Runtime {
	t.Helper()
	c := orchestrator.Config{Tables: faults.Tables(w.tables, plan.Intercept), Blobs: faults.Blobs(w.blobs, plan.Intercept), Queues: faults.Queues(w.queues, plan.Intercept),
		ScheduleQueue: signalQueue, Tracer: w.tracer, Log: slog.New(slog.DiscardHandler), Publish: func(context.Context, []orchestrator.Publication) error { return nil }}
	c.Orchestrators, c.Activities = journey()
	for i, a := range c.Activities {
		c.Activities[i] = Activity(a)
	}
	return testenv.Must(orchestrator.New(c))(t)
}

const signalQueue = "orchestration-signals"

// deliver delivers the messages of the queue, and reports whether it found any.
func (w *traveller) deliver(ctx context.Context, t *testing.T, to *orchestrator.Runtime) bool {
	t.Helper()
	messages, err := w.queues.Receive(t.Context(), signalQueue, 32, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		s, err := orchestrator.DecodeSignal(queues.Decode(m.Text))
		if err == nil {
			_, err = to.Deliver(ctx, s)
		}
		if err == nil {
			_ = w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt) // another delivery may own it now
		}
	}
	return len(messages) > 0
}

// travel drives a journey to its end, in a process with faults by plan, and after its crash in another process.
func travel(t *testing.T, o *told, plan *faults.Plan) {
	t.Helper()
	w := &traveller{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory()}
	var err error
	if w.tracer, err = New(t.Context(), Config{Exporter: o, Ratio: 1}); err != nil {
		t.Fatal(err)
	}
	sound := w.process(t, &faults.Plan{})
	testenv.OK(t, sound.Prepare(t.Context()))
	first := w.process(t, plan)
	started, raised := false, false
	for ended := false; !ended; time.Sleep(10 * time.Minute) {
		now := first
		if plan.Crashed() {
			now = sound
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		if !started {
			_, err := now.Run(ctx, orchestrator.Start{ID: "a", Orchestrator: "root", Input: json.RawMessage("1"), CorrelationID: "c"})
			started = err == nil
		}
		if s, err := sound.Status(ctx, "a"); err == nil && s.Execution == 2 && !raised {
			raised = sound.Raise(ctx, "a", "go", 1, "once") == nil
		}
		found := w.deliver(ctx, t, now)
		_, err := sound.Sweep(ctx, 100)
		cancel()
		root, rootErr := sound.Status(t.Context(), "a")
		friend, friendErr := sound.Status(t.Context(), "friend")
		ended = errors.Join(err, rootErr, friendErr) == nil && root.Ended() && friend.Ended() && !found && started
	}
	if err := w.tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A run is one trace without orphans; crashes neither add nor remove spans.
func TestCrashesChangeNoTrace(t *testing.T) {
	t.Parallel()
	whole, counted := &told{}, &faults.Plan{At: -1}
	synctest.Test(t, func(t *testing.T) { travel(t, whole, counted) })
	want := whole.trees(t)
	ended := map[string]int{}
	for _, l := range want {
		ended[l.Status]++
		if l.Kind == "consumer" && l.Status != "Completed" {
			t.Errorf("the wait %s is %s", l.Name, l.Status)
		}
	}
	if ended["Canceled"] != 1 || ended["ContinuedAsNew"] != 1 {
		t.Errorf("how spans ended: %v", ended)
	}
	if len(want) < 25 {
		t.Fatalf("there are only %d spans: %v", len(want), want)
	}
	for at := range counted.Calls() {
		for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter} {
			t.Run(fmt.Sprint(at+1, " ", fault), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					crashed := &told{}
					travel(t, crashed, &faults.Plan{At: at + 1, Fault: fault})
					if diff := gocmp.Diff(want, crashed.trees(t)); diff != "" {
						t.Errorf("spans (-without +with the crash):\n%s", diff)
					}
				})
			})
		}
	}
}
