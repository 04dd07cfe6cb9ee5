package bulk

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const rotations = "hmac-rotation-queue"

func (w *world) deadLetters(t *testing.T, ts tables.Store, qs queues.Store) (*engine.DeadLetters, *engine.Retrier) {
	t.Helper()
	letters := engine.NewDeadLetters(ts, "")
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: letters, Queues: qs})
	testenv.OK(t, err)
	return letters, retrier
}

// bury adds dead letters of the engine hmac.
func (w *world) bury(t *testing.T, n int, change func(i int, l *engine.DeadLetter)) *engine.DeadLetters {
	t.Helper()
	letters, _ := w.deadLetters(t, w.tables, w.queues)
	testenv.OK(t, errors.Join(letters.CreateTable(t.Context()), w.queues.CreateQueue(t.Context(), rotations)))
	for i := range n {
		l := engine.DeadLetter{
			Engine: "hmac", MessageID: fmt.Sprintf("message-%d", i), InsertedAtUtc: time.Now(), OriginalQueue: rotations,
			OriginalMessage: fmt.Appendf(nil, `{"correlationId":"c%d"}`, i), ErrorMessage: "no", CorrelationID: fmt.Sprintf("c%d", i),
			LastFailureAtUtc: time.Now().Add(time.Duration(i) * time.Microsecond),
		}
		if change != nil {
			change(i, &l)
		}
		testenv.Must(letters.Add(t.Context(), l))(t)
	}
	<-time.After(time.Minute) // an operation selects rows from before its start
	return letters
}

// retries takes all messages out of the queue and returns, by message id, the retry ids of each.
func (w *world) retries(t *testing.T) map[string]map[string]int {
	t.Helper()
	ids := map[string]map[string]int{}
	for {
		batch, err := w.queues.Receive(t.Context(), rotations, 32, time.Hour)
		testenv.OK(t, err)
		if len(batch) == 0 {
			return ids
		}
		for _, m := range batch {
			line, _, _ := strings.Cut(string(queues.Decode(m.Text)), "\n")
			_, text, _ := strings.Cut(line, " ")
			var j struct {
				MessageID string
				Retry     struct{ ID string }
			}
			if err := json.Unmarshal([]byte(text), &j); err != nil || j.Retry.ID == "" {
				t.Fatalf("%q: %v", line, err)
			}
			if ids[j.MessageID] == nil {
				ids[j.MessageID] = map[string]int{}
			}
			ids[j.MessageID][j.Retry.ID]++
		}
	}
}

func (w *world) counts(t *testing.T) engine.DeadLetterCounts {
	t.Helper()
	letters, _ := w.deadLetters(t, w.tables, w.queues)
	counts, err := letters.Counts(t.Context(), []string{"hmac"})
	testenv.OK(t, err)
	return counts[0]
}

// Three processes retry 5,000 dead letters in parallel, and the first dies in the middle. A receiver sees each
// message under one retry id, and all of them are resolved.
func TestBulkRetryWithADeathInTheMiddle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		letters := 5_000
		if testing.Short() {
			letters = 500
		}
		w := newWorld(t, 0)
		w.bury(t, letters, nil)
		first := w.process(t, &faults.Plan{At: letters * 12 / 5, Fault: faults.CrashAfter})
		op, err := first.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Engine: "hmac", By: "me"}, "", "corr")
		testenv.OK(t, err)
		first.work(t, w)
		others := []*process{w.process(t, nil), w.process(t, nil)}
		between, err := others[0].operations.Get(t.Context(), op.ID)
		if done := between.Progress.Done; err != nil || !first.plan.Crashed() || between.Ended() || done == 0 || done >= letters {
			t.Errorf("in the middle: %+v, %v", between, err)
		}
		var wait sync.WaitGroup
		for _, p := range others {
			wait.Go(func() { p.work(t, w) })
		}
		wait.Wait()
		end, err := others[0].operations.Get(t.Context(), op.ID)
		if err != nil || end.Status != orchestrator.Completed || end.Progress.PassedOver != 0 || end.Progress.Done < letters-sliceSize || end.Progress.Done > letters {
			t.Errorf("at the end: %+v, %v", end, err)
		}
		sent := w.retries(t)
		for message, ids := range sent {
			if len(ids) != 1 {
				t.Errorf("%s was sent under %v", message, ids)
			}
		}
		if c := w.counts(t); len(sent) != letters || c.Pending != 0 || int(c.Resolved) != letters {
			t.Errorf("%d messages sent, %+v", len(sent), c)
		}
	})
}

