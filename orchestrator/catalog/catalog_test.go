package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house has orchestrations and their list, over stores in memory whose calls are counted.
type house struct {
	*Catalog
	runtime *orchestrator.Runtime
	store   *tables.Memory
	queues  *queues.Memory
	meter   *meter
	reads   atomic.Int64 // of rows, by the runtime
}

// meter counts the list's calls of storage, and may let them fail.
type meter struct {
	mu    sync.Mutex
	calls map[string]int
	fail  error
}

func (m *meter) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	m.mu.Lock()
	m.calls[c.Operation]++
	fail := m.fail
	m.mu.Unlock()
	if fail != nil {
		return fail
	}
	return next(ctx)
}

func (m *meter) failing(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *meter) count(operation string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[operation]
}

// newHouse has the orchestrators short, which ends, bad, which fails, and gate, which waits for the event open.
func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{store: tables.NewMemory(), queues: queues.NewMemory(), meter: &meter{calls: map[string]int{}}}
	short := orchestrator.NewOrchestrator("short", func(ctx *orchestrator.Context, n int) (int, error) { return n, nil })
	bad := orchestrator.NewOrchestrator("bad", func(*orchestrator.Context, int) (int, error) {
		return 0, orchestrator.Permanent(errors.New("no"))
	})
	gate := orchestrator.NewOrchestrator("gate", func(ctx *orchestrator.Context, n int) (int, error) {
		if err := ctx.SetStatus(fmt.Sprintf("gate %d", n)); err != nil {
			return 0, err
		}
		return orchestrator.Event[int](ctx, "open").Await()
	})
	h.begin(t)
	var err error
	counted := faults.Tables(h.store, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Get" {
			h.reads.Add(1)
		}
		return next(ctx)
	})
	h.runtime, err = orchestrator.New(orchestrator.Config{Tables: counted, Blobs: blobs.NewMemory(), Queues: h.queues, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		StatusChanged: func(n orchestrator.StatusChange) { h.Record(n) }, Orchestrators: []orchestrator.AnyOrchestrator{short, bad, gate}})
	noError(t, errors.Join(err, h.Prepare(t.Context())))
	noError(t, h.runtime.Prepare(t.Context()))
	return h
}

// begin restarts the process: unwritten changes are lost.
func (h *house) begin(t *testing.T) {
	t.Helper()
	c, err := New(Config{Tables: faults.Tables(h.store, h.meter.intercept), Runtime: func() *orchestrator.Runtime { return h.runtime }})
	if err != nil {
		t.Fatal(err)
	}
	h.Catalog = c
	t.Cleanup(func() {
		h.meter.failing(nil)
		c.Close()
	})
}

func (h *house) start(t *testing.T, id, name, tag string, n int) {
	t.Helper()
	h.startFor(t, "", id, name, tag, n)
}

// startFor starts an orchestration of a tenant.
func (h *house) startFor(t *testing.T, tenant, id, name, tag string, n int) {
	t.Helper()
	input, _ := json.Marshal(n)
	s := orchestrator.Start{ID: id, Orchestrator: name, Input: input, CorrelationID: "c", TenantID: tenant}
	if tag != "" {
		s.Reference = &orchestrator.Reference{Key: tag}
	}
	noError(t, errorOf(h.runtime.Start(t.Context(), s)))
	h.drive(t)
}

// drive delivers all signals.
func (h *house) drive(t *testing.T) {
	t.Helper()
	for {
		batch, err := h.queues.Receive(t.Context(), h.runtime.SignalQueue(), 32, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range batch {
			s, err := orchestrator.DecodeSignal(queues.Decode(m.Text))
			if err == nil {
				_, err = h.runtime.Deliver(t.Context(), s)
			}
			if errors.Is(err, orchestrator.ErrNotFound) {
				err = nil // it was purged meanwhile
			}
			noError(t, errors.Join(err, h.queues.Delete(t.Context(), h.runtime.SignalQueue(), m.ID, m.PopReceipt)))
		}
		if len(batch) == 0 {
			return
		}
	}
}

// rows returns the rows of the list.
func (h *house) rows(t *testing.T) (names []string) {
	t.Helper()
	for row, err := range tables.All(t.Context(), h.store, DefaultTable, tables.Query{Partition: listPartition}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, row.Row)
	}
	return names
}

