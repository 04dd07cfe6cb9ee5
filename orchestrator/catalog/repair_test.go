package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// repair runs a whole pass, and returns the number of repairs.
func (h *house) repair(t *testing.T) (mended int) {
	t.Helper()
	for {
		n, err := h.Repair(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mended += n
		p, err := h.loadPass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.step == "" {
			return mended
		}
	}
}

// process starts another process with the list: unwritten changes stay in the previous one.
func (h *house) process(t *testing.T, intercept faults.Interceptor) *Catalog {
	t.Helper()
	c, err := New(Config{Tables: faults.Tables(h.store, intercept), Runtime: func() *orchestrator.Runtime { return h.runtime }, Linger: time.Hour, RepairEvery: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill() })
	h.Catalog = c
	return c
}

// kill drops the pending changes.
func (c *Catalog) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.pending)
	c.closed = true
	c.cancelFlush()
}

// same lets every call through.
func same(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	return next(ctx)
}

// agrees compares the rows, every filter and the census with a scan.
func (h *house) agrees(t testing.TB) {
	t.Helper()
	h.agreesOn(t, filters())
}

// someFilters returns one in a dozen, others for each case. The rows, which all filters read, are compared in every
// case.
func someFilters(n int) (some []orchestrator.Filter) {
	for i, f := range filters() {
		if i%12 == n%12 {
			some = append(some, f)
		}
	}
	return some
}

func (h *house) agreesOn(t testing.TB, filters []orchestrator.Filter) {
	t.Helper()
	everything, _, err := h.runtime.List(context.Background(), orchestrator.Filter{}, 1000, "")
	if err != nil {
		t.Fatal(err)
	}
	implied, counts := []string{}, map[orchestrator.Status]int{}
	for _, s := range everything {
		implied = append(implied, entryFor(s).all()...)
		counts[s.Status]++
	}
	slices.Sort(implied)
	rows := []string{}
	for row, err := range tables.All(context.Background(), h.store, DefaultTable, tables.Query{Partition: listPartition}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row.Row)
	}
	if diff := cmp.Diff(implied, rows); diff != "" {
		t.Fatalf("rows (-implied +there):\n%s", diff)
	}
	for _, f := range filters {
		want, got := []string{}, []string{}
		for _, s := range everything {
			if f.Matches(s) {
				want = append(want, s.ID)
			}
		}
		page, _, err := h.List(context.Background(), f, 1000, "")
		for _, s := range page {
			got = append(got, s.ID)
		}
		if slices.Sort(got); err != nil || !slices.Equal(want, got) {
			t.Fatalf("filter %+v: %q, a scan has %q, %v", f, got, want, err)
		}
	}
	census, err := h.CountByStatus(context.Background(), statuses()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statuses() {
		if census[s].Total() != counts[s] {
			t.Fatalf("the census has %d that are %s, a scan %d", census[s].Total(), s, counts[s])
		}
	}
}

func statuses() []orchestrator.Status {
	return []orchestrator.Status{orchestrator.Pending, orchestrator.Running, orchestrator.Suspended, orchestrator.Stalled, orchestrator.Retrying,
		orchestrator.Completed, orchestrator.Failed, orchestrator.Canceled, orchestrator.Terminated}
}

// filters use every view, alone and together.
func filters() (all []orchestrator.Filter) {
	few := [][]orchestrator.Status{nil, {orchestrator.Completed, orchestrator.Running}}
	for _, s := range statuses() {
		few = append(few, []orchestrator.Status{s})
	}
	for _, name := range []string{"", "short", "bad", "gate"} {
		for _, tag := range []string{"", "red"} {
			for _, prefix := range []string{"", "a"} {
				for _, some := range few {
					for _, tenant := range []string{"", "ConToso", "fabrikam"} {
						all = append(all, orchestrator.Filter{Orchestrator: name, Tag: tag, Prefix: prefix, Statuses: some, TenantID: tenant})
					}
				}
			}
		}
	}
	return all
}

// step is one step of a life. A silent step is not recorded: only the repair finds it.
type step struct {
	take   func(context.Context) error
	silent bool
}