func TestBulkExpireByFilter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		began := time.Now()
		w.bury(t, 250, func(i int, l *engine.DeadLetter) {
			switch {
			case i%5 == 0:
				l.InstanceID = "i1"
			case i%5 == 1:
				l.Status = engine.StatusResolved
			}
		})
		p := w.process(t, nil)
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionExpire, InstanceID: "i1", To: began.Add(time.Second), By: "me"}, "", "corr")
		testenv.OK(t, err)
		p.work(t, w)
		end, err := p.operations.Get(t.Context(), op.ID)
		if c := w.counts(t); err != nil || end.Progress.Done != 50 || c.Expired != 50 || c.Resolved != 50 || c.Pending != 150 {
			t.Errorf("%+v, %v; %+v", end, err, c)
		}
	})
}

// At three a second, fifty take some time, and a cancellation does not wait for all of them.
func TestBulkRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 50, nil)
		p := w.process(t, nil)
		began := time.Now()
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, RatePerSecond: 3}, "", "corr")
		testenv.OK(t, err)
		var wait sync.WaitGroup
		for range 2 { // one drives it, and one handles the cancellation
			wait.Go(func() { p.work(t, w) })
		}
		<-time.After(9 * time.Second)
		if c := w.counts(t); c.Resolved < 25 || c.Resolved > 28 {
			t.Errorf("after 9 s: %+v", c)
		}
		testenv.Must(p.operations.Cancel(t.Context(), op.ID, "enough"))(t)
		wait.Wait()
		end, err := p.operations.Get(t.Context(), op.ID)
		if c := w.counts(t); err != nil || end.Status != orchestrator.Canceled || c.Pending == 0 || end.EndedAt.Sub(began) > 25*time.Second {
			t.Errorf("%+v after %v, %v; %+v", end, end.EndedAt.Sub(began), err, c)
		}
	})
}

func TestBulkCanary(t *testing.T) {
	t.Parallel()
	for name, comesBack := range map[string]bool{"sings": false, "comes back": true} {
		testenv.Bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 0)
			letters := w.bury(t, 150, nil)
			p := w.process(t, nil)
			op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Canary: 3, CanarySeconds: 30}, "", "corr")
			testenv.OK(t, err)
			var wait sync.WaitGroup
			wait.Go(func() { p.work(t, w) })
			<-time.After(20 * time.Second)
			if c := w.counts(t); c.Resolved != 3 {
				t.Errorf("before the canary is judged: %+v", c)
			}
			if comesBack {
				page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, Status: engine.StatusResolved})
				testenv.OK(t, err)
				l, err := letters.Get(t.Context(), "hmac", page.DeadLetters[0].RowKey)
				testenv.OK(t, err)
				child := engine.DeadLetter{Engine: "hmac", MessageID: l.MessageID, InsertedAtUtc: l.RetriedAtUtc, ParentRowKey: l.RowKey,
					OriginalQueue: rotations, ErrorMessage: "no", LastFailureAtUtc: time.Now(), CorrelationID: l.CorrelationID}
				testenv.Must(letters.Add(t.Context(), child))(t)
			}
			wait.Wait()
			end, err := p.operations.Get(t.Context(), op.ID)
			testenv.OK(t, err)
			want := Progress{Slices: 3, Done: 150}
			status := orchestrator.Completed
			if comesBack {
				want, status = Progress{Slices: 1, Done: 3, Returned: 1}, orchestrator.Failed
			}
			if end.Progress != want || end.Status != status {
				t.Errorf("%+v", end)
			}
		})
	}
}

// An operation that is canceled during its canary does not change the rest, also when the canary fails.
func TestACanceledCanary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 150, nil)
		p := w.process(t, nil)
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Canary: 3, CanarySeconds: 30}, "", "corr")
		testenv.OK(t, err)
		var wait sync.WaitGroup
		wait.Go(func() { p.work(t, w) })
		<-time.After(20 * time.Second)
		testenv.OK(t, p.runtime.Cancel(t.Context(), op.ID, "enough"))
		wait.Wait()
		op, err = p.operations.Get(t.Context(), op.ID)
		if c := w.counts(t); err != nil || op.Status != orchestrator.Canceled || c.Resolved != 3 {
			t.Errorf("%+v, %v; %+v", op, err, c)
		}
	})
}