// right returns the rows that the list should have for the stored orchestrations.
func (h *house) right(t *testing.T) (names []string) {
	t.Helper()
	all, _, err := h.runtime.List(t.Context(), orchestrator.Filter{}, 1000, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		names = append(names, entryFor(s).all()...)
	}
	slices.Sort(names)
	return names
}

// pages lists everything, page by page.
func (h *house) pages(t *testing.T, f orchestrator.Filter, limit int) []string {
	t.Helper()
	ids := []string{}
	for next, first := "", true; first || next != ""; first = false {
		page, then, err := h.List(t.Context(), f, limit, next)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit || len(page) == 0 && then != "" {
			t.Fatalf("a page of %d, limit %d", len(page), limit)
		}
		for _, s := range page {
			ids = append(ids, s.ID)
		}
		next = then
	}
	return ids
}

// filled returns a house with one orchestration a minute: in turn completed, failed and waiting, of three tenants and
// the platform.
func filled(t *testing.T, n int) *house {
	h := newHouse(t)
	for i := range n {
		h.startFor(t, []string{"", "contoso", "Contoso", "fabrikam", ""}[i%5], fmt.Sprintf("%c/%02d", 'a'+i%2, i), []string{"short", "bad", "gate"}[i%3], []string{"", "red"}[i%2], i)
		time.Sleep(time.Minute)
	}
	return h
}

