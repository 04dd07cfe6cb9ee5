package orchestratortest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

// This file is the manual of the package. First, an orchestration that needs a test: an order is charged, waits for
// approval, and is shipped by a sub-orchestration that waits for the parcel to be picked up.

type Order struct {
	ID    string
	Cents int
}

var errDeclined = errors.New("the card was declined")

// store holds the orchestrators and their activities.
type store struct {
	charge *orchestrator.Activity[Order, string]
	refund *orchestrator.Activity[string, bool]
	label  *orchestrator.Activity[string, string]
	order  *orchestrator.Orchestrator[Order, string]
	ship   *orchestrator.Orchestrator[string, string]
}

func newStore() *store {
	s := &store{}
	unreachable := errors.New("tests have no bank")
	s.charge = orchestrator.NewActivity("charge", func(context.Context, Order) (string, error) { return "", unreachable },
		orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 3, FirstInterval: time.Minute}))
	s.refund = orchestrator.NewActivity("refund", func(context.Context, string) (bool, error) { return false, unreachable })
	s.label = orchestrator.NewActivity("label", func(_ context.Context, order string) (string, error) { return "label of " + order, nil })
	s.order, s.ship = orchestrator.NewOrchestrator("order", s.runOrder), orchestrator.NewOrchestrator("ship", s.runShip)
	return s
}

func (s *store) runOrder(ctx *orchestrator.Context, o Order) (string, error) {
	receipt, err := s.charge.Call(ctx, o).Await()
	if err != nil {
		return "", err
	}
	approved := orchestrator.Event[bool](ctx, "approved")
	if orchestrator.Any(ctx, approved, orchestrator.Timer(ctx, 72*time.Hour)) == 1 {
		_, err := s.refund.Call(ctx, receipt).Await()
		return "expired", err
	}
	if _, err := approved.Await(); err != nil {
		return "", err
	}
	return s.ship.Call(ctx, o.ID).Await()
}

func (s *store) runShip(ctx *orchestrator.Context, order string) (string, error) {
	label, err := s.label.Call(ctx, order).Await()
	if err != nil {
		return "", err
	}
	if err := ctx.Sleep(24 * time.Hour); err != nil { // parcels leave on the next day
		return "", err
	}
	carrier, err := orchestrator.Event[string](ctx, "picked up").Await()
	return label + " with " + carrier, err
}

// scenario returns an order that succeeds; the tests below change parts of it.
func (s *store) scenario() orchestratortest.Scenario[Order, string] {
	return orchestratortest.Scenario[Order, string]{
		Orchestrator:  s.order,
		Input:         Order{ID: "o-1", Cents: 4200},
		Orchestrators: []orchestrator.AnyOrchestrator{s.ship},
		Activities: []orchestrator.AnyActivity{
			s.charge, s.refund, s.label, // the real ones; those of the bank are faked
			orchestratortest.Fake(s.charge, func(ctx context.Context, o Order) (string, error) {
				if orchestrator.Info(ctx).Attempt == 1 {
					return "", errors.New("the bank is busy")
				}
				return "receipt of " + o.ID, nil
			}),
			orchestratortest.Fake(s.refund, func(context.Context, string) (bool, error) { return true, nil }),
		},
		Steps: []orchestratortest.Step{
			{Event: "approved", Data: true}, // as soon as the order waits for it
			{At: 48 * time.Hour, Event: "picked up", Data: "a van", To: "ship"},
		},
	}
}

// A run returns the typed result, its duration in virtual time, and its calls.
func TestAnOrderIsShipped(t *testing.T) {
	t.Parallel()
	s := newStore()
	got := orchestratortest.Run(t, s.scenario())
	if got.Err != nil || got.Status != orchestrator.Completed || got.Output != "label of o-1 with a van" || got.Elapsed != 48*time.Hour {
		t.Error(got)
	}
	if charged := got.Called("charge"); len(charged) != 1 || charged[0].Attempts != 2 || string(charged[0].Input) != `{"ID":"o-1","Cents":4200}` {
		t.Errorf("charged %+v", charged)
	}
	var names []string
	for _, c := range got.Calls {
		names = append(names, c.Name)
	}
	if want := []string{"charge", "approved", "timer", "ship", "label", "timer", "picked up"}; !slices.Equal(names, want) {
		t.Errorf("called %q, want %q", names, want)
	}
}

