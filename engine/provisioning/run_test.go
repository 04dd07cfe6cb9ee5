package provisioning_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/services/marketplace"
)

// down is the answer of an instance that did not start.
var down = orchestratortest.Step{Event: "bootstrap-complete", Data: provisioning.Bootstrap{Status: "Failed", Error: "no room"}}

// run is one notice and its expected results.
type run struct {
	name   string
	before func(t *testing.T, w *world)
	body   string
	steps  []orchestratortest.Step

	verdict   provisioning.Verdict
	state     provisioning.State // of the instance in the registry
	told      string             // the type of the command, "" for none
	operation string             // the marketplace's status of the operation at the end
	err       string             // part of the error
	permanent bool
}

func sells(status, action, operationStatus string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) { w.sells(status, action, operationStatus) }
}

// locked lets another job lock the instance, for so many checks.
func locked(looks int) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		w.registry.locked = func() *provisioning.LockedError {
			if looks--; looks < 0 {
				return nil
			}
			return &provisioning.LockedError{Holder: "update-1/job", Until: began.Add(2 * time.Hour)}
		}
	}
}

// both calls a and then b.
func both(a, b func(*testing.T, *world)) func(*testing.T, *world) {
	return func(t *testing.T, w *world) { a(t, w); b(t, w) }
}

func registered(state provisioning.State) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.has(t, subscription, state, began.Add(-time.Hour))
		w.has(t, application, state, began.Add(-time.Hour))
	}
}

func hosts(state string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) { w.market.PutApplication(application, state) }
}

func offers(plans ...string) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) { w.plans = plans }
}