func TestListSelects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 40
		begin := time.Now()
		h := filled(t, n)
		everything, _, err := h.runtime.List(t.Context(), orchestrator.Filter{}, 1000, "")
		if err != nil || len(everything) != n {
			t.Fatal(len(everything), err)
		}
		if diff := cmp.Diff(h.right(t), h.rows(t)); diff != "" {
			t.Fatalf("rows (-want +got):\n%s", diff)
		}
		for name, f := range map[string]orchestrator.Filter{
			"all":             {},
			"orchestrator":    {Orchestrator: "gate"},
			"status":          {Statuses: []orchestrator.Status{orchestrator.Failed}},
			"both":            {Orchestrator: "short", Statuses: []orchestrator.Status{orchestrator.Completed}},
			"neither":         {Orchestrator: "short", Statuses: []orchestrator.Status{orchestrator.Failed}},
			"statuses":        {Statuses: []orchestrator.Status{orchestrator.Failed, orchestrator.Running, orchestrator.Failed}},
			"orchestrators":   {Orchestrators: []string{"gate", "bad", "gate", "nobody"}},
			"many of both":    {Orchestrators: []string{"gate", "bad"}, Statuses: []orchestrator.Status{orchestrator.Failed, orchestrator.Running}},
			"one of many":     {Orchestrator: "gate", Orchestrators: []string{"gate", "bad"}},
			"none of many":    {Orchestrator: "short", Orchestrators: []string{"gate", "bad"}},
			"tag":             {Tag: "red"},
			"no tag":          {Tag: "blue"},
			"tag and status":  {Tag: "red", Statuses: []orchestrator.Status{orchestrator.Completed}},
			"custom status":   {CustomStatus: "gate 1"},
			"from":            {CreatedFrom: begin.Add(7 * time.Minute)},
			"to":              {CreatedTo: begin.Add(7 * time.Minute)},
			"to, nearly":      {CreatedTo: begin.Add(7*time.Minute + 1)},
			"period":          {CreatedFrom: begin.Add(3 * time.Minute), CreatedTo: begin.Add(9 * time.Minute), Orchestrator: "bad"},
			"backwards":       {CreatedFrom: begin.Add(9 * time.Minute), CreatedTo: begin.Add(3 * time.Minute)},
			"long ago":        {CreatedTo: time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)},
			"far away":        {CreatedFrom: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)},
			"prefix":          {Prefix: "b/"},
			"prefix, status":  {Prefix: "b", Statuses: []orchestrator.Status{orchestrator.Failed}},
			"prefix, nobody":  {Prefix: "c"},
			"prefix, no id's": {Prefix: string(make([]byte, 600))},
			"correlation id":  {CorrelationID: "d"},

			"tenant":                         {TenantID: "CONTOSO"},
			"tenant without any":             {TenantID: "nobody"},
			"tenant and orchestrator":        {TenantID: "contoso", Orchestrator: "gate"},
			"tenant and statuses":            {TenantID: "contoso", Statuses: []orchestrator.Status{orchestrator.Failed, orchestrator.Running}},
			"tenant, orchestrator, status":   {TenantID: "contoso", Orchestrator: "bad", Statuses: []orchestrator.Status{orchestrator.Failed}},
			"tenant, many of both":           {TenantID: "contoso", Orchestrators: []string{"gate", "bad"}, Statuses: []orchestrator.Status{orchestrator.Failed}},
			"tenant and tag":                 {TenantID: "contoso", Tag: "red"},
			"tenant and period":              {TenantID: "contoso", CreatedFrom: begin.Add(3 * time.Minute), CreatedTo: begin.Add(19 * time.Minute)},
			"tenant and prefix":              {TenantID: "contoso", Prefix: "b/"},
			"tenant, prefix, custom status":  {TenantID: "contoso", Prefix: "b/", CustomStatus: "gate"},
			"tenant and a part of its state": {TenantID: "contoso", CustomStatus: "gate 1"},
		} {
			want := []string{}
			for _, s := range everything { // in the order of the ids
				if f.Matches(s) {
					want = append(want, s.ID)
				}
			}
			if f.Prefix == "" {
				slices.SortFunc(want, func(a, b string) int { return strings.Compare(b[2:], a[2:]) })
			}
			for _, limit := range []int{1, 3, 16, 100} {
				if diff := cmp.Diff(want, h.pages(t, f, limit)); diff != "" {
					t.Errorf("%s, %d a page (-want +got):\n%s", name, limit, diff)
				}
			}
		}
	})
}

// Changes are written later, together, and a list shows the current states before that.
func TestListFollows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		for i := range 10 {
			h.start(t, fmt.Sprint("g", i), "gate", "", i)
		}
		if rows := h.rows(t); len(rows) > 0 {
			t.Errorf("written at once: %v", rows)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := h.meter.count("Apply"); n != 1 {
			t.Errorf("%d transactions for ten that began together", n)
		}
		for i := range 10 {
			noError(t, h.runtime.Raise(t.Context(), fmt.Sprint("g", i), "open", []byte("1"), ""))
		}
		h.drive(t)
		running := orchestrator.Filter{Statuses: []orchestrator.Status{orchestrator.Running}}
		if got := h.pages(t, running, 100); len(got) > 0 {
			t.Errorf("run: %v", got)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(h.right(t), h.rows(t)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
}

// A page costs as much in a long list as in a short one.
func TestListCostsItsPage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cost := func(n int) int {
			h := filled(t, n)
			before := h.meter.count("Query")
			if page, _, err := h.List(t.Context(), orchestrator.Filter{Orchestrator: "short"}, 5, ""); err != nil || len(page) != 5 {
				t.Fatal(len(page), err)
			}
			return h.meter.count("Query") - before
		}
		if few, many := cost(20), cost(300); few != many || few != 1 {
			t.Errorf("%d queries of 20, %d of 300", few, many)
		}
	})
}

