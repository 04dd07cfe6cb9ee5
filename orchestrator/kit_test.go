package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

const (
	signalQueue   = "orchestration-signals"
	activityQueue = "orchestration-activities"
)

// world is the storage that outlives processes.
type world struct {
	tables      tables.Store
	blobs       blobs.Store
	queues      queues.Store
	roundBudget roundBudget // of the rounds of its processes; zero for the default
	tracer      *traceRecord
	forgetful   bool // its processes cache no executions
}

// narrow is a budget of one event or decision per round.
func narrow() roundBudget { return roundBudget{bytes: 1} }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory(), tracer: newTraceRecord()}
	for _, err := range []error{
		w.tables.CreateTable(context.Background(), "orchestrations"),
		w.blobs.CreateContainer(context.Background(), "orchestrations"),
		w.tables.CreateTable(context.Background(), "orchestrationsParked"),
		w.tables.CreateTable(context.Background(), "orchestrationTasks"),
		w.queues.CreateQueue(context.Background(), signalQueue),
		w.queues.CreateQueue(context.Background(), "orchestration-activities"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if *encrypted {
		w.encrypt(t)
	}
	return w
}

// process returns a Runtime over the world, like one process. A nil plan only counts.
func (w *world) process(t *testing.T, plan *faults.Plan, o AnyOrchestrator, activities ...AnyActivity) *Runtime {
	t.Helper()
	return w.runtime(t, plan, []AnyOrchestrator{o}, activities)
}

func (w *world) runtime(t *testing.T, plan *faults.Plan, orchestrators []AnyOrchestrator, activities []AnyActivity) *Runtime {
	t.Helper()
	return w.configured(t, plan, Config{Orchestrators: orchestrators, Activities: activities})
}

// signalling returns a runtime that signals can wake.
func (w *world) signalling(t *testing.T, plan *faults.Plan, orchestrators []AnyOrchestrator, activities []AnyActivity) *Runtime {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	return w.configured(t, plan, Config{Orchestrators: orchestrators, Activities: activities, Queues: faults.Queues(w.queues, plan.Intercept)})
}

func (w *world) configured(t *testing.T, plan *faults.Plan, c Config) *Runtime {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	c.Tables, c.Blobs = faults.Tables(w.tables, plan.Intercept), faults.Blobs(w.blobs, plan.Intercept)
	c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	c.ScheduleQueue = signalQueue // one queue is enough to be delivered from
	if c.Tracer == nil {
		c.Tracer = w.tracer
	}
	if !w.forgetful {
		c.CachedEvents = 10_000
	}
	rt := must(New(c))(t)
	t.Cleanup(rt.Close)
	if w.roundBudget != (roundBudget{}) {
		rt.roundBudget = w.roundBudget
	}
	return rt
}

// stored returns the stored rounds of an orchestration and checks the invariants: rounds without a gap, at most one
// end in an execution and nothing after it, and a status row that matches the last round.
func (w *world) stored(t *testing.T, id string) []storedExecution {
	t.Helper()
	j := &journal{tables: w.tables, blobs: w.blobs, table: "orchestrations", container: "orchestrations"}
	all, err := j.load(t.Context(), id)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if len(all) == 0 {
		return nil
	}
	last := int64(0)
	for _, g := range all {
		for i, r := range g.rounds {
			for _, e := range append(append([]event(nil), r.Learned...), r.Decided...) {
				if e.Kind == executionCompleted || e.Kind == executionFailed || e.Kind == executionContinued || e.Kind == executionStopped {
					if i != len(g.rounds)-1 && !e.Retrying {
						t.Errorf("execution %d goes on after its end in round %d", g.number, i+1)
					}
				}
			}
			for _, e := range r.Learned {
				if e.At <= last {
					t.Errorf("execution %d, round %d: time stands still at %d", g.number, i+1, e.At)
				}
				last = e.At
			}
		}
	}
	latest := all[len(all)-1]
	status, err := w.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: tables.EscapeKey(id), Row: statusRow})
	if err != nil {
		t.Fatalf("status row: %v", err)
	}
	want := map[string]any{"RuntimeStatus": string(summarize(id, latest).Status), "Execution": int64(latest.number),
		"Round": int64(len(latest.rounds)), "StateVersion": int64(roundCount(all))}
	if started, ok := latest.start(); ok && started.start().Tenant != "" {
		want["TenantId"] = started.start().Tenant
	}
	for _, g := range all {
		if started, ok := g.start(); ok && (started.start().Tenant == "") != (summarize(id, latest).TenantID == "") {
			t.Errorf("execution %d is of the tenant %q, the latest of %q", g.number, started.start().Tenant, summarize(id, latest).TenantID)
		}
	}
	for name, v := range want {
		if status.Properties[name] != v {
			t.Errorf("status column %s is %v, the rounds say %v", name, status.Properties[name], v)
		}
	}
	return all
}

// ledger counts the actual runs of activities.
type ledger struct {
	mu    sync.Mutex
	calls map[string]int
}

func (l *ledger) add(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[string]int{}
	}
	l.calls[name]++
	return l.calls[name]
}

// all returns a copy of the counts.
func (l *ledger) all() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.calls)
}

func (l *ledger) count(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[name]
}

// step is an activity that counts its calls by input and adds one.
func (l *ledger) step(name string, options ...CallOption) *Activity[int, int] {
	return NewActivity(name, func(_ context.Context, n int) (int, error) {
		l.add(fmt.Sprintf("%s(%d)", name, n))
		return n + 1, nil
	}, options...)
}

// bulky skips a test of megabytes in a -short run, unless it is in the sample.
func bulky(t *testing.T) {
	t.Helper()
	if testing.Short() && !sample.Keep(t) {
		t.Skip("it moves megabytes; run it without -short")
	}
}

// inSample runs a subtest under synctest if it is in the sample of this run.
func inSample(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	if !sample.Keep(t, name) {
		return
	}
	t.Run(name, func(t *testing.T) {
		sample.Repeat(t)
		synctest.Test(t, test)
	})
}

func startOf(id string, input any) Start {
	data, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return Start{ID: id, Orchestrator: "test", Input: data, CorrelationID: "corr", TenantID: "contoso"}
}

func mustRun(t *testing.T, rt *Runtime, s Start) Outcome {
	t.Helper()
	out, err := rt.Run(t.Context(), s)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return out
}

func applies(calls []faults.Call) int {
	n := 0
	for _, c := range calls {
		if c.Operation == "Apply" {
			n++
		}
	}
	return n
}

func entityOf(encoding string, data []byte) tables.Entity {
	return tables.Entity{Properties: map[string]any{columnEncoding: encoding, columnData: data}}
}

// inBubble runs a test in a bubble of synctest, in parallel with others.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// noError ends a test on a failed preparation.
func noError(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorOf returns the error of a call whose result does not matter.
func errorOf[T any](_ T, err error) error { return err }

// must returns the result of a call, and ends the test on a failed preparation.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}