// Exactly the named rows are changed: those of another tenant, not pending or missing are skipped, with any fault at
// any call of any process. Some are changed first, and the rest when none of them has failed again.
func TestNamedRowsAtEveryCall(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan) {
		w := newWorld(t, 0)
		letters := w.bury(t, 8, func(i int, l *engine.DeadLetter) {
			if i == 5 {
				l.TenantID = "other"
			} else {
				l.TenantID = "contoso"
			}
		})
		page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}})
		if err != nil || len(page.DeadLetters) != 8 {
			t.Fatalf("%d, %v", len(page.DeadLetters), err)
		}
		slices.SortFunc(page.DeadLetters, func(a, b engine.DeadLetter) int { return a.LastFailureAtUtc.Compare(b.LastFailureAtUtc) })
		named := func(numbers ...int) (rows []Row) {
			for _, n := range numbers {
				rows = append(rows, Row{"hmac", page.DeadLetters[n].RowKey})
			}
			return rows
		}
		testenv.Must(letters.Decide(t.Context(), "hmac", page.DeadLetters[4].RowKey, engine.Decision{Status: engine.StatusExpired, At: time.Now()}))(t)
		p := w.process(t, plan)
		req := Request{Action: ActionRetry, Tenant: "Contoso", Rows: append(named(0, 2, 4, 5), Row{"hmac", "nothing"}, Row{"hmac", "../x"}), RatePerSecond: 100, Canary: 1, CanarySeconds: 30, By: "me"}
		op, err := w.process(t, nil).operations.Start(t.Context(), DeadLetterKind, req, "key", "corr")
		if err != nil || op.Request.Selected != 6 || op.Request.Rows != nil || op.Request.Selection == "" {
			t.Fatalf("%+v, %v", op, err)
		}
		p.work(t, w)
		if plan.Crashed() {
			w.process(t, nil).work(t, w)
		}
		op, err = w.process(t, nil).operations.Get(t.Context(), op.ID)
		if err != nil || op.Status != orchestrator.Completed || op.Progress.Done > 2 || op.Progress.Done+op.Progress.PassedOver != 6 || plan.At == 0 && op.Progress.Done != 2 {
			t.Errorf("%+v, %v", op, err)
		}
		for id, ids := range w.retries(t) {
			if len(ids) != 1 || id != "message-0" && id != "message-2" {
				t.Errorf("%s was sent as %v", id, ids)
			}
		}
		if c := w.counts(t); c.Pending != 5 || c.Resolved != 2 || c.Expired != 1 {
			t.Errorf("%+v", c)
		}
		again := req
		again.Rows = named(0, 2, 4)
		if _, err := p.operations.Start(t.Context(), DeadLetterKind, again, "key", "corr"); !plan.Crashed() && !errors.Is(err, ErrKeyReused) {
			t.Errorf("other rows under the key: %v", err)
		}
		if same, err := w.process(t, nil).operations.Start(t.Context(), DeadLetterKind, req, "key", "corr"); err != nil || same.ID != op.ID {
			t.Errorf("the same rows under the key: %+v, %v", same, err)
		}
	}
	faultstest.EachCall(t, []faults.Fault{faults.CrashAfter}, 10, run)
}

// An operation for a tenant changes only rows that the tenant may see.
func TestBulkOfATenant(t *testing.T) {
	t.Parallel()
	owners := []string{"", "contoso", "Contoso", "fabrikam"}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		p := w.process(t, nil)
		letters := w.bury(t, 40, func(i int, l *engine.DeadLetter) { l.TenantID = owners[i%len(owners)] })
		for i := range 40 {
			s := orchestrator.Start{ID: fmt.Sprint("short-", i), Orchestrator: "short", Input: []byte("1"), CorrelationID: "c", TenantID: owners[i%len(owners)]}
			testenv.Must(p.runtime.Run(t.Context(), s))(t)
		}
		<-time.After(time.Minute)
		for kind, r := range map[string]Request{
			DeadLetterKind:    {Action: ActionExpire, Tenant: "CONTOSO"},
			OrchestrationKind: {Action: ActionPurge, Tenant: "CONTOSO", IDPrefix: "short-"},
		} {
			op, err := p.operations.Start(t.Context(), kind, r, "", "corr")
			testenv.OK(t, err)
			p.work(t, w)
			end, err := p.operations.Get(t.Context(), op.ID)
			if err != nil || end.Status != orchestrator.Completed || end.Progress.Done != 20 || end.Progress.PassedOver != 0 {
				t.Errorf("%s: %+v, %v", kind, end, err)
			}
		}
		page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, Status: engine.StatusPending, Limit: engine.MaxLimit})
		testenv.OK(t, err)
		left, _, err := p.runtime.List(t.Context(), orchestrator.Filter{Prefix: "short-"}, 1000, "")
		testenv.OK(t, err)
		var pending, kept []string
		for _, l := range page.DeadLetters {
			pending = append(pending, l.TenantID)
		}
		for _, s := range left {
			kept = append(kept, s.TenantID)
		}
		slices.Sort(pending)
		slices.Sort(kept)
		want := slices.Concat(slices.Repeat([]string{""}, 10), slices.Repeat([]string{"fabrikam"}, 10))
		testenv.Equal(t, "left are those of", [][]string{want, want}, [][]string{pending, kept})
	})
}
