package timeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// bench is a runtime on stores in memory with counted requests, and a Reader of it.
type bench struct {
	*Reader
	store   tables.Store
	runtime *orchestrator.Runtime
	letters *engine.DeadLetters
	plan    *faults.Plan
}

func newBench(t *testing.T, all ...orchestrator.AnyOrchestrator) *bench {
	t.Helper()
	b := &bench{plan: &faults.Plan{}}
	b.store = faults.Tables(tables.NewMemory(), b.plan.Intercept)
	quiet := slog.New(slog.DiscardHandler)
	step := orchestrator.NewActivity("step", func(_ context.Context, n int) (int, error) { return n, nil })
	var err error
	b.runtime, err = orchestrator.New(orchestrator.Config{Tables: b.store, Blobs: blobs.NewMemory(), Queues: queues.NewMemory(), Log: quiet,
		Orchestrators: all, Activities: []orchestrator.AnyActivity{step}})
	testenv.OK(t, err)
	history := engine.NewHistory(b.store, "")
	b.letters = engine.NewDeadLetters(b.store, "")
	testenv.OK(t, errors.Join(b.runtime.Prepare(t.Context()), history.CreateTable(t.Context()), b.letters.CreateTable(t.Context())))
	b.Reader = NewReader(Config{Engines: []string{"door", engine.SignalEngine}, History: history, DeadLetters: b.letters, Runs: b.runtime, List: b.runtime.List, Tasks: b.runtime.Tasks(),
		RunID: func(name string, m engine.Message) string {
			if m.InstanceID == "" {
				return ""
			}
			return name + "-" + m.InstanceID
		}, Now: time.Now, Log: quiet})
	return b
}

func (b *bench) run(t *testing.T, s orchestrator.Start) {
	t.Helper()
	if s.Input == nil {
		s.Input = []byte("1")
	}
	testenv.Must(b.runtime.Run(t.Context(), s))(t)
}

// lines returns the items of a timeline as text.
func (b *bench) lines(t *testing.T, q Query) (lines []string, truncated bool) {
	t.Helper()
	page, err := b.Read(t.Context(), q)
	testenv.OK(t, err)
	for _, i := range page.Items {
		switch {
		case i.Orchestration != nil:
			lines = append(lines, fmt.Sprintf("%s %s %d", i.Orchestration.ID, i.Orchestration.Status, i.Orchestration.Execution))
		case i.Change != nil:
			lines = append(lines, i.Change.What)
		case i.Call != nil:
			lines = append(lines, fmt.Sprintf("%s %d %s", i.Call.Name, i.Call.Call, i.Call.Status))
		default:
			lines = append(lines, string(i.Kind))
		}
	}
	return lines, page.Truncated
}

func door() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("door", func(ctx *orchestrator.Context, n int) (int, error) {
		step := orchestrator.NewActivity("step", func(context.Context, int) (int, error) { return 0, nil })
		return step.Call(ctx, n).Await()
	})
}

