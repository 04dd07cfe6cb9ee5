package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the storage that outlives processes, with dead messages in it. It runs in a bubble.
type world struct {
	tables tables.Store
	queues queues.Store
	blobs  blobs.Store
}

type process struct {
	runtime    *orchestrator.Runtime
	admin      *outbox.Admin
	operations *Operations
	plan       *faults.Plan
}

func newWorld(t *testing.T, messages int) *world {
	t.Helper()
	w := &world{tables.NewMemory(), queues.NewMemory(), blobs.NewMemory()}
	p := w.process(t, nil)
	o := w.outbox(t, w.tables, w.queues)
	testenv.OK(t, errors.Join(p.runtime.Prepare(t.Context()), o.Create(t.Context())))
	if messages == 0 {
		return w
	}
	list := make([]outbox.Message, messages)
	for n := range list {
		list[n] = outbox.Message{TenantID: "acme", EventType: "type", Payload: json.RawMessage("{}"), Key: outbox.Key("test", "", fmt.Sprint(n), "", "")}
	}
	testenv.Must(outbox.NewWriter(o).AddMany(t.Context(), "acme", list))(t)
	router, err := outbox.NewRouter([]outbox.Route{{EventType: "*", Destination: "refuses"}}, outbox.Destinations{"refuses": refusal{}})
	testenv.OK(t, err)
	d, err := outbox.NewDispatcher(o, outbox.DispatcherConfig{Router: router})
	for err == nil && w.count(t, outbox.StatusDead) < messages {
		_, err = d.Sweep(t.Context())
	}
	testenv.OK(t, err)
	<-time.After(time.Minute) // an operation selects rows from before its start
	return w
}

// refusal is a destination that refuses every event.
type refusal struct{}

func (refusal) Deliver(context.Context, outbox.Event) error {
	return &outbox.DeliveryError{Permanent: true, Err: errors.New("never")}
}

func (w *world) outbox(t *testing.T, ts tables.Store, qs queues.Store) *outbox.Outbox {
	t.Helper()
	o, err := outbox.New(outbox.Config{Tables: ts, Queues: qs, Blobs: w.blobs, Logger: slog.New(slog.DiscardHandler)})
	testenv.OK(t, err)
	return o
}

// process returns a process whose calls go through a plan; nil only counts.
func (w *world) process(t *testing.T, plan *faults.Plan) *process {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	ts, qs := faults.Tables(w.tables, plan.Intercept), faults.Queues(w.queues, plan.Intercept)
	admin := outbox.NewAdmin(w.outbox(t, ts, qs))
	letters, retrier := w.deadLetters(t, ts, qs)
	var r *orchestrator.Runtime
	kinds := []Kind{Outbox(admin), Orchestrations(func() Purger { return r }), DeadLetters{Letters: letters, Retrier: retrier, Engines: []string{"hmac", "tls"}}.Kind()}
	short := orchestrator.NewOrchestrator("short", func(*orchestrator.Context, int) (int, error) { return 0, nil })
	r, err := orchestrator.New(orchestrator.Config{
		Tables: ts, Queues: qs, Blobs: faults.Blobs(w.blobs, plan.Intercept), ScheduleQueue: "orchestration-signals", LateAfter: time.Minute,
		Orchestrators: append(Orchestrators(kinds...), short), Activities: Activities(kinds...), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	testenv.OK(t, err)
	return &process{r, admin, NewOperations(r, nil), plan}
}

// work handles signals as a host does, until none comes for a while or the process is dead.
func (p *process) work(t *testing.T, w *world) {
	t.Helper()
	for idle := 0; idle < 40 && !p.plan.Crashed(); {
		batch, err := w.queues.Receive(t.Context(), p.runtime.SignalQueue(), 1, 30*time.Second)
		testenv.OK(t, err)
		if len(batch) == 0 {
			idle++
			<-time.After(time.Second)
			continue
		}
		s, err := orchestrator.DecodeSignal(queues.Decode(batch[0].Text))
		testenv.OK(t, err)
		_, err = p.runtime.Deliver(t.Context(), s)
		if err == nil && !p.plan.Crashed() {
			err = w.queues.Delete(t.Context(), p.runtime.SignalQueue(), batch[0].ID, batch[0].PopReceipt)
			testenv.OK(t, err)
		}
	}
}

func (w *world) count(t *testing.T, status outbox.Status) (n int) {
	t.Helper()
	admin := outbox.NewAdmin(w.outbox(t, w.tables, w.queues))
	f := outbox.Filter{Status: status, Limit: outbox.MaxLimit}
	for {
		page, err := admin.List(t.Context(), f)
		testenv.OK(t, err)
		n += len(page.Records)
		if f.Continuation = page.Continuation; f.Continuation == "" {
			return n
		}
	}
}

func request() Request {
	return Request{Action: string(outbox.ActionReplay), Status: string(outbox.StatusDead)}
}

// 5,300 messages are more slices than one run of the orchestration has; a short run has fewer. The process dies in
// the middle of them.
func TestManyMessagesWithADeathInTheMiddle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		messages := 5_300
		if testing.Short() {
			messages = 530
		}
		w := newWorld(t, messages)
		first := w.process(t, &faults.Plan{At: messages + messages/8, Fault: faults.CrashAfter})
		op, err := first.operations.Start(t.Context(), OutboxKind, request(), "", "corr")
		testenv.OK(t, err)
		first.work(t, w)
		second := w.process(t, nil)
		between, err := second.operations.Get(t.Context(), op.ID)
		if err != nil || !first.plan.Crashed() || between.Ended() || between.Progress.Done == 0 || between.Progress.Done >= messages {
			t.Errorf("in the middle: %+v, %v", between, err)
		}
		second.work(t, w)
		end, err := second.operations.Get(t.Context(), op.ID)
		if err != nil || end.Status != orchestrator.Completed || end.Progress.Slices < messages/sliceSize {
			t.Errorf("at the end: %+v, %v", end, err)
		}
		// The changes of the dead process in its last slice are not counted.
		if done := end.Progress.Done; done > messages || done < messages-sliceSize {
			t.Errorf("%d counted", done)
		}
		if dead, pending := w.count(t, outbox.StatusDead), w.count(t, outbox.StatusPending); dead != 0 || pending != messages {
			t.Errorf("%d dead and %d pending", dead, pending)
		}
		if end.CorrelationID != "corr" || !end.Request.sameAs(op.Request) {
			t.Errorf("%+v", end)
		}
	})
}