// A page of a tenant costs the same however many orchestrations of others exist, with any other filter.
func TestListOfATenantCostsItsPage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		costs := func(others int) (each []int) {
			h := newHouse(t)
			h.startFor(t, "contoso", "a0", "short", "red", 1)
			for i := range others {
				h.startFor(t, []string{"", "fabrikam"}[i%2], fmt.Sprint("a1", i), "short", "red", i)
			}
			h.startFor(t, "contoso", "a2", "short", "red", 1)
			noError(t, h.Flush(t.Context()))
			completed := []orchestrator.Status{orchestrator.Completed}
			for _, f := range []orchestrator.Filter{{}, {Orchestrator: "short"}, {Statuses: completed}, {Orchestrator: "short", Statuses: completed}, {Tag: "red"},
				{CustomStatus: ""}, {CreatedTo: time.Now().Add(time.Minute)}, {Prefix: "a"}} {
				f.TenantID = "Contoso"
				queries, reads := h.meter.count("Query"), h.reads.Load()
				if page, _, err := h.List(t.Context(), f, 5, ""); err != nil || len(page) != 2 {
					t.Fatalf("%d found with %+v: %v", len(page), f, err)
				}
				each = append(each, h.meter.count("Query")-queries, int(h.reads.Load()-reads))
			}
			return each
		}
		if diff := cmp.Diff(costs(0), costs(300)); diff != "" {
			t.Errorf("queries and reads in turn (-alone +among 300 others):\n%s", diff)
		}
	})
}

// A page of parked orchestrations costs as much among ten thousand as among a hundred, from any start.
func TestListOfTenThousandParked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const page = 50
		costs := func(n int) (each []int) {
			h := newHouse(t)
			for i := range n {
				h.start(t, fmt.Sprintf("a%05d", i), "gate", "", i)
				if i%1000 == 999 {
					noError(t, h.Flush(t.Context()))
				}
			}
			noError(t, h.Flush(t.Context()))
			for _, f := range []orchestrator.Filter{{}, {Orchestrator: "gate"}, {Statuses: []orchestrator.Status{orchestrator.Running}}, {Prefix: "a0"}} {
				after := ""
				for range 2 {
					before := h.meter.count("Query")
					found, next, err := h.List(t.Context(), f, page, after)
					if err != nil || len(found) != page {
						t.Fatalf("%d found with %+v: %v", len(found), f, err)
					}
					each, after = append(each, h.meter.count("Query")-before), next
				}
			}
			return each
		}
		n := sample.Size(t, 10_000, 500)
		few, many := costs(2*page), costs(n)
		if diff := cmp.Diff(few, many); diff != "" {
			t.Errorf("queries of pages (-of %d +of %d):\n%s", 2*page, n, diff)
		}
	})
}

func TestContinuations(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := filled(t, 4)
		_, next, err := h.List(t.Context(), orchestrator.Filter{}, 1, "")
		if err != nil || next == "" {
			t.Fatal(err)
		}
		for name, bad := range map[string]struct {
			f    orchestrator.Filter
			next string
		}{"text": {next: "x"}, "blank": {next: " "}, "key": {next: next + "x"}, "another list's": {f: orchestrator.Filter{Prefix: "a"}, next: "b"}, "no key": {f: orchestrator.Filter{Prefix: "a"}, next: "a/"}} {
			if _, _, err := h.List(t.Context(), bad.f, 1, bad.next); !errors.Is(err, orchestrator.ErrContinuation) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, limit := range []int{0, -1, 1001} {
			if _, _, err := h.List(t.Context(), orchestrator.Filter{}, limit, ""); err == nil {
				t.Errorf("a page of %d", limit)
			}
		}
	})
}

