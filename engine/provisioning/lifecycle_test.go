package provisioning_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// lifeCycle returns the table of docs/engines/provisioning.md: the effect of an action on an instance in a state.
func lifeCycle(t *testing.T) (states []string, rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/engines/provisioning.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n| action | holds while |")
	if !ok {
		t.Fatal("the page has no table of the life cycle")
	}
	for n, line := range strings.Split(table, "\n") {
		if n > 0 && !strings.HasPrefix(line, "|") {
			break
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "| "), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		switch n {
		case 0:
			states = cells
		case 1:
		default:
			rows = append(rows, cells)
		}
	}
	return states, rows
}

// Each action has the documented effect on an instance in each state, at its first delivery and at the next one.
func TestLifeCycle(t *testing.T) {
	t.Parallel()
	states, rows := lifeCycle(t)
	if len(states) != 7 || len(rows) != 14 {
		t.Fatalf("%d states, %d actions", len(states), len(rows))
	}
	for _, row := range rows {
		for n, state := range states {
			t.Run(row[0]+" "+state, func(t *testing.T) {
				t.Parallel()
				cellOf(t, provisioning.Action(row[0]), state, row[n+2])
			})
		}
	}
}

func cellOf(t *testing.T, action provisioning.Action, state, effect string) {
	t.Helper()
	w := newWorld(t)
	before := provisioning.State(state)
	if state == "(none)" {
		before = ""
	} else {
		w.has(t, subscription, before, began)
	}
	want := provisioning.State(effect)
	switch effect {
	case "bootstrap":
		want = provisioning.StateProvisioning
	case "keep", "skip":
		want = before
	}
	steps := w.steps(t)
	for delivery := range 2 {
		out, err := steps.Register(t.Context(), provisioning.RegisterInput{InstanceID: subscription, Action: action, PlanID: "gold", At: began.Add(time.Minute), JobID: "job"})
		i := w.instance(t, subscription)
		if err != nil || out.State != want || i.State != want || out.Superseded != (effect == "skip") {
			t.Errorf("delivery %d: %+v, %v, instance %+v, want %q", delivery, out, err, i, want)
		}
		if plan := i.PlanID == "gold"; plan != (effect != "skip") {
			t.Errorf("delivery %d: plan %q", delivery, i.PlanID)
		}
		if (action == "Subscribe" || action == "PUT Succeeded") && before != "" && out.Kept != (effect == "keep") {
			t.Errorf("delivery %d: kept %t", delivery, out.Kept)
		}
	}
	late, err := steps.Register(t.Context(), provisioning.RegisterInput{InstanceID: subscription, Action: action, PlanID: "old", At: began.Add(-time.Minute), JobID: "late"})
	if i := w.instance(t, subscription); err != nil || !late.Superseded || i.State != want || i.PlanID == "old" {
		t.Errorf("an older notice: %+v, %v, instance %+v", late, err, i)
	}
}

// The result of an operation depends on its state and that of the subscription, as documented.
func TestOperationStates(t *testing.T) {
	t.Parallel()
	holds := map[string]string{}
	_, rows := lifeCycle(t)
	for _, row := range rows[:7] {
		holds[row[0]] = " " + strings.ReplaceAll(row[1], ",", "") + " "
	}
	for action, during := range holds {
		for _, status := range []string{"NotStarted", "InProgress", "Succeeded", "Failed", "Conflict"} {
			for _, sub := range []string{"NotStarted", "PendingFulfillmentStart", "Subscribed", "Suspended", "Unsubscribed"} {
				w := newWorld(t)
				w.sells(sub, action, status)
				got, err := w.steps(t).Receive(t.Context(), provisioning.Notice{Source: provisioning.SourceMarketplace, Action: provisioning.Action(action),
					SubscriptionID: subscription, OperationID: operation})
				want := provisioning.Act
				switch {
				case (status == "Failed" || status == "Conflict") && action != "Subscribe":
					want = provisioning.Superseded
				case status == "NotStarted":
					want = ""
				case sub == "Unsubscribed" && action != "Unsubscribe":
					want = provisioning.Superseded
				case !strings.Contains(during, " "+sub+" "):
					want = ""
				}
				if got.Verdict != want || (err == nil) != (want != "") || err == nil && got.Waits != (status == "InProgress") {
					t.Errorf("%s, operation %s, subscription %s: %+v, %v, want %q", action, status, sub, got, err, want)
				}
			}
		}
	}
}