func marketplaceRuns() []run {
	return []run{
		{name: "a new subscription comes up", before: sells("PendingFulfillmentStart", "Subscribe", "InProgress"), body: webhook("Subscribe"),
			steps: []orchestratortest.Step{up}, verdict: "act", state: "Active", told: "provisioning.bootstrap", operation: "Succeeded"},
		{name: "a new subscription does not come up", before: sells("PendingFulfillmentStart", "Subscribe", "InProgress"), body: webhook("Subscribe"),
			steps: []orchestratortest.Step{down}, state: "Failed", told: "provisioning.bootstrap", operation: "Failed", err: "no room", permanent: true},
		{name: "a new subscription stays silent", before: sells("Subscribed", "Subscribe", "InProgress"), body: webhook("Subscribe"),
			state: "Failed", told: "provisioning.bootstrap", operation: "Failed", err: "no word from the instance within 1h", permanent: true},
		{name: "a new subscription comes up after a person has mended it", body: webhook("Subscribe"), steps: []orchestratortest.Step{up},
			before:  both(sells("PendingFulfillmentStart", "Subscribe", "Failed"), registered("Failed")),
			verdict: "act", state: "Active", told: "provisioning.bootstrap", operation: "Failed"},
		{name: "another plan", before: both(sells("Subscribed", "ChangePlan", "InProgress"), registered("Active")), body: webhook("ChangePlan"),
			verdict: "act", state: "Active", told: "provisioning.changed", operation: "Succeeded"},
		{name: "another plan while the instance comes up", before: both(sells("Subscribed", "ChangePlan", "InProgress"), registered("Provisioning")),
			body: webhook("ChangePlan"), verdict: "act", state: "Provisioning", told: "provisioning.changed", operation: "Succeeded"},
		{name: "a plan that is not offered", before: both(offers("silver"), both(sells("Subscribed", "ChangePlan", "InProgress"), registered("Active"))),
			body: webhook("ChangePlan"), verdict: "decline", state: "Active", operation: "Failed"},
		{name: "a plan that is not offered, accepted already", before: both(offers("silver"), sells("Subscribed", "ChangePlan", "Succeeded")),
			body: webhook("ChangePlan"), operation: "Succeeded", err: "too late to decline", permanent: true},
		{name: "more seats", before: both(sells("Subscribed", "ChangeQuantity", "InProgress"), registered("Active")), body: webhook("ChangeQuantity"),
			verdict: "act", state: "Active", told: "provisioning.changed", operation: "Succeeded"},
		{name: "another year", before: both(sells("Subscribed", "Renew", "Succeeded"), registered("Active")), body: webhook("Renew"),
			verdict: "act", state: "Active", told: "provisioning.changed", operation: "Succeeded"},
		{name: "not paid", before: both(sells("Suspended", "Suspend", "Succeeded"), registered("Active")), body: webhook("Suspend"),
			verdict: "act", state: "Suspended", told: "provisioning.changed", operation: "Succeeded"},
		{name: "not paid while an update has the instance", before: both(locked(9), both(sells("Suspended", "Suspend", "Succeeded"), registered("Active"))),
			body: webhook("Suspend"), verdict: "act", state: "Suspended", told: "provisioning.changed", operation: "Succeeded"},
		{name: "paid again", before: both(sells("Suspended", "Reinstate", "InProgress"), registered("Suspended")), body: webhook("Reinstate"),
			verdict: "act", state: "Active", told: "provisioning.changed", operation: "Succeeded"},
		{name: "paid again, in the form without an operation", before: both(sells("Suspended", "Reinstate", "InProgress"), registered("Suspended")),
			body: `{"subscriptionId":"` + subscription + `","operationType":"Reinstate"}`, verdict: "act", state: "Active", told: "provisioning.changed", operation: "Succeeded"},
		{name: "the end", before: both(sells("Unsubscribed", "Unsubscribe", "Succeeded"), registered("Active")), body: webhook("Unsubscribe"),
			verdict: "act", state: "Removed", told: "provisioning.changed", operation: "Succeeded"},
		{name: "the end of what was never there", before: sells("Unsubscribed", "Unsubscribe", "Succeeded"), body: webhook("Unsubscribe"),
			verdict: "superseded", operation: "Succeeded"},
		{name: "a change after the end", before: both(sells("Unsubscribed", "ChangePlan", "InProgress"), registered("Removed")), body: webhook("ChangePlan"),
			verdict: "superseded", state: "Removed", operation: "InProgress"},
		{name: "an operation that failed", before: both(sells("Subscribed", "ChangePlan", "Conflict"), registered("Active")), body: webhook("ChangePlan"),
			verdict: "superseded", state: "Active", operation: "Conflict"},
		{name: "older than what is known", before: both(sells("Suspended", "Suspend", "Succeeded"), func(t *testing.T, w *world) {
			w.has(t, subscription, "Active", began.Add(time.Hour))
		}), body: webhook("Suspend"), verdict: "superseded", state: "Active", operation: "Succeeded"},
		{name: "forged: another action", before: both(sells("Subscribed", "Renew", "Succeeded"), registered("Active")), body: webhook("Unsubscribe"),
			state: "Active", operation: "Succeeded", err: "the marketplace says otherwise", permanent: true},
		{name: "forged: no such operation", before: registered("Active"), body: webhook("Unsubscribe"), state: "Active", err: "not found"},
		{name: "forged: the subscription lives on", before: both(sells("Subscribed", "Unsubscribe", "Succeeded"), registered("Active")), body: webhook("Unsubscribe"),
			state: "Active", operation: "Succeeded", err: "the subscription is Subscribed"},
		{name: "the marketplace is down", before: both(sells("Suspended", "Suspend", "Succeeded"), func(t *testing.T, w *world) {
			for range 12 {
				w.market.Inject(marketplacefake.Fault{Method: "GET", Status: 503})
			}
		}), body: webhook("Suspend"), operation: "Succeeded", err: "unavailable"},
	}
}

func managedRuns() []run {
	return []run{
		{name: "an application is made", before: hosts("Accepted"), body: notification("PUT", "Accepted"), verdict: "act", state: "Provisioning", told: "provisioning.changed"},
		{name: "an application is there", before: hosts("Succeeded"), body: notification("PUT", "Succeeded"), steps: []orchestratortest.Step{up},
			verdict: "act", state: "Active", told: "provisioning.bootstrap"},
		{name: "an application failed", before: hosts("Failed"), body: notification("PUT", "Failed"), verdict: "act", state: "Failed", told: "provisioning.changed"},
		{name: "an application was changed", before: both(hosts("Succeeded"), registered("Active")), body: notification("PATCH", "Succeeded"),
			verdict: "act", state: "Active", told: "provisioning.changed"},
		{name: "an application is deleted", before: both(hosts("Deleting"), registered("Active")), body: notification("DELETE", "Deleting"),
			verdict: "act", state: "Removing", told: "provisioning.changed"},
		{name: "an application is gone", before: registered("Removing"), body: notification("DELETE", "Deleted"), verdict: "act", state: "Removed", told: "provisioning.changed"},
		{name: "an application could not be deleted", before: both(hosts("Failed"), registered("Removing")), body: notification("DELETE", "Failed"),
			verdict: "act", state: "Failed", told: "provisioning.changed"},
		{name: "accepted, told late", before: both(hosts("Succeeded"), registered("Active")), body: notification("PUT", "Accepted"), verdict: "superseded", state: "Active"},
		{name: "succeeded, told early", before: hosts("Creating"), body: notification("PUT", "Succeeded"), err: "still is Creating"},
		{name: "deleted, and it lives", before: both(hosts("Succeeded"), registered("Active")), body: notification("DELETE", "Deleted"), state: "Active", err: "still is Succeeded"},
		{name: "of nobody", body: notification("PUT", "Succeeded"), verdict: "superseded"},
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range append(marketplaceRuns(), managedRuns()...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.before != nil {
				tt.before(t, w)
			}
			tt.check(t, w, orchestratortest.Run(t, w.scenario(t, tt.body, tt.steps...)))
		})
	}
}