// life returns the steps that orchestrations can go through: they change every view that they are in.
func (h *house) life() []step {
	start := func(id, name, tag, tenant string) func(context.Context) error {
		return func(ctx context.Context) error {
			s := orchestrator.Start{ID: id, Orchestrator: name, Input: json.RawMessage("1"), CorrelationID: "c", TenantID: tenant}
			if tag != "" {
				s.Reference = &orchestrator.Reference{Key: tag}
			}
			_, err := h.runtime.Start(ctx, s)
			return err
		}
	}
	r := h.runtime
	return []step{
		{take: start("a", "gate", "red", "contoso")}, {take: start("b", "short", "", "")},
		{take: func(ctx context.Context) error { return r.Suspend(ctx, "a", "") }},
		{take: func(ctx context.Context) error { return r.Resume(ctx, "a", "") }},
		{take: func(ctx context.Context) error { return r.Raise(ctx, "a", "open", 1, "") }},
		{take: func(ctx context.Context) error { return r.Purge(ctx, "b") }, silent: true},
		{take: func(ctx context.Context) error { return errorOf(r.Restart(ctx, "a", "")) }},
		{take: func(ctx context.Context) error { return r.Terminate(ctx, "a", "") }},
		{take: func(ctx context.Context) error { return r.Purge(ctx, "a") }, silent: true},
		{take: start("a", "bad", "", "Fabrikam")},
	}
}

// Storage calls of the list fail and processes die: a pass later each filter agrees with a scan. A process dies at
// each call, and loses its pending changes at the begin, the change and the end of an orchestration.
func TestAPassMendsWhatProcessesLeft(t *testing.T) {
	t.Parallel()
	for _, fault := range faults.Faults() {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			for at, over := 1, false; !over; at++ {
				synctest.Test(t, func(t *testing.T) {
					h := newHouse(t)
					plan := &faults.Plan{At: at, Fault: fault}
					h.process(t, plan.Intercept)
					for _, step := range h.life() {
						noError(t, step.take(t.Context()))
						h.drive(t)
						_ = h.Flush(t.Context())
						if plan.Crashed() {
							plan.At = 0
							h.kill()
							h.process(t, same)
						}
					}
					over = !plan.Done()
					plan.Wait()
					h.process(t, same).kill()
					h.process(t, same)
					h.repair(t)
					h.agreesOn(t, someFilters(at))
				})
			}
		})
	}
}

// A process dies with its pending changes after each step of a life, for every choice of recorded steps, and another
// continues: a pass later each filter agrees with a scan.
func TestAPassMendsWhatNobodyNoted(t *testing.T) {
	t.Parallel()
	steps := len((&house{}).life())
	for deaf := range 1 << steps { // the steps whose changes are lost
		if !sample.Keep(t, deaf) {
			continue
		}
		h := newHouse(t)
		for i, step := range h.life() {
			noError(t, step.take(t.Context()))
			h.drive(t)
			if deaf&(1<<i) != 0 {
				h.kill()
			} else if err := h.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.process(t, same)
		}
		h.repair(t)
		h.agreesOn(t, someFilters(deaf))
		if t.Failed() {
			t.Fatalf("processes died after the steps %b", deaf)
		}
	}
}

// A pass neither undoes nor misses concurrent changes: at each of its storage calls the orchestration advances a
// step, which is recorded immediately or later.
func TestAPassAmongChanges(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for wrong := range 2 {
			for from := range len((&house{}).life()) {
				for at := 1; at <= mostCalls; at++ {
					name := fmt.Sprintf("late-%v-spoilt-%d-step-%d-call-%d", late, wrong, from, at)
					if !sample.Keep(t, name) {
						continue
					}
					over := false
					t.Run(name, func(t *testing.T) {
						sample.Repeat(t)
						over = changeAmongPass(t, late, wrong, from, at)
					})
					if over {
						break
					}
				}
			}
		}
	}
}

// mostCalls is more than a pass over few orchestrations makes.
const mostCalls = 100