// With any fault at any call, an accepted operation succeeds.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	const messages = 3
	kinds := []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Applied, faults.Unknown, faults.Throttled}
	faultstest.EachCall(t, kinds, 10, func(t *testing.T, plan *faults.Plan) {
		w := newWorld(t, messages)
		p := w.process(t, plan)
		op, err := p.operations.Start(t.Context(), OutboxKind, request(), "key", "corr")
		if err == nil {
			p.work(t, w)
		}
		p = w.process(t, nil)
		if err != nil { // the caller repeats a request that was not accepted
			op, err = p.operations.Start(t.Context(), OutboxKind, request(), "key", "corr")
			testenv.OK(t, err)
		}
		p.work(t, w)
		op, err = p.operations.Get(t.Context(), op.ID)
		if err != nil || op.Status != orchestrator.Completed {
			t.Errorf("%+v, %v", op, err)
		}
		testenv.Equal(t, "pending messages", messages, w.count(t, outbox.StatusPending))
	})
}

func TestWhatCannotSucceedFailsAtOnce(t *testing.T) {
	t.Parallel()
	for kind, r := range map[string]Request{OutboxKind: {Action: string(outbox.ActionReplay), Status: "odd"}, DeadLetterKind: {Action: "odd"}} {
		testenv.Bubble(t, kind, func(t *testing.T) {
			w := newWorld(t, 1)
			w.bury(t, 1, nil)
			p := w.process(t, nil)
			op, err := p.operations.Start(t.Context(), kind, r, "", "corr")
			testenv.OK(t, err)
			began := time.Now()
			p.work(t, w)
			op, err = p.operations.Get(t.Context(), op.ID)
			if err != nil || op.Status != orchestrator.Failed || op.EndedAt.Sub(began) > time.Second {
				t.Errorf("%+v, %v", op, err)
			}
		})
	}
}

// Messages that are added while it runs are not selected.
func TestOnlyWhatWasThereIsMeant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	now := time.Date(2026, 11, 21, 12, 0, 0, 5, time.FixedZone("east", 3600))
	o := NewOperations(w.process(t, nil).runtime, func() time.Time { return now })
	op, err := o.Start(t.Context(), OutboxKind, request(), "", "corr")
	if err != nil || !op.Request.To.Equal(now) {
		t.Errorf("%+v, %v", op, err)
	}
	r := request()
	r.To = now.Add(-time.Hour)
	if op, err = o.Start(t.Context(), OutboxKind, r, "", "corr"); err != nil || !op.Request.To.Equal(r.To) {
		t.Errorf("%+v, %v", op, err)
	}
}
