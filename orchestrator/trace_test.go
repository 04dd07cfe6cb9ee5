package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// traceRecord is a Tracer that records the reported rounds, from any process: the committed ones, and the loaded ones
// once the end of their execution is reported.
type traceRecord struct {
	mu    sync.Mutex
	spans map[string]bool // names of all contexts made
	told  map[string]bool // rounds by placeOfRound
	first map[string]string
}

func newTraceRecord() *traceRecord {
	return &traceRecord{spans: map[string]bool{}, told: map[string]bool{}, first: map[string]string{}}
}

// Begin returns the trace of an orchestration, which is its id.
func (t *traceRecord) Begin(orchestration, _ string) string { return "trace of " + orchestration }

// Current returns none.
func (t *traceRecord) Current(context.Context) string { return "" }

// Within returns the span after the trace.
func (t *traceRecord) Within(trace, span string) string {
	trace, _, _ = strings.Cut(trace, "|")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans[span] = true
	return trace + "|" + span
}

// Run records the rounds of an execution.
func (t *traceRecord) Run(x TracedExecution) RunTracer { return &runRecord{record: t, x: x} }

func placeOfRound(orchestration string, execution, number int) string {
	return fmt.Sprintf("%s/%d/%d", orchestration, execution, number)
}

// runRecord is the RunTracer of a traceRecord.
type runRecord struct {
	record *traceRecord
	x      TracedExecution
	rounds int
	loaded []int
	ended  bool
}

func (r *runRecord) take(round Round) {
	r.rounds++
	r.ended = r.ended || slices.ContainsFunc(round.Decided, func(e RoundEvent) bool {
		return slices.Contains([]string{"ExecutionCompleted", "ExecutionFailed", "ExecutionStopped", "ExecutionContinuedAsNew"}, e.Kind)
	})
}

func (r *runRecord) tell(numbers ...int) {
	r.record.mu.Lock()
	defer r.record.mu.Unlock()
	for _, n := range numbers {
		r.record.told[placeOfRound(r.x.Orchestration, r.x.Execution, n)] = true
	}
}

// Loaded receives a round that others have committed.
func (r *runRecord) Loaded(round Round) {
	r.take(round)
	r.loaded = append(r.loaded, r.rounds)
}

// Committed receives a round, which follows the previous ones.
func (r *runRecord) Committed(round Round) {
	r.take(round)
	if r.tell(r.rounds); r.ended {
		r.tell(r.loaded...)
	}
}

// Resumed reports the loaded rounds of an execution that has ended.
func (r *runRecord) Resumed() {
	if r.ended {
		r.tell(r.loaded...)
	}
}

// traced checks that each round of every ended execution was reported.
func (w *world) traced(t *testing.T) {
	t.Helper()
	rt := w.process(t, nil, newMachine(newDeeds()).root)
	w.tracer.mu.Lock()
	defer w.tracer.mu.Unlock()
	for _, s := range w.all(t, rt) {
		for _, g := range w.stored(t, s.ID) {
			started, _ := g.start()
			if got := started.start().Trace; !strings.HasPrefix(got, "trace of ") {
				t.Errorf("execution %d of %s was started with the trace %q", g.number, s.ID, got)
			}
			if g.end() == nil || s.Status == Retrying {
				continue
			}
			for n := range g.rounds {
				if place := placeOfRound(s.ID, g.number, n+1); !w.tracer.told[place] {
					t.Errorf("round %s was told to no tracer", place)
				}
			}
		}
	}
}
