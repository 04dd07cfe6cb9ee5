package provisioning_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/provisioning"
)

func newPlatform(t *testing.T, d engine.Definition) *enginetest.World {
	t.Helper()
	return enginetest.New(t, enginetest.Config{Engines: func(enginetest.Stores) []engine.Definition { return []engine.Definition{d} }})
}

// A webhook body from the queue becomes rows of the history, one for each operation; its repetition adds none.
func TestQueueToHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.sells("PendingFulfillmentStart", "Subscribe", "InProgress")
		p := newPlatform(t, provisioning.Definition(w.steps(t)))
		m, _, err := provisioning.Adapt([]byte(webhook("Subscribe")))
		if err != nil {
			t.Fatal(err)
		}
		p.Send(provisioning.Queue, webhook("Subscribe"))
		p.Send(p.Runtime().SignalQueue(), `{"signalId":"s1","workflowInstanceId":"provisioning-`+m.CorrelationID+`","runtimeProvider":"roundhouse",
			"signalType":"ExternalSignal","payload":{"event":"bootstrap-complete","data":{"status":"Succeeded"}}}`)
		p.Run()
		p.Send(provisioning.Queue, webhook("Subscribe"))
		p.Run()
		var rows []string
		for _, e := range p.History(provisioning.Engine, m.CorrelationID) {
			rows = append(rows, e.Operation+" "+string(e.Status)+" "+e.InstanceID)
		}
		want := "webhook-received Succeeded " + subscription + "\ninstance-registered Succeeded " + subscription + "\nbootstrap-complete Succeeded " + subscription
		if got := strings.Join(rows, "\n"); got != want {
			t.Errorf("history:\n%s", got)
		}
		if i := w.instance(t, subscription); i.State != provisioning.StateActive || w.market.OperationStatus(operation) != "Succeeded" {
			t.Errorf("%+v, operation %s", i, w.market.OperationStatus(operation))
		}
	})
}

// A notice that cannot be carried out is dead-lettered, immediately or after its attempts, with its original body.
func TestQueueToDeadLetter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body, reason string
		attempts     int
	}{
		"unknown action": {strings.Replace(webhook("Renew"), "Renew", "Transfer", 1), "is not known", 1},
		"forged":         {webhook("Unsubscribe"), "the marketplace says otherwise", 1},
		"never there":    {strings.Replace(webhook("Renew"), operation, subscription, 2), "not found", 5},
		"no notice":      {`{"correlationId":"c","input":{"hello":"world"}}`, "not a notice", 1},
		"a stray blob":   {`{"correlationId":"c","blob":"provisioning/other/00"}`, "the input of the message cannot be had", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.sells("Subscribed", "Renew", "Succeeded")
				p := newPlatform(t, provisioning.Definition(w.steps(t)))
				p.Send(provisioning.Queue, tt.body)
				p.Run()
				dead := p.DeadLetters(provisioning.Engine)
				if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, tt.reason) || dead[0].DequeueCount != tt.attempts || string(dead[0].OriginalMessage) != tt.body {
					t.Errorf("%+v", dead)
				}
			})
		})
	}
}
