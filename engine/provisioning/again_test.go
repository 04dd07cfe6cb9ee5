package provisioning_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// A run that is canceled while it waits ignores the silence of the instance, and answers the marketplace, which would
// take no answer for consent.
func TestACanceledRunAnswersTheMarketplace(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(t *testing.T) orchestratortest.Scenario[engine.Message, provisioning.Result] {
		t.Helper()
		w := newWorld(t)
		w.sells("PendingFulfillmentStart", "Subscribe", "InProgress")
		s := w.scenario(t, webhook("Subscribe"), orchestratortest.Step{At: time.Minute, Command: "cancel"})
		s.Check = func(t *testing.T, r orchestratortest.Result[provisioning.Result]) {
			t.Helper()
			i := w.instance(t, subscription)
			if got := w.market.OperationStatus(operation); r.Status != orchestrator.Canceled || got != "Failed" || i.State != provisioning.StateProvisioning {
				t.Errorf("%v: the operation is %s, the instance %s", r, got, i.State)
			}
		}
		return s
	})
}

// An answer of the instance while the marketplace is unavailable is kept for the next attempt, which finishes the
// work and sends the instance nothing again.
func TestTheNextAttemptHasTheWordOfTheInstance(t *testing.T) {
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
		time.AfterFunc(10*time.Minute, func() {
			for range 12 { // more than one attempt makes
				w.market.Inject(marketplacefake.Fault{Status: 503})
			}
			p.Send(p.Runtime().SignalQueue(), `{"signalId":"s1","workflowInstanceId":"provisioning-`+m.CorrelationID+`","runtimeProvider":"roundhouse",
				"signalType":"ExternalSignal","payload":{"event":"bootstrap-complete","data":{"status":"Succeeded"}}}`)
		})
		p.Run()
		out, err := p.Runtime().Get(t.Context(), "provisioning-"+m.CorrelationID)
		if err != nil || out.Status != orchestrator.Completed || out.Execution < 2 || !strings.Contains(string(out.Output), `"act"`) {
			t.Errorf("execution %d is %s: %s, %v", out.Execution, out.Status, out.Output, err)
		}
		if i := w.instance(t, subscription); i.State != provisioning.StateActive || w.market.OperationStatus(operation) != "Succeeded" {
			t.Errorf("%+v, the operation is %s", i, w.market.OperationStatus(operation))
		}
	})
}