// A running instance keeps running, gets no bootstrap command and leaves no failed run, after any repeated
// announcement.
func TestAnnouncedAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []run{
		{name: "a renewal", before: both(sells("Subscribed", "Subscribe", "Succeeded"), registered("Active")), body: webhook("Subscribe"), operation: "Succeeded"},
		{name: "a renewal that waits", before: both(sells("Subscribed", "Subscribe", "InProgress"), registered("Active")), body: webhook("Subscribe"), operation: "Succeeded"},
		{name: "a renewal that failed", before: both(sells("Subscribed", "Subscribe", "Failed"), registered("Active")), body: webhook("Subscribe"), operation: "Failed"},
		{name: "an activation that waits", before: both(sells("PendingFulfillmentStart", "Subscribe", "InProgress"), registered("Active")), body: webhook("Subscribe"), operation: "Succeeded"},
		{name: "a deployment begins", before: both(hosts("Accepted"), registered("Active")), body: notification("PUT", "Accepted")},
		{name: "a deployment ends", before: both(hosts("Succeeded"), registered("Active")), body: notification("PUT", "Succeeded")},
		{name: "a deployment fails", before: both(hosts("Failed"), registered("Active")), body: notification("PUT", "Failed")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.verdict, tt.state, tt.told = "act", "Active", "provisioning.changed"
			w := newWorld(t)
			tt.before(t, w)
			tt.check(t, w, orchestratortest.Run(t, w.scenario(t, tt.body)))
		})
	}
}

// An instance that is active without a notice gets its bootstrap command once, and stays active if it does not
// answer.
func TestAssumedInstance(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]provisioning.Instance{
		"changed before its Subscribe": {ID: subscription, State: provisioning.StateActive},
		"registered by an operator":    {ID: subscription},
	} {
		for _, answer := range []string{"Succeeded", "Failed"} {
			t.Run(name+" "+answer, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				if err := w.registry.Create(t.Context(), before); err != nil {
					t.Fatal(err)
				}
				steps := w.steps(t)
				in := provisioning.RegisterInput{InstanceID: subscription, Action: "Subscribe", At: began, JobID: "job"}
				registered, err := steps.Register(t.Context(), in)
				if err != nil || registered.Kept || registered.State != provisioning.StateActive {
					t.Errorf("%+v, %v", registered, err)
				}
				out, err := steps.Complete(t.Context(), provisioning.CompleteInput{InstanceID: subscription, JobID: "job", Bootstrap: provisioning.Bootstrap{Status: answer}})
				if (err == nil) != (answer == "Succeeded") || out.State != provisioning.StateActive || w.instance(t, subscription).State != provisioning.StateActive {
					t.Errorf("%+v, %v", out, err)
				}
				in.JobID = "next"
				if again, err := steps.Register(t.Context(), in); err != nil || !again.Kept {
					t.Errorf("announced again: %+v, %v", again, err)
				}
			})
		}
	}
}

// If two runs wait for the bootstrap, the answer to the first one counts, and the silence after the second one does not.
func TestTwoBootstraps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	steps := w.steps(t)
	for _, job := range []string{"first", "second"} {
		if _, err := steps.Register(t.Context(), provisioning.RegisterInput{InstanceID: subscription, Action: "Subscribe", At: began, JobID: job}); err != nil {
			t.Fatal(err)
		}
	}
	for _, answer := range []struct{ job, status string }{{"first", "Succeeded"}, {"second", "Failed"}} {
		out, err := steps.Complete(t.Context(), provisioning.CompleteInput{InstanceID: subscription, JobID: answer.job, Bootstrap: provisioning.Bootstrap{Status: answer.status}})
		if i := w.instance(t, subscription); err != nil || i.State != provisioning.StateActive {
			t.Errorf("%s: %+v, %v, instance %+v", answer.job, out, err, i)
		}
	}
}

// A notice with an operation id that the marketplace does not know is not lost.
func TestOperationWithoutID(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"seller": "seller:" + subscription + ":1", "a path": "x/../y", "none": ""} {
		for _, tt := range []struct {
			action, sub, op string
			state           provisioning.State
		}{
			{"Unsubscribe", "Unsubscribed", "Succeeded", "Removed"}, {"Suspend", "Suspended", "Succeeded", "Suspended"},
			{"ChangePlan", "Subscribed", "InProgress", "Active"},
		} {
			t.Run(tt.action+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.sells(tt.sub, tt.action, tt.op)
				w.has(t, subscription, "Active", began.Add(-time.Hour))
				body := fmt.Sprintf(`{"id":%q,"subscriptionId":%q,"action":%q}`, id, subscription, tt.action)
				got := orchestratortest.Run(t, w.scenario(t, body))
				if i := w.instance(t, subscription); got.Err != nil || i.State != tt.state {
					t.Errorf("%s, %v", i.State, got.Err)
				}
			})
		}
	}
	w := newWorld(t)
	w.sells("Subscribed", "Renew", "Succeeded")
	w.has(t, subscription, "Active", began.Add(-time.Hour))
	got := orchestratortest.Run(t, w.scenario(t, `{"id":"seller:1","subscriptionId":"`+subscription+`","action":"Unsubscribe"}`))
	if i := w.instance(t, subscription); got.Err == nil || i.State != provisioning.StateActive {
		t.Errorf("forged: %s, %v", i.State, got.Err)
	}
}

