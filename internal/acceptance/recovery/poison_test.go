package recovery

import (
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// TestPoisonedSignals: inapplicable signals become dead letters with their content, error, place and time, and block no
// other signal. After the repair, a retry completes their orchestrations. An orchestration without its code stalls
// instead, with one dead letter regardless of the number of wake-ups, and later continues by itself.
func TestPoisonedSignals(t *testing.T) {
	d := newDrill(t)
	old := d.launch(t, true)
	for _, run := range []string{"undeployed", "damaged"} {
		d.order(t, legacyEngine, run, 0)
		testenv.Until(t, run+" waits", func() bool {
			s, err := d.client.Status(t.Context(), legacyEngine+"-"+run)
			return err == nil && s.WaitingKind == "Event"
		})
	}
	damaged := tables.Key{Partition: legacyEngine + "-damaged", Row: "r-00000001-00000001"}
	round, err := d.tables.Get(t.Context(), "orchestrations", damaged)
	if err == nil {
		err = d.tables.Apply(t.Context(), "orchestrations", tables.Delete(damaged, ""))
	}
	if err != nil {
		t.Fatal(err)
	}
	old.Kill()
	for range 2 {
		d.launch(t, false)
	}
	began := time.Now()
	testenv.Must(d.queues.Send(t.Context(), d.client.SignalQueue(), []byte("garbage"), 0))(t)
	for _, run := range []string{"undeployed", "damaged", "unknown"} {
		testenv.OK(t, d.client.Raise(t.Context(), legacyEngine+"-"+run, "go", run, "event of "+run))
	}
	d.orderAll(t, nap)
	d.raise(t, 0, 1, 2)
	d.timed(t, "poisoned signals were sent", began)

	want := map[string]engine.Reason{"garbage": engine.ReasonUndecodable, "undeployed": engine.ReasonStalled,
		"damaged": engine.ReasonInconsistent, "unknown": engine.ReasonNotFound}
	testenv.Until(t, "the dead letters", func() bool { return len(d.dead(t)) >= len(want) })
	letters := d.dead(t)
	if len(letters) != len(want) {
		t.Errorf("%d dead letters", len(letters))
	}
	t.Logf("%.1f s after they were sent, the poisoned signals are dead letters", time.Since(began).Seconds())
	for _, l := range letters {
		what := strings.TrimPrefix(l.CorrelationID, legacyEngine+"-")
		if string(l.OriginalMessage) == "garbage" {
			what = "garbage"
		}
		message := `"event of ` + what + `"`
		switch what {
		case "garbage":
			message = what
		case "undeployed":
			message = `"workflowInstanceId":"legacy-undeployed"` // it has the event: the message only wakes it
		}
		if l.DetectedReason != want[what] || l.LastFailureAtUtc.Before(began) || l.OriginalQueue != d.client.SignalQueue() ||
			l.Node != d.nodes[1].Name && l.Node != d.nodes[2].Name || !strings.Contains(string(l.OriginalMessage), message) {
			t.Errorf("the dead letter of %q: %+v", what, l)
		}
		delete(want, what)
	}
	if len(want) != 0 {
		t.Errorf("no dead letters of %v", want)
	}

	stalled := legacyEngine + "-undeployed"
	if s, err := d.client.Status(t.Context(), stalled); err != nil || s.Status != orchestrator.Stalled {
		t.Errorf("%s is %s, %v", stalled, s.Status, err)
	}

	// Repair the damage, and deploy the missing engine.
	testenv.OK(t, d.tables.Apply(t.Context(), "orchestrations", tables.Insert(round)))
	d.killAll()
	d.launch(t, true)
	retrier := testenv.Must(engine.NewRetrier(engine.RetrierConfig{DeadLetters: d.letters, Queues: d.queues}))(t)
	for _, l := range letters {
		if l.DetectedReason != engine.ReasonInconsistent {
			continue
		}
		if _, err := retrier.Retry(t.Context(), l.Engine, l.RowKey, "somebody"); err != nil {
			t.Error(err)
		}
	}
	d.succeeded(t, legacyEngine, "undeployed")
	d.succeeded(t, legacyEngine, "damaged")
	if now := d.dead(t); len(now) != len(letters) {
		t.Errorf("%d dead letters of signals, and %d before", len(now), len(letters))
	}
}

// dead reads all dead letters of signals.
func (d *drill) dead(t *testing.T) (all []engine.DeadLetter) {
	t.Helper()
	page, err := d.letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{engine.SignalEngine}, Limit: engine.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.DeadLetters {
		l := testenv.Must(d.letters.Get(t.Context(), item.Engine, item.RowKey))(t)
		all = append(all, l)
	}
	return all
}