// Failed writes stay pending, and the repair finds changes lost with a process.
func TestStorageFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		h.meter.failing(tables.ErrThrottled)
		h.start(t, "g", "gate", "red", 1)
		if err := h.Flush(t.Context()); !errors.Is(err, tables.ErrThrottled) {
			t.Fatal(err)
		}
		noError(t, h.runtime.Suspend(t.Context(), "g", ""))
		h.drive(t)
		if err := h.Flush(t.Context()); !errors.Is(err, tables.ErrThrottled) {
			t.Fatal(err)
		}
		h.meter.failing(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(h.right(t), h.rows(t)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
}

// An orchestration without its status is removed from the list, and recorded as damaged; the others are repaired.
func TestRepairNotesDamage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := filled(t, 6)
		time.Sleep(time.Minute)
		lost := tables.Delete(tables.Key{Partition: tables.EscapeKey("a/02"), Row: "status"}, "")
		nameless := tables.Insert(tables.Entity{Key: tables.Key{Partition: "a=zz", Row: "status"}, Properties: map[string]any{"Name": "gate"}})
		for _, op := range []tables.Op{lost, nameless} {
			noError(t, h.store.Apply(t.Context(), "orchestrations", op))
		}
		noError(t, h.runtime.Purge(t.Context(), "a/00"))
		mended := h.repair(t)
		if diff := cmp.Diff(h.right(t), h.rows(t)); diff != "" || mended == 0 {
			t.Errorf("%d mended (-want +got):\n%s", mended, diff)
		}
		found, _, err := h.runtime.Damages(t.Context(), 10)
		if err != nil || len(found) != 2 || found[0].ID+found[1].ID != "a/02" {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// A list deletes stale rows and the rows of purged orchestrations.
func TestListTidies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := filled(t, 9)
		time.Sleep(time.Minute)
		e := entryFor(must(h.runtime.Status(t.Context(), "a/00")))
		e.status = orchestrator.Running
		noError(t, h.store.Apply(t.Context(), DefaultTable, tables.Upsert(e.row(e.statusRows()[0]))))
		if got := h.pages(t, orchestrator.Filter{Statuses: []orchestrator.Status{orchestrator.Running, orchestrator.Completed}}, 100); len(got) != 6 {
			t.Errorf("%v", got)
		}
		if diff := cmp.Diff(h.right(t), h.rows(t)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		noError(t, h.runtime.Purge(t.Context(), "a/00"))
		for _, f := range []orchestrator.Filter{{}, {CorrelationID: e.correlation}, {Orchestrator: "short"}, {Prefix: "a"}, {Statuses: []orchestrator.Status{orchestrator.Completed}},
			{Orchestrator: "short", Statuses: []orchestrator.Status{orchestrator.Completed}}} {
			if slices.Contains(h.pages(t, f, 100), "a/00") {
				t.Error("it is listed")
			}
		}
		if diff := cmp.Diff(h.right(t), h.rows(t)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestConfig(t *testing.T) {
	t.Parallel()
	store, runtime := tables.NewMemory(), func() *orchestrator.Runtime { return nil }
	for _, c := range []Config{{}, {Tables: store}, {Runtime: runtime}, {Tables: store, Runtime: runtime, Linger: -1}, {Tables: store, Runtime: runtime, RepairEvery: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// A full list and a closed list drop changes. Close writes pending changes, within a time limit.
func TestBounds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, err := New(Config{Tables: tables.NewMemory(), Runtime: func() *orchestrator.Runtime { return nil }, Linger: time.Hour})
		if err == nil {
			err = c.Prepare(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range maxPending + 5 {
			c.Record(orchestrator.StatusChange{ID: fmt.Sprint(i), Orchestrator: "o", Status: orchestrator.Running, CreatedAt: time.Unix(1, 0)})
		}
		if len(c.pending) != maxPending || c.dropped != 5 {
			t.Error(len(c.pending), c.dropped)
		}
		c.Close()
		if c.Record(orchestrator.StatusChange{ID: "late"}); len(c.pending) != 0 {
			t.Error("it is closed")
		}
	})
}

// inBubble runs a test in a bubble of synctest, in parallel with others.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// noError ends a test whose preparation failed.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorOf returns the error of a call whose result does not matter.
func errorOf[T any](_ T, err error) error { return err }
