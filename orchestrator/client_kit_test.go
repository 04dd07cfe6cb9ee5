package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// shelf is a store that lists the names of its blobs.
type shelf struct {
	blobs.Store
	mu    sync.Mutex
	names map[string]bool
}

func (s *shelf) Put(ctx context.Context, container, name string, data []byte) error {
	err := s.Store.Put(ctx, container, name, data)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names[name] = true
	}
	return err
}

func (s *shelf) Delete(ctx context.Context, container, name string) error {
	err := s.Store.Delete(ctx, container, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, name)
	return err
}

func (s *shelf) DeleteVersion(ctx context.Context, container string, v blobs.Version) error {
	err := s.Store.DeleteVersion(ctx, container, v)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.names, v.Name)
	}
	return err
}

func (s *shelf) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.names))
}

// office is a world with one set of code, and a sequence of processes. Every test of it runs under synctest.
type office struct {
	*world
	shelf         *shelf
	ledger        *ledger
	orchestrators []AnyOrchestrator
	activities    []AnyActivity
}

func newOffice(t *testing.T) *office {
	t.Helper()
	w := newWorld(t)
	return &office{world: w, ledger: &ledger{}, shelf: &shelf{Store: w.blobs, names: map[string]bool{}}}
}

// open returns a process with the plan; nil only counts.
func (o *office) open(t *testing.T, plan *faults.Plan) *Runtime {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	rt, err := New(Config{Tables: faults.Tables(o.tables, plan.Intercept), Blobs: faults.Blobs(o.shelf, plan.Intercept),
		Queues: faults.Queues(o.queues, plan.Intercept), ScheduleQueue: signalQueue, Orchestrators: o.orchestrators, Activities: o.activities,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// start starts an orchestration and drives it until it waits, or has ended.
func (o *office) start(t *testing.T, rt *Runtime, s Start) Outcome {
	t.Helper()
	noError(t, errorOf(rt.Start(t.Context(), s)))
	o.rest(t, rt)
	return mustGet(t, rt, s.ID)
}

// rest delivers the visible messages of the signal queue.
func (o *office) rest(t *testing.T, rt *Runtime) {
	t.Helper()
	for o.deliver(t.Context(), t, rt) {
	}
}

// gone checks that nothing is left of orchestrations with this prefix.
func (o *office) gone(t *testing.T, prefix string) {
	t.Helper()
	from := tables.EscapeKey(prefix)
	rows := tables.Scan{Row: statusRow, FromPartition: from, ToPartition: tables.PrefixEnd(from)}
	for _, row := range []string{statusRow, roundKey(1, 1), roundKey(1, 2), roundKey(2, 1), roundKey(3, 1)} {
		rows.Row = row
		for e, err := range tables.ScanAll(t.Context(), o.tables, "orchestrations", rows) {
			t.Errorf("the row %s is left %v", e.Key, err)
		}
	}
	if rows := o.rows(t, prefix); len(rows) != 0 {
		t.Errorf("%d rows are left of %s", len(rows), prefix)
	}
	for _, name := range o.shelf.all() {
		if strings.HasPrefix(name, from) {
			t.Errorf("the blob %s is left", name)
		}
	}
}

// executions returns how many executions an orchestration has had, and checks its rounds.
func (o *office) executions(t *testing.T, id string) int {
	t.Helper()
	all := o.stored(t, id)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].number // the rows of old ones are deleted
}

// startRequest is a Start of the test orchestrator with a request id.
func startRequest(id string, input any, requestID string, reuse Reuse) Start {
	s := startOf(id, input)
	s.RequestID, s.Reuse = requestID, reuse
	return s
}

// isError compares with errors.Is; nil wants none.
func isError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wants compares two values that print.
func wants(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// interrupted carries out a client's operation in a process with every fault at every one of its calls, and repeats
// it: immediately, and after everything has come to rest. prepare sets up the state before, check verifies the end.
func interrupted(t *testing.T, prepare func(*testing.T) *office, operation func(context.Context, *Runtime) error, check func(*testing.T, *office, *Runtime)) {
	t.Helper()
	for name, between := range map[string]func(*testing.T, *office, *Runtime){
		"repeated at once": func(*testing.T, *office, *Runtime) {},
		"repeated at rest": func(t *testing.T, o *office, rt *Runtime) { t.Helper(); o.settle(t, rt) },
	} {
		t.Run(name, func(t *testing.T) {
			everyFault(t, func(t *testing.T, plan *faults.Plan) {
				o := prepare(t)
				_ = operation(t.Context(), o.open(t, plan)) // it may die
				next := o.open(t, nil)
				between(t, o, next)
				if err := operation(t.Context(), next); err != nil {
					t.Errorf("repeated: %v", err)
				}
				o.settle(t, next)
				check(t, o, next)
			})
		})
	}
}

// inBubbles runs subtests under synctest, in parallel.
func inBubbles(t *testing.T, tests map[string]func(*testing.T)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test)
		})
	}
}