// changeAmongPass reports whether the pass makes fewer calls than at.
func changeAmongPass(t *testing.T, late bool, wrong, from, at int) (over bool) {
	h := newHouse(t)
	life := h.life()
	for _, step := range life[:from] {
		noError(t, step.take(t.Context()))
		h.drive(t)
	}
	noError(t, h.Flush(t.Context()))
	h.spoil(t, wrong)
	calls, others := 0, h.Catalog
	h.process(t, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
		if calls++; calls == at {
			mine := h.Catalog
			h.Catalog = others // of the changing process
			err := life[from].take(ctx)
			h.drive(t)
			if err == nil && !late {
				err = others.Flush(ctx)
			}
			h.Catalog = mine
			if err != nil {
				t.Error(err)
			}
		}
		return next(ctx)
	})
	h.repair(t)
	over = calls < at
	if life[from].silent {
		h.process(t, same)
		h.repair(t)
	}
	noError(t, others.Flush(t.Context()))
	h.process(t, same)
	h.agreesOn(t, someFilters(at+from))
	return over
}

// spoil deletes every other row of the index, and adds others.
func (h *house) spoil(t *testing.T, wrong int) {
	t.Helper()
	if wrong == 0 {
		return
	}
	for i, name := range h.rows(t) {
		op := tables.Delete(key(name), "")
		if i%2 == 0 {
			op = tables.Insert(tables.Entity{Key: key(name + "0"), Properties: map[string]any{columnID: "a"}})
		}
		noError(t, h.store.Apply(t.Context(), DefaultTable, op))
	}
}

// The repair finds missing rows and surplus rows of each view, and rows that belong to no view.
func TestRepairOfEachRow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range 20 {
		h.start(t, fmt.Sprintf("a/%02d", i), []string{"short", "bad", "gate"}[i%3], []string{"", "red"}[i%2], i)
	}
	h.process(t, same)
	passes := 0
	wants := func(when string, want int) {
		t.Helper()
		if n := h.repair(t); n != want {
			t.Errorf("%s: %d mended, want %d", when, n, want)
		}
		h.agreesOn(t, someFilters(passes))
		passes++
	}
	wants("nothing is there", 20)
	wants("all is there", 0)
	for _, name := range entryFor(must(h.runtime.Status(t.Context(), "a/05"))).all() {
		noError(t, h.store.Apply(t.Context(), DefaultTable, tables.Delete(key(name), "")))
		wants("without "+name, 1)
	}
	gone := entry{id: "gone", orchestrator: "short", tag: "red", status: orchestrator.Completed, created: time.Unix(1, 0)}
	other := entryFor(must(h.runtime.Status(t.Context(), "a/05")))
	other.orchestrator, other.tag, other.status, other.created = "other", "other", orchestrator.Suspended, time.Unix(2, 0)
	for _, name := range append(append(gone.all(), other.all()[1:]...), "", "zzz") {
		id := gone.id
		if slices.Contains(other.all(), name) {
			id = other.id
		}
		e := tables.Entity{Key: key(name), Properties: map[string]any{columnID: id}}
		if name == "" { // of no view, and without an id
			e = tables.Entity{Key: key("!")}
		}
		noError(t, h.store.Apply(t.Context(), DefaultTable, tables.Insert(e)))
		wants("with "+name, 1)
	}
}

// A pass continues in any process, pauses when it is done, and its lag counts from its beginning.
func TestRepairRestsAndGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := filled(t, 12)
		lag := func(want time.Duration) {
			t.Helper()
			if got, err := h.RepairLag(t.Context()); err != nil || got != want {
				t.Errorf("the lag is %v, want %v, %v", got, want, err)
			}
		}
		lag(0) // before the first pass
		slice := func(want string) {
			t.Helper()
			h.begin(t) // earlier passes are in storage only
			_, err := h.Repair(t.Context())
			if p := must(h.loadPass(t.Context())); err != nil || p.step != want {
				t.Errorf("then %q, want %q, %v", p.step, want, err)
			}
		}
		slice("")
		time.Sleep(5 * time.Minute)
		lag(5 * time.Minute) // errors from before its beginning are fixed, and later ones unknown
		time.Sleep(54 * time.Minute)
		h.start(t, "new", "gate", "", 1)
		slice("")
		time.Sleep(2 * time.Minute)
		h.remove(t, viewAll, 3)
		for _, step := range []string{stepMark, stepSweep, ""} {
			slice(step)
		}
		lag(0)
		h.agrees(t)
	})
}

