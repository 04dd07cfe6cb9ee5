package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/orchestrator"
)

// deployed returns a process with another version of the engine's orchestrator; nil leaves it out.
func (w *world) deployed(other orchestrator.AnyOrchestrator) *enginetest.Process {
	w.Config.Engines = func(enginetest.Stores) []engine.Definition { return nil }
	if other != nil {
		d := w.definition()
		d.Orchestrator = other
		w.Config.Engines = func(enginetest.Stores) []engine.Definition { return []engine.Definition{d} }
	}
	p := w.Restart(nil)
	w.Config.Engines = func(enginetest.Stores) []engine.Definition { return []engine.Definition{w.definition()} }
	return p
}

// changed returns an orchestrator with other decisions than the engine's.
func changed() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("turntable", func(ctx *orchestrator.Context, _ engine.Message) (string, error) {
		return orchestrator.Event[string](ctx, "another").Await()
	})
}

// A stalled run is one dead letter, however often it is tried, and is not redelivered. When the code is fixed, the
// run continues with the signals received meanwhile; a retry of the dead letter is harmless before, and wakes the run
// then.
func TestARunThatIsStalled(t *testing.T) {
	t.Parallel()
	signal := func(t *testing.T, w *world, p *enginetest.Process) {
		t.Helper()
		if err := p.HandleSignal(t.Context(), w.Take(signalQueue)); err != nil {
			t.Fatal(err)
		}
	}
	message := func(t *testing.T, w *world, p *enginetest.Process) {
		t.Helper()
		w.Send(testQueue, good)
		if err := p.Handle(t.Context(), w.Take(testQueue)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		code    orchestrator.AnyOrchestrator
		wake    func(*testing.T, *world, *enginetest.Process)
		of      string // engine of the dead letters
		says    string
		message string
	}{
		"found by a signal":               {code: changed(), wake: signal, of: "turntable", says: "is stalled", message: good},
		"found by its message":            {code: changed(), wake: message, of: "turntable", says: "is stalled", message: good},
		"its orchestrator is not there":   {wake: signal, of: engine.SignalEngine, says: "unknown orchestrator", message: `"workflowInstanceId":"turntable-c1"`},
		"a poison message has it as well": {code: changed(), wake: func(t *testing.T, w *world, p *enginetest.Process) { signal(t, w, p); poison(t, p) }, of: "turntable", says: "is stalled", message: good},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.waits = true
				w.Send(testQueue, good)
				if err := w.Restart(nil).Handle(t.Context(), w.Take(testQueue)); err != nil {
					t.Fatal(err)
				}
				w.event(t, "c1", 0)
				broken := w.deployed(tt.code)
				tt.wake(t, w, broken)
				w.wake(t)
				signals(t, w, broken)
				letter := onePending(t, w, tt.of)
				if letter.DetectedReason != engine.ReasonStalled || letter.CorrelationID != "c1" || !strings.Contains(letter.ErrorMessage, tt.says) ||
					!strings.Contains(string(letter.OriginalMessage), tt.message) || letter.Node != w.Runtime().Node() || letter.TenantID != "Contoso" {
					t.Errorf("%+v", letter)
				}
				w.retry(t, letter)
				time.Sleep(time.Second)
				w.hostOnce(t, broken)
				again := onePending(t, w, tt.of)
				if again.ParentRowKey != letter.RowKey {
					t.Errorf("the parent is %q, not %q", again.ParentRowKey, letter.RowKey)
				}
				if out, err := w.Runtime().Get(t.Context(), "turntable-c1"); err != nil || out.Status != orchestrator.Stalled {
					t.Errorf("it is %s, %v", out.Status, err)
				}
				w.retry(t, again)
				w.Restart(nil).Run()
				runs := 0
				for _, e := range w.History("turntable", "c1") {
					if e.RunStatus == engine.StatusSucceeded {
						runs++
					}
				}
				if runs != 1 || w.turns.Load() != 1 {
					t.Errorf("%d runs succeeded, %d turns", runs, w.turns.Load())
				}
			})
		})
	}
}

// A run that was stalled, and fails when its code is fixed, is a dead letter for that, too.
func TestARunThatFailsAfterItWasStalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.waits = true
		w.turn = func(context.Context) error { return errors.New("jammed") }
		w.Send(testQueue, good)
		if err := w.Restart(nil).Handle(t.Context(), w.Take(testQueue)); err != nil {
			t.Fatal(err)
		}
		w.event(t, "c1", 0)
		broken := w.deployed(changed())
		if err := broken.HandleSignal(t.Context(), w.Take(signalQueue)); err != nil {
			t.Fatal(err)
		}
		onePending(t, w, "turntable")
		w.wake(t)
		w.Restart(nil).Run()
		var reasons []string
		for _, l := range w.DeadLetters("turntable") {
			reasons = append(reasons, string(l.DetectedReason))
		}
		if out, err := w.Runtime().Get(t.Context(), "turntable-c1"); err != nil || out.Status != orchestrator.Failed || len(reasons) != 2 {
			t.Errorf("it is %s, %v; dead letters: %v", out.Status, err, reasons)
		}
	})
}

// wake sends a signal without data.
func (w *world) wake(t *testing.T) {
	t.Helper()
	body := `{"signalId":"wake","workflowInstanceId":"turntable-c1","runtimeProvider":"roundhouse","signalType":"InternalContinue"}`
	w.Send(signalQueue, body)
}

// hostOnce delivers the visible messages once.
func (w *world) hostOnce(t *testing.T, p *enginetest.Process) {
	t.Helper()
	w.DeliverTo(testQueue, func(ctx context.Context, d engine.Delivery) error { return p.Handle(ctx, d) })
	signals(t, w, p)
}

// signals delivers the visible signals.
func signals(t *testing.T, w *world, p *enginetest.Process) {
	t.Helper()
	for w.DeliverTo(signalQueue, func(ctx context.Context, d engine.Delivery) error {
		err := p.HandleSignal(ctx, d)
		if err != nil {
			t.Error(err)
		}
		return err
	}) {
	}
}

func poison(t *testing.T, p *enginetest.Process) {
	t.Helper()
	d := engine.Delivery{Queue: testQueue + engine.PoisonSuffix, ID: "poison-1", Body: []byte(good), DequeueCount: 1}
	if err := p.HandlePoison(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// onePending returns the one pending dead letter of an engine.
func onePending(t *testing.T, w *world, of string) engine.DeadLetter {
	t.Helper()
	var pending []engine.DeadLetter
	for _, l := range w.DeadLetters(of) {
		if l.Status == engine.StatusPending {
			pending = append(pending, l)
		}
	}
	if len(pending) != 1 {
		t.Fatalf("pending dead letters of %s: %+v", of, pending)
	}
	return pending[0]
}
