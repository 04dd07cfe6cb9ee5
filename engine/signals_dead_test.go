package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

// A signal that no delivery can apply, because its orchestration cannot continue, becomes a dead letter: with the
// original envelope, the reason, the process and the time. Once the cause is fixed, a retry wakes the orchestration.
func TestSignalsOfOrchestrationsThatCannotGoOn(t *testing.T) {
	t.Parallel()
	const id = "turntable-c1"
	tests := map[string]struct {
		spoil  func(t *testing.T, w *world) (mend func())
		reason engine.Reason
		says   string
		tenant string // from the status, if readable
	}{
		"a round is missing":    {spoil: losesRow(id, "r-00000001-00000001"), reason: engine.ReasonInconsistent, says: "stored rounds are damaged", tenant: "Contoso"},
		"its status is missing": {spoil: losesRow(id, "status"), reason: engine.ReasonInconsistent, says: "stored rounds are damaged"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.waits = true
				right := w.Restart(nil)
				w.Send(testQueue, good)
				if err := right.Handle(t.Context(), w.Take(testQueue)); err != nil {
					t.Fatal(err)
				}
				mend := tt.spoil(t, w)
				w.event(t, "c1", 0)
				d := w.Take(signalQueue)
				for d.DequeueCount = 1; d.DequeueCount <= 2; d.DequeueCount++ {
					if err := right.HandleSignal(t.Context(), d); err == nil || !strings.Contains(err.Error(), tt.says) {
						t.Fatalf("delivery %d: %v", d.DequeueCount, err)
					}
				}
				d.Queue, d.DequeueCount = signalQueue+engine.PoisonSuffix, 1 // the host has abandoned it
				gaveUp := time.Now()
				if err := right.HandleSignalPoison(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				dead := w.DeadLetters(engine.SignalEngine)
				if len(dead) != 2 || !strings.Contains(dead[0].ErrorMessage+dead[1].ErrorMessage, "purge it by force") {
					t.Fatalf("%d dead letters: not that of the signal and that of the damage", len(dead))
				}
				for _, l := range dead {
					if l.TenantID != tt.tenant {
						t.Errorf("of the tenant %q: %+v", l.TenantID, l)
					}
				}
				dead = slices.DeleteFunc(dead, func(l engine.DeadLetter) bool { return strings.Contains(l.ErrorMessage, "purge it by force") })
				of := id // unless its run is known
				if tt.tenant != "" {
					of = "c1"
				}
				if l := dead[0]; l.DetectedReason != tt.reason || !strings.Contains(l.ErrorMessage, tt.says) || string(l.OriginalMessage) != string(d.Body) ||
					l.Node != w.Runtime().Node() || l.Node == "" || !l.LastFailureAtUtc.Equal(gaveUp) || l.CorrelationID != of || l.OriginalQueue != signalQueue {
					t.Errorf("%+v", l)
				}
				mend()
				w.retry(t, dead[0])
				right.Run()
				w.checkSucceeded(t, "c1")
			})
		})
	}
}

// losesRow removes a row of an orchestration, and mend restores it.
func losesRow(id, row string) func(*testing.T, *world) func() {
	return func(t *testing.T, w *world) func() {
		t.Helper()
		key := tables.Key{Partition: tables.EscapeKey(id), Row: row}
		lost, err := w.Tables.Get(t.Context(), "orchestrations", key)
		if err == nil {
			err = w.Tables.Apply(t.Context(), "orchestrations", tables.Delete(key, ""))
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := w.Tables.Apply(t.Context(), "orchestrations", tables.Insert(lost)); err != nil {
				t.Error(err)
			}
		}
	}
}

// retry retries a dead letter, as an operator does.
func (w *world) retry(t *testing.T, l engine.DeadLetter) {
	t.Helper()
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: engine.NewDeadLetters(w.Tables, ""), Queues: w.Queues})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := retrier.Retry(t.Context(), l.Engine, l.RowKey, "somebody"); err != nil {
		t.Fatal(err)
	}
}

// A signal may be late, repeated, or for a purged orchestration. Then it is dropped: counted and acknowledged,
// without a dead letter or a change of the orchestration.
func TestSignalsThatAreDropped(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body       string
		purged     bool
		stale, dup int
	}{
		"a duplicate":                    {body: `{"signalId":"go","signalType":"ExternalSignal","payload":{"event":"go","data":1}}`, dup: 1},
		"a wait that is over":            {body: `{"signalId":"s","signalType":"ExternalSignal","waitingToken":"1-1","payload":{"event":"go","data":2}}`, stale: 1},
		"a wait that never was":          {body: `{"signalId":"s","signalType":"TimerDue","waitingToken":"1-9"}`, stale: 1},
		"another version expected":       {body: `{"signalId":"s","signalType":"ExternalSignal","expectedVersion":1,"payload":{"event":"go","data":2}}`, stale: 1},
		"a version that is not yet":      {body: `{"signalId":"s","signalType":"InternalContinue","expectedVersion":99}`, stale: 1},
		"a timer of one that was purged": {body: `{"signalId":"s","signalType":"TimerDue","waitingToken":"1-2"}`, purged: true, stale: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.waits = true
				p := w.Restart(nil)
				w.Send(testQueue, good)
				handle := func(queue string, take func(*engine.Pipeline, context.Context, engine.Delivery) error) {
					t.Helper()
					if err := take(p.Pipeline, t.Context(), w.Take(queue)); err != nil {
						t.Fatal(err)
					}
				}
				handle(testQueue, (*engine.Pipeline).Handle)
				w.event(t, "c1", 0)
				handle(signalQueue, (*engine.Pipeline).HandleSignal)
				if tt.purged {
					if err := w.Runtime().Terminate(t.Context(), "turntable-c1", ""); err != nil {
						t.Fatal(err)
					}
					handle(signalQueue, (*engine.Pipeline).HandleSignal)
					if err := w.Runtime().Purge(t.Context(), "turntable-c1"); err != nil {
						t.Fatal(err)
					}
				}
				rounds := w.rounds(t)
				body := strings.Replace(tt.body, "{", `{"workflowInstanceId":"turntable-c1","runtimeProvider":"roundhouse",`, 1)
				w.Send(signalQueue, body)
				handle(signalQueue, (*engine.Pipeline).HandleSignal) // acknowledged, as it gives no error
				if got := w.Runtime().Counts(); got.Stale != tt.stale || got.Duplicates != tt.dup {
					t.Errorf("counted %+v", got)
				}
				if now := w.rounds(t); now != rounds {
					t.Errorf("%d rounds, %d before", now, rounds)
				}
				if dead := w.DeadLetters(engine.SignalEngine); len(dead) != 0 {
					t.Errorf("dead letters %+v", dead)
				}
				if !tt.purged {
					p.Run()
					w.checkSucceeded(t, "c1")
				}
			})
		})
	}
}

// rounds counts the rows of the orchestration.
func (w *world) rounds(t *testing.T) (n int) {
	t.Helper()
	for _, err := range tables.All(t.Context(), w.Tables, "orchestrations", tables.Query{Partition: "turntable-c1"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