// Runs of a singleton share an id; each is in the timeline of its own correlation id, with its final state, and for its
// own tenant only.
func TestRunsOfASingleton(t *testing.T) {
	t.Parallel()
	b := newBench(t, door())
	history := b.config.History.(*engine.History)
	for n, tenantID := range []string{"acme", "blue"} {
		id := fmt.Sprint("c", n+1)
		b.run(t, orchestrator.Start{ID: "door-i1", Orchestrator: "door", CorrelationID: id, TenantID: tenantID, Reuse: orchestrator.ReuseEnded})
		testenv.OK(t, history.Record(t.Context(), engine.Entry{Engine: "door", InstanceID: "i1", TenantID: tenantID, Operation: "step", Status: engine.StatusSucceeded,
			CreatedAtUtc: time.Now(), CorrelationID: id}))
	}
	for n, tenantID := range []string{"acme", "blue"} {
		want := []string{"message", fmt.Sprintf("door-i1 Completed %d", n+1), "step 1 Completed", "history"}
		for _, as := range []string{"", strings.ToUpper(tenantID)} {
			if got, truncated := b.lines(t, Query{CorrelationID: fmt.Sprint("c", n+1), TenantID: as}); !slices.Equal(got, want) || truncated {
				t.Errorf("c%d for %q: %q, %v", n+1, as, got, truncated)
			}
		}
		if _, err := b.Read(t.Context(), Query{CorrelationID: fmt.Sprint("c", n+1), TenantID: "red"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("for another tenant: %v", err)
		}
	}
	b.config.RunID = func(string, engine.Message) string { return "door-i1" } // the finder of a run may lack access to it
	if page, err := b.Read(t.Context(), Query{CorrelationID: "c2", TenantID: "red"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("for another tenant: %+v, %v", page, err)
	}
}

// Unreadable data is reported, with the items before it.
func TestDamage(t *testing.T) {
	t.Parallel()
	b := newBench(t, door())
	b.run(t, orchestrator.Start{ID: "door-i1", Orchestrator: "door", CorrelationID: "c1"})
	key := tables.Key{Partition: "door-i1", Row: "r-00000001-00000002"}
	e, err := b.store.Get(t.Context(), "orchestrations", key)
	testenv.OK(t, err)
	e.Properties["Data"] = []byte("garbage")
	testenv.OK(t, b.store.Apply(t.Context(), "orchestrations", tables.Replace(e)))
	got, truncated := b.lines(t, Query{CorrelationID: "c1"})
	if want := []string{"message", "door-i1 Completed 1", "step 1 Running", "Unreadable"}; !slices.Equal(got, want) || !truncated {
		t.Errorf("%q, %v", got, truncated)
	}
}

// A dead letter under a run's own id is in the timeline of its correlation id.
func TestLettersOfARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, door())
	b.run(t, orchestrator.Start{ID: "door-i1", Orchestrator: "door", CorrelationID: "c1"})
	testenv.Must(b.letters.Add(t.Context(), engine.DeadLetter{Engine: engine.SignalEngine, MessageID: "m1", CorrelationID: "door-i1", LastFailureAtUtc: time.Now(), OriginalMessage: []byte("{}")}))(t)
	if got, _ := b.lines(t, Query{CorrelationID: "c1", Kind: KindDeadLetter}); !slices.Equal(got, []string{"deadLetter"}) {
		t.Errorf("%q", got)
	}
}

// A page's reads are bounded, however many runs call each other, and it reports omissions.
func TestBounds(t *testing.T) {
	t.Parallel()
	var wide *orchestrator.Orchestrator[int, int]
	wide = orchestrator.NewOrchestrator("wide", func(ctx *orchestrator.Context, n int) (int, error) {
		for i := range n {
			if _, err := wide.Call(ctx, 0, orchestrator.WithID(fmt.Sprint("child-", i))).Await(); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	for n, cut := range map[int]bool{maxRuns - 1: false, maxRuns + 20: true} {
		b := newBench(t, wide)
		b.config.List, b.config.RunID = nil, func(string, engine.Message) string { return "wide-1" } // the rest is found by the calls
		b.run(t, orchestrator.Start{ID: "wide-1", Orchestrator: "wide", CorrelationID: "c1", Input: fmt.Append(nil, n)})
		before := len(b.plan.Calls())
		got, truncated := b.lines(t, Query{CorrelationID: "c1", Kind: KindOrchestration, Limit: MaxLimit})
		if reads := len(b.plan.Calls()) - before; truncated != cut || len(got) != min(n+1, maxRuns) || reads > maxReads {
			t.Errorf("%d runs: %d items, truncated %v, %d reads", n+1, len(got), truncated, reads)
		}
	}
}

// A place from outside is one of a page, or is refused.
func TestPlaces(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 123000, time.UTC)
	item := Item{ID: "call/a/b/1", At: at}
	if got, id, err := openPlace(placeOf(&item)); err != nil || !got.Equal(at) || id != item.ID {
		t.Errorf("%v %q %v", got, id, err)
	}
	for _, place := range []string{"1", "/x", "x/y", "1/", "99999999999999999999/x"} {
		if _, _, err := openPlace(place); !errors.Is(err, ErrPlace) {
			t.Errorf("%q: %v", place, err)
		}
	}
}