// story is a subscription or an application in the marketplace, and its notices.
type story struct {
	w         *world
	steps     *provisioning.Steps
	now       time.Time
	sub       string
	notices   []provisioning.Notice
	operation int
	stopped   bool // the marketplace has reported that the instance does not run
}

// happens changes the subscription, and sends its notice.
func (s *story) happens(action, status, sub string) {
	s.now, s.operation, s.sub = s.now.Add(time.Minute), s.operation+1, sub
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", s.operation)
	s.w.market.PutSubscription(marketplacefake.Subscription{ID: subscription, PlanID: "silver", Status: sub, TenantID: tenant})
	s.w.market.PutOperation(marketplacefake.Operation{ID: id, SubscriptionID: subscription, Action: action, PlanID: "gold", Status: status})
	s.notices = append(s.notices, provisioning.Notice{Source: provisioning.SourceMarketplace, Action: provisioning.Action(action), SubscriptionID: subscription, OperationID: id, At: s.now})
}

// deploys changes the application, and sends its notice.
func (s *story) deploys(action, state string) {
	s.now = s.now.Add(time.Minute)
	s.w.market.PutApplication(application, state)
	s.notices = append(s.notices, provisioning.Notice{Source: provisioning.SourceManagedApp, Action: provisioning.Action(action), ApplicationID: application, At: s.now})
}

// In random sequences of notices, repetitions, late and reordered deliveries and late answers of the instance, a
// running instance stops only after a notice of the marketplace that stops it.
func TestRunningInstanceIsNotTakenDown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		s := &story{w: w, steps: w.steps(t), now: began, sub: "Subscribed"}
		id := rapid.SampledFrom([]string{subscription, application}).Draw(r, "instance")
		w.has(t, id, provisioning.StateActive, began)
		var jobs []string
		r.Repeat(map[string]func(*rapid.T){
			"": func(r *rapid.T) {
				if i := w.instance(t, id); i.State != provisioning.StateActive && !s.stopped {
					r.Fatalf("the instance runs, and is recorded as %s", i.State)
				}
			},
			"event": func(r *rapid.T) {
				if id == application {
					s.applicationEvent(r)
				} else {
					s.subscriptionEvent(r)
				}
			},
			"deliver": func(r *rapid.T) {
				if len(s.notices) == 0 {
					r.Skip()
				}
				n := rapid.IntRange(0, len(s.notices)-1).Draw(r, "notice")
				seen, err := s.steps.Receive(t.Context(), s.notices[n])
				if err != nil || seen.Verdict != provisioning.Act {
					return
				}
				job := fmt.Sprintf("job-%d", n)
				if _, err := s.steps.Register(t.Context(), provisioning.RegisterInput{InstanceID: seen.InstanceID, TenantID: seen.TenantID, Source: seen.Source,
					Action: seen.Action, PlanID: seen.PlanID, At: seen.At, JobID: job}); err != nil {
					r.Fatal(err)
				}
				jobs = append(jobs, job)
			},
			"answer": func(r *rapid.T) {
				if len(jobs) == 0 {
					r.Skip()
				}
				status := rapid.SampledFrom([]string{"Succeeded", "Failed"}).Draw(r, "status")
				_, _ = s.steps.Complete(t.Context(), provisioning.CompleteInput{InstanceID: id, JobID: rapid.SampledFrom(jobs).Draw(r, "job"),
					Bootstrap: provisioning.Bootstrap{Status: status}})
			},
		})
	})
}

func (s *story) subscriptionEvent(r *rapid.T) {
	status := rapid.SampledFrom([]string{"InProgress", "Succeeded", "Failed", "Conflict"}).Draw(r, "status")
	switch action := rapid.SampledFrom([]string{"Subscribe", "ChangePlan", "ChangeQuantity", "Renew", "Suspend", "Reinstate", "Unsubscribe"}).Draw(r, "action"); {
	case s.sub == "Unsubscribed":
	case action == "Suspend" && s.sub == "Subscribed":
		s.stopped = true
		s.happens(action, "Succeeded", "Suspended")
	case action == "Unsubscribe":
		s.stopped = true
		s.happens(action, "Succeeded", "Unsubscribed")
	case action == "Reinstate" && s.sub == "Suspended":
		s.happens(action, "Succeeded", "Subscribed")
	case action != "Suspend" && action != "Reinstate" && s.sub == "Subscribed":
		s.happens(action, status, s.sub)
	}
}

func (s *story) applicationEvent(r *rapid.T) {
	switch action := rapid.SampledFrom([]string{"PUT Accepted", "PUT Succeeded", "PUT Failed", "PATCH Succeeded", "DELETE Deleting"}).Draw(r, "action"); action {
	case "DELETE Deleting":
		s.stopped = true
		s.deploys(action, "Deleting")
	default:
		_, state, _ := strings.Cut(action, " ")
		s.deploys(action, state)
	}
}
