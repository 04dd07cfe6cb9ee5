package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// flow is an orchestration "a" of the orchestrator "test" under a host that handles all queues, one message at a time,
// and sweeps.
type flow struct {
	make   func(l *ledger) ([]AnyOrchestrator, []AnyActivity)
	config Config
	// steps are actions of others; each happens once, when its time has come and no other work is left.
	steps []outside
	// status and output are its expected end; the default is Completed.
	status Status
	output string
	// check verifies the end of every run.
	check func(t *testing.T, w *world, rt *Runtime, l *ledger)
}

type outside struct {
	at time.Duration
	do func(ctx context.Context, rt *Runtime) error
}

// raising is a step that raises the event of a name.
func raising(at time.Duration, id, name string, data any) outside {
	return outside{at, func(ctx context.Context, rt *Runtime) error { return rt.Raise(ctx, id, name, data, "raised-"+name) }}
}

// runs drives the flow without a fault, and then once for each storage call of each process and each way in which that
// can fail. With faults nil it only runs once.
func (f flow) runs(t *testing.T, kinds ...faults.Fault) {
	t.Helper()
	plans := make([]*faults.Plan, 6) // later processes behave like one of these
	for i := range plans {
		plans[i] = &faults.Plan{}
	}
	synctest.Test(t, func(t *testing.T) { f.drive(t, newWorld(t), &ledger{}, plans...) })
	if t.Failed() {
		return // faults would add no information
	}
	for process, plan := range plans {
		for at := range plan.Calls() {
			for _, fault := range kinds {
				inSample(t, fmt.Sprintf("process-%d-%s-%d", process+1, fault, at+1), func(t *testing.T) {
					before := make([]*faults.Plan, process, process+1)
					for i := range before {
						before[i] = &faults.Plan{}
					}
					f.drive(t, newWorld(t), &ledger{}, append(before, &faults.Plan{At: at + 1, Fault: fault})...)
				})
			}
		}
	}
}

// drive runs the flow to its end, a process for each plan, one invocation each, and then one that lasts. Every caller
// runs under synctest.
func (f flow) drive(t *testing.T, w *world, l *ledger, plans ...*faults.Plan) {
	t.Helper()
	begin, started, steps, swept := time.Now(), false, f.steps, time.Now()
	outsider := f.process(t, w, l, nil)
	plan, rt, invoked := &faults.Plan{}, (*Runtime)(nil), true
	for range 20_000 {
		if rt == nil || plan.Crashed() || invoked && len(plans) > 0 {
			if plan = (&faults.Plan{}); len(plans) > 0 {
				plan, plans = plans[0], plans[1:]
			}
			rt = f.process(t, w, l, plan)
		}
		invoked = false
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		acted := true
		switch {
		case !started:
			out, err := rt.Run(ctx, startOf("a", 1))
			invoked = true
			started = err == nil && (out.Ended() || out.Woken)
			if !started {
				time.Sleep(30 * time.Second)
			}
		case w.deliver(ctx, t, rt), w.runActivities(ctx, t, rt):
			invoked = true
		case len(steps) > 0 && time.Since(begin) >= steps[0].at:
			noError(t, steps[0].do(ctx, outsider))
			steps = steps[1:]
		case time.Since(swept) >= time.Hour:
			swept = time.Now()
			noError(t, errorOf(outsider.Sweep(ctx, 100)))
		default:
			acted = false
		}
		cancel()
		if acted {
			continue
		}
		if len(steps) == 0 && w.waitingMessages(t)+w.waitingBatches(t) == 0 && w.ended(t, outsider) {
			f.end(t, w, outsider, l)
			return
		}
		time.Sleep(5 * time.Minute)
	}
	t.Fatalf("after %v it has not come to an end: %+v", time.Since(begin), w.all(t, outsider))
}