func (tt run) check(t *testing.T, w *world, got orchestratortest.Result[provisioning.Result]) {
	t.Helper()
	id := subscription
	if strings.Contains(tt.body, "applicationId") {
		id = application
	}
	switch {
	case tt.err == "" && got.Err != nil:
		t.Errorf("failed: %v", got.Err)
	case tt.err != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), tt.err) || orchestrator.IsPermanent(got.Err) != tt.permanent):
		t.Errorf("error %v (permanent %t), want %q (%t)", got.Err, orchestrator.IsPermanent(got.Err), tt.err, tt.permanent)
	}
	if got.Output.Verdict != tt.verdict {
		t.Errorf("verdict %+v", got.Output)
	}
	if i := w.instance(t, id); i.State != tt.state {
		t.Errorf("the instance is %+v, want %s", i, tt.state)
	}
	var told []string
	for _, p := range got.Published {
		told = append(told, p.Type)
	}
	if strings.Join(told, " ") != tt.told {
		t.Errorf("told %v, want %q", told, tt.told)
	}
	if s := w.market.OperationStatus(operation); s != tt.operation {
		t.Errorf("the operation is %q, want %q", s, tt.operation)
	}
}

// The bootstrap command names the orchestration to answer, and the registry has the marketplace's data, not the
// notice's.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sells("PendingFulfillmentStart", "Subscribe", "InProgress")
	got := orchestratortest.Run(t, w.scenario(t, webhook("Subscribe"), orchestratortest.Step{At: 50 * time.Minute, Event: up.Event, Data: up.Data}))
	if got.Err != nil || got.Elapsed < 50*time.Minute || w.market.SubscriptionStatus(subscription) != "Subscribed" || len(got.Published) != 1 {
		t.Fatalf("%v, subscription %s, published %v", got, w.market.SubscriptionStatus(subscription), got.Published)
	}
	var command provisioning.Command
	if err := json.Unmarshal(got.Published[0].Payload, &command); err != nil {
		t.Fatal(err)
	}
	want := provisioning.Command{InstanceID: subscription, Action: "Subscribe", State: "Provisioning", PlanID: "silver", Quantity: "5",
		CorrelationID: command.CorrelationID, Orchestration: "test", Event: provisioning.EventBootstrapped}
	if diff := cmp.Diff(want, command); diff != "" || got.Published[0].TenantID != tenant {
		t.Errorf("command of %s (-want +got):\n%s", got.Published[0].TenantID, diff)
	}
	i := w.instance(t, subscription)
	if i.PlanID != "silver" || i.Quantity != "5" || i.TenantID != tenant || i.Source != provisioning.SourceMarketplace {
		t.Errorf("%+v", i)
	}
	var operations []string
	for _, c := range got.Calls {
		if c.Kind == orchestrator.ActivityCall {
			operations = append(operations, c.Name)
		}
	}
	if s := strings.Join(operations, " "); s != "webhook-received instance-registered bootstrap-complete provisioning/acknowledge" {
		t.Errorf("operations: %s", s)
	}
}