// Without the step that approves, the timeout fires: three days take no time.
func TestAnOrderExpires(t *testing.T) {
	t.Parallel()
	sc := newStore().scenario()
	sc.Steps = nil
	got := orchestratortest.Run(t, sc)
	if got.Output != "expired" || got.Elapsed != 72*time.Hour+time.Minute || len(got.Called("refund")) != 1 || len(got.Called("label")) != 0 {
		t.Error(got)
	}
}

// An orchestration that fails does not fail the test: the test reads its error.
func TestADeclinedCardIsNotRetried(t *testing.T) {
	t.Parallel()
	s := newStore()
	got := orchestratortest.Run(t, orchestratortest.Scenario[Order, string]{
		Orchestrator: s.order,
		Activities: []orchestrator.AnyActivity{
			orchestratortest.Fake(s.charge, func(context.Context, Order) (string, error) { return "", orchestrator.Permanent(errDeclined) }),
		},
	})
	if got.Status != orchestrator.Failed || !orchestrator.IsPermanent(got.Err) || got.Called("charge")[0].Attempts != 1 {
		t.Error(got)
	}
}

// An operator suspends the order when it waits for the first time, and terminates it later.
func TestAnOrderIsTerminated(t *testing.T) {
	t.Parallel()
	sc := newStore().scenario()
	sc.Steps = []orchestratortest.Step{
		{Command: "suspend", Reason: "stocktaking"},
		{At: time.Hour, Event: "approved", Data: true},
		{At: 2 * time.Hour, Command: "terminate", Reason: "sold out"},
	}
	got := orchestratortest.Run(t, sc)
	if got.Status != orchestrator.Terminated || got.Err == nil || got.Elapsed != 2*time.Hour || len(got.Called("label")) != 0 {
		t.Error(got)
	}
}

// The process dies at any storage call: the order ends the same, and the customer is charged once, because the bank
// knows the idempotency key. Each run has its own scenario, and so its own bank.
func TestAnOrderSurvivesCrashes(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(*testing.T) orchestratortest.Scenario[Order, string] {
		s := newStore()
		bank := map[string]int{}
		sc := s.scenario()
		sc.Activities = append(sc.Activities[1:3:3], orchestratortest.Fake(s.charge, func(ctx context.Context, o Order) (string, error) {
			bank[orchestrator.Info(ctx).IdempotencyKey()] = o.Cents
			return "receipt of " + o.ID, nil
		}))
		sc.Check = func(t *testing.T, _ orchestratortest.Result[string]) {
			if len(bank) != 1 || bank["test/1/1"] != 4200 {
				t.Errorf("charged %v", bank)
			}
		}
		return sc
	})
}

// The bank is down for two deliveries of the start message; the third succeeds, and charges once.
func TestAnOrderIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newStore()
	sc := s.scenario()
	sc.Attempts = 3
	sc.Activities = append(sc.Activities[1:3:3], orchestratortest.Fake(s.charge, func(ctx context.Context, o Order) (string, error) {
		if orchestrator.Info(ctx).Execution < 3 {
			return "", errors.New("the bank is down")
		}
		return "receipt of " + o.ID, nil
	}))
	got := orchestratortest.Run(t, sc)
	if ran := got.Ran("charge"); got.Err != nil || len(ran) != 7 || ran[6].Err != nil {
		t.Errorf("%v\n%v", got, got.Ledger)
	}
}

// Any call fails for good, before or after its work: after a second attempt the order is shipped, and the customer is
// charged once, because the bank knows the order.
func TestAnOrderHasASecondChance(t *testing.T) {
	t.Parallel()
	orchestratortest.FailEverywhere(t, func(*testing.T) orchestratortest.Scenario[Order, string] {
		s := newStore()
		bank := map[string]int{}
		sc := s.scenario()
		sc.Activities = append(sc.Activities[1:3:3], orchestratortest.Fake(s.charge, func(_ context.Context, o Order) (string, error) {
			bank[o.ID] = o.Cents
			return "receipt of " + o.ID, nil
		}))
		sc.Check = func(t *testing.T, r orchestratortest.Result[string]) {
			if r.Output != "label of o-1 with a van" || len(bank) != 1 {
				t.Errorf("%v\ncharged %v", r, bank)
			}
		}
		return sc
	})
}

// The order decides today as when its history was written, so the code may be deployed under running orders.
func TestOldOrdersGoOn(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/order.json", newStore().scenario())
}