// A place that storage no longer accepts restarts the pass, and so does a place of another version.
func TestRepairFromAPlaceThatIsNone(t *testing.T) {
	t.Parallel()
	for name, columns := range map[string]map[string]any{
		"no continuation":   {columnStep: stepMark, columnNext: "nowhere", columnBegan: time.Unix(1, 0)},
		"none of the truth": {columnStep: stepTruth, columnNext: "nowhere", columnBegan: time.Unix(1, 0), columnSums: make(sums, buckets).encode()},
		"sums of others":    {columnStep: stepRows, columnBegan: time.Unix(1, 0), columnSums: []byte{1, 2, 3}},
		"another version's": {columnNext: "nowhere", "From": "a"},
	} {
		h := newHouse(t)
		h.start(t, "a", "gate", "", 1)
		h.process(t, same)
		e := tables.Entity{Key: tables.Key{Partition: repairPartition, Row: repairRow}, Properties: columns}
		noError(t, h.store.Apply(t.Context(), DefaultTable, tables.Upsert(e)))
		h.repair(t)
		h.repair(t)
		if h.agrees(t); t.Failed() {
			t.Fatal(name)
		}
	}
}

// A pass over a thousand orchestrations of six rows reads 6 pages of rows, and a page of the orchestrations, which
// the runtime reads; its place takes two calls for each slice, and one more at the beginning. With an error, all that
// is read twice, plus the cost of the orchestrations in the wrong bucket. The test also reads the place after each
// slice.
func TestRepairCost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range 1000 {
		h.start(t, fmt.Sprint(i), "short", "", i)
	}
	noError(t, h.Flush(t.Context()))
	cost := func() map[string]int {
		calls := map[string]int{}
		h.process(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			calls[c.Operation]++
			return next(ctx)
		})
		h.repair(t)
		spent := maps.Clone(calls)
		h.agreesOn(t, someFilters(0))
		return spent
	}
	if diff := cmp.Diff(map[string]int{"Get": 1 + 1, "Apply": 2, "Query": 6}, cost()); diff != "" {
		t.Errorf("calls of a quiet pass (-want +got):\n%s", diff)
	}
	h.remove(t, viewAll, 500)
	if diff := cmp.Diff(map[string]int{"Get": 3 + 3, "Apply": 4 + 3, "Query": 12}, cost()); diff != "" {
		t.Errorf("calls of a pass that mends one (-want +got):\n%s", diff)
	}
}

// remove deletes the nth row of a view.
func (h *house) remove(t *testing.T, view string, n int) {
	t.Helper()
	for _, name := range h.rows(t) {
		if strings.HasPrefix(name, view) {
			if n--; n < 0 {
				noError(t, h.store.Apply(t.Context(), DefaultTable, tables.Delete(key(name), "")))
				return
			}
		}
	}
	t.Fatalf("no row of %s", view)
}

// Storage errors are returned, and the slice is repeated.
func TestRepairFails(t *testing.T) {
	t.Parallel()
	no := errors.New("no line")
	for at := 1; ; at++ {
		h := newHouse(t)
		h.start(t, "a", "gate", "red", 1)
		calls, failed := 0, false
		h.process(t, func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
			if calls++; calls == at {
				failed = true
				return no
			}
			return next(ctx)
		})
		for range 6 { // four slices, one of them twice, and the beginning of another pass
			if _, err := h.Repair(t.Context()); err != nil && !errors.Is(err, no) {
				t.Errorf("call %d: %v", at, err)
			}
		}
		if !failed {
			return
		}
		if h.agreesOn(t, someFilters(at)); t.Failed() {
			t.Fatalf("call %d", at)
		}
	}
}