func (f flow) process(t *testing.T, w *world, l *ledger, plan *faults.Plan) *Runtime {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	c := f.config
	c.Orchestrators, c.Activities = f.make(l)
	c.Queues = faults.Queues(w.queues, plan.Intercept)
	return w.configured(t, plan, c)
}

// end checks the invariants when no work is left.
func (f flow) end(t *testing.T, w *world, rt *Runtime, l *ledger) {
	t.Helper()
	out := mustGet(t, rt, "a")
	want := f.status
	if want == "" {
		want = Completed
	}
	if out.Status != want || f.output != "" && string(out.Output) != f.output {
		t.Errorf("it ended %s %s %v, not %s %s", out.Status, out.Output, out.Failure, want, f.output)
	}
	w.replays(t, rt)
	if f.check != nil {
		f.check(t, w, rt, l)
	}
}

// replays checks the storage of every orchestration, and that its code replays to its history.
func (w *world) replays(t *testing.T, rt *Runtime) {
	t.Helper()
	for _, s := range w.all(t, rt) {
		w.stored(t, s.ID)
		history := must(rt.Export(t.Context(), s.ID))(t)
		o := rt.versions[version{s.Orchestrator, s.Version}]
		if err := Replay(o, history); err != nil {
			t.Errorf("replay of %s: %v", s.ID, err)
		}
	}
}

// all returns every orchestration.
func (w *world) all(t *testing.T, rt *Runtime) []Summary {
	t.Helper()
	all, next, err := rt.List(t.Context(), Filter{}, maxList, "")
	if err != nil || next != "" {
		t.Fatal(next, err)
	}
	return all
}

// ended reports whether every orchestration has ended.
func (w *world) ended(t *testing.T, rt *Runtime) bool {
	t.Helper()
	for _, s := range w.all(t, rt) {
		if !s.Ended() {
			return false
		}
	}
	return true
}

func (w *world) waitingBatches(t *testing.T) int {
	t.Helper()
	n := must(w.queues.Length(t.Context(), activityQueue))(t)
	return n
}

// receiveBatch receives the next visible message of the activity queue.
func (w *world) receiveBatch(t *testing.T) (queues.Message, bool) {
	t.Helper()
	messages := must(w.queues.Receive(t.Context(), activityQueue, 1, time.Hour))(t)
	if len(messages) == 0 {
		return queues.Message{}, false
	}
	return messages[0], true
}

// runActivities delivers one message of the activity queue, if one is visible. The host abandons it after five
// deliveries.
func (w *world) runActivities(ctx context.Context, t *testing.T, rt *Runtime) bool {
	t.Helper()
	m, ok := w.receiveBatch(t)
	if !ok {
		return false
	}
	body := queues.Decode(m.Text)
	err := rt.RunActivities(ctx, body)
	if err != nil && m.DequeueCount >= 5 {
		err = rt.GiveUpActivities(ctx, body, "the host gave up: "+err.Error())
	}
	if errors.Is(err, ErrBatch) {
		t.Fatal(err)
	}
	if err == nil {
		err = w.queues.Delete(t.Context(), activityQueue, m.ID, m.PopReceipt)
	} else {
		_, err = w.queues.Renew(t.Context(), activityQueue, m.ID, m.PopReceipt, 30*time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// parked returns the rows of the index.
func (w *world) parked(t *testing.T) []string {
	t.Helper()
	var rows []string
	for e, err := range tables.All(t.Context(), w.tables, "orchestrationsParked", tables.Query{Partition: indexPartition}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprint(e.String(columnID), " ", e.Time(columnDue).Format(time.DateTime), " ", e.Bool(columnWithin)))
	}
	return rows
}

// holds reports whether a blob of an orchestration exists.
func (w *world) holds(t *testing.T, id, hash string) bool {
	t.Helper()
	if hash == "" {
		return false
	}
	_, err := w.blobs.Get(t.Context(), "orchestrations", blobName(id, hash))
	if err != nil && !errors.Is(err, blobs.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}