// An operation that the marketplace took as accepted after ten seconds without an answer is no failure.
func TestAcceptedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.has(t, subscription, "Active", began.Add(-time.Hour))
	w.sells("Subscribed", "ChangePlan", "InProgress")
	steps := w.steps(t)
	seen, err := steps.Receive(t.Context(), provisioning.Notice{Source: provisioning.SourceMarketplace, Action: "changeplan", SubscriptionID: subscription, OperationID: operation})
	if err != nil || !seen.Waits || seen.PlanID != "gold" {
		t.Fatalf("%+v, %v", seen, err)
	}
	w.market.Now = func() time.Time { return began.Add(marketplacefake.AutoAccept) }
	out, err := steps.Acknowledge(t.Context(), provisioning.AcknowledgeInput{SubscriptionID: subscription, OperationID: operation, Waits: true})
	if err != nil || out.Status != marketplace.OperationSucceeded {
		t.Errorf("%+v, %v", out, err)
	}
}

// A run whose instance a newer notice has taken over ends without a failure, and does not change the instance.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	steps := w.steps(t)
	first := provisioning.RegisterInput{InstanceID: subscription, Action: "Subscribe", At: began, JobID: "first"}
	last := provisioning.RegisterInput{InstanceID: subscription, Action: "Unsubscribe", At: began.Add(time.Minute), JobID: "last"}
	for _, in := range []provisioning.RegisterInput{first, last, first} {
		if _, err := steps.Register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	for _, status := range []string{"Succeeded", "Failed"} {
		out, err := steps.Complete(t.Context(), provisioning.CompleteInput{InstanceID: subscription, JobID: "first", Bootstrap: provisioning.Bootstrap{Status: status}})
		if err != nil || !out.Superseded {
			t.Errorf("%s: %+v, %v", status, out, err)
		}
	}
	if i := w.instance(t, subscription); i.State != provisioning.StateRemoved || i.JobID != "last" {
		t.Errorf("%+v", i)
	}
}

// A late repeated registration does not undo the bootstrap; after a failure it starts over.
func TestRegisterAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	steps := w.steps(t)
	in := provisioning.RegisterInput{InstanceID: subscription, Action: "Subscribe", At: began, JobID: "job"}
	for _, tt := range []struct {
		status      string
		after, then provisioning.State
	}{{"Failed", "Failed", "Provisioning"}, {"Succeeded", "Active", "Active"}} {
		if _, err := steps.Register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		_, _ = steps.Complete(t.Context(), provisioning.CompleteInput{InstanceID: subscription, JobID: "job", Bootstrap: provisioning.Bootstrap{Status: tt.status}})
		after := w.instance(t, subscription).State
		out, err := steps.Register(t.Context(), in)
		if err != nil || after != tt.after || out.State != tt.then {
			t.Errorf("%s: %s, then %+v, %v", tt.status, after, out, err)
		}
	}
}

// With any failure of any request to the marketplace, the run ends as without it.
func TestEveryRequestGoesWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range marketplaceRuns()[:9] {
		if tt.err != "" {
			continue
		}
		for _, fault := range []marketplacefake.Fault{{}, {Applied: true}, {Status: 503}, {Status: 503, Applied: true}, {Status: 429}} {
			requests := 1
			for at := 0; at < requests; at++ {
				w := newWorld(t)
				tt.before(t, w)
				fault.After = at
				w.market.Inject(fault)
				got := orchestratortest.Run(t, w.scenario(t, tt.body, tt.steps...))
				tt.check(t, w, got)
				if t.Failed() {
					t.Fatalf("%s: request %d, %+v", tt.name, at, fault)
				}
				requests = max(requests, len(w.market.Requests())-1)
			}
			if requests < 3 {
				t.Fatalf("%s makes %d requests", tt.name, requests)
			}
		}
	}
}

// The engine decides as when the golden history was written.
func TestGolden(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/golden.json", subscribing(t))
}

// With any crash in the runtime, the instance is registered, notified once and acknowledged.
func TestCrashesEverywhere(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, subscribing)
}

func subscribing(t *testing.T) orchestratortest.Scenario[engine.Message, provisioning.Result] {
	t.Helper()
	w := newWorld(t)
	w.sells("PendingFulfillmentStart", "Subscribe", "InProgress")
	s := w.scenario(t, webhook("Subscribe"), up)
	s.Check = func(t *testing.T, r orchestratortest.Result[provisioning.Result]) {
		run{body: webhook("Subscribe"), verdict: "act", state: "Active", told: "provisioning.bootstrap", operation: "Succeeded"}.check(t, w, r)
	}
	return s
}
