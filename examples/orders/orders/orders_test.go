package orders_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/examples/orders/orders"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/tables"
)

// These tests run the orchestrator alone, in virtual time: a week takes no real time. The tests of the whole app are in
// main_test.go.

const (
	// small needs no approval, large does, and the third line of soldOut is sold out.
	small   = `{"order": {"id": "o-1", "lines": [{"article": "chair", "pieces": 2, "cents": 4900}, {"article": "table", "pieces": 1, "cents": 19900}]}}`
	large   = `{"order": {"id": "o-1", "lines": [{"article": "sofa", "pieces": 1, "cents": 250000}]}}`
	soldOut = `{"order": {"id": "o-1", "lines": [{"article": "chair", "pieces": 2, "cents": 1}, {"article": "lamp", "pieces": 1, "cents": 1}, {"article": "table", "pieces": 101, "cents": 1}]}}`
)

// terms returns those of the tests.
func terms() orders.Terms {
	return orders.Terms{Limit: 100_000, Approvers: []string{"sales"}, ApprovalFor: 24 * time.Hour, PaymentFor: 7 * 24 * time.Hour, Grace: 30 * time.Minute}
}

// scenario is an order with the input, over its own shop. Its Check checks the conditions that hold for every end of an
// order.
func scenario(t *testing.T, input string, steps ...orchestratortest.Step) orchestratortest.Scenario[engine.Message, orders.Result] {
	t.Helper()
	store := tables.NewMemory()
	for _, table := range []string{orders.BookedTable, orders.ShippedTable} {
		if err := store.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	d := orders.Definition(orders.NewShop(store), terms())
	return orchestratortest.Scenario[engine.Message, orders.Result]{
		Orchestrator:  d.Orchestrator,
		Orchestrators: d.Children,
		Input:         engine.Message{TenantID: "contoso", Input: json.RawMessage(input)},
		Activities:    slices.Concat(d.Operations, d.Activities),
		Steps:         steps,
		Check: func(t *testing.T, r orchestratortest.Result[orders.Result]) {
			t.Helper()
			booked, shipped := rows(t, store, orders.BookedTable, "o-1"), rows(t, store, orders.ShippedTable, "2000-01-01")
			if goods := r.Output.State == orders.Shipped; goods != (shipped == 1) || r.Err == nil && goods != (booked > 0) {
				t.Errorf("%v, but %d rows are booked and %d orders shipped", r, booked, shipped)
			}
		},
	}
}

// rows counts the rows of a partition.
func rows(t *testing.T, store tables.Store, table, partition string) int {
	t.Helper()
	n := 0
	for _, err := range tables.All(t.Context(), store, table, tables.Query{Partition: partition}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// paid returns the event of the bank.
func paid(at time.Duration) orchestratortest.Step {
	return orchestratortest.Step{At: at, Event: orders.EventPaid, Data: orders.Payment{Reference: "p-1", Cents: 29700}}
}

// answered returns the approver's answer.
func answered(yes bool) orchestratortest.Step {
	return orchestratortest.Step{At: time.Hour, Task: "approve order", By: "ann", Data: orders.Decision{Approve: yes}}
}

// For every end of an order, its effects are kept or undone.
func TestOrders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input    string
		steps    []orchestratortest.Step
		want     orders.State
		took     time.Duration
		released int
	}{
		"paid":               {small, []orchestratortest.Step{paid(time.Hour)}, orders.Shipped, 90 * time.Minute, 0},
		"paid too late":      {small, nil, orders.Unpaid, 7 * 24 * time.Hour, 2},
		"approved, paid":     {large, []orchestratortest.Step{answered(true), paid(2 * time.Hour)}, orders.Shipped, 150 * time.Minute, 0},
		"refused":            {large, []orchestratortest.Step{answered(false)}, orders.Refused, time.Hour, 1},
		"nobody answers":     {large, nil, orders.Refused, 24 * time.Hour, 1},
		"approved, not paid": {large, []orchestratortest.Step{answered(true)}, orders.Unpaid, 7*24*time.Hour + time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := orchestratortest.Run(t, scenario(t, c.input, c.steps...))
			if got.Err != nil || got.Output.State != c.want || got.Elapsed != c.took || len(got.Called("release")) != c.released {
				t.Errorf("%v\nwant %s after %v, with %d lines released", got, c.want, c.took, c.released)
			}
		})
	}
}

// A sold-out line fails the order permanently, and releases the others.
func TestAnArticleIsSoldOut(t *testing.T) {
	t.Parallel()
	got := orchestratortest.Run(t, scenario(t, soldOut))
	if got.Status != orchestrator.Failed || !orchestrator.IsPermanent(got.Err) || len(got.Called("reserve")) != 3 || len(got.Called("release")) != 3 {
		t.Error(got)
	}
}

// Canceling an order within the grace undoes everything, the payment first.
func TestAnOrderIsCanceledInTime(t *testing.T) {
	t.Parallel()
	got := orchestratortest.Run(t, scenario(t, small, paid(time.Hour), orchestratortest.Step{At: 80 * time.Minute, Command: "cancel", Reason: "changed my mind"}))
	if got.Status != orchestrator.Canceled || !errors.Is(got.Err, orchestrator.ErrCanceled) || len(got.Called("refund")) != 1 || len(got.Called("release")) != 2 {
		t.Error(got)
	}
}

// Only a shipment publishes an event.
func TestEvents(t *testing.T) {
	t.Parallel()
	got := orchestratortest.Run(t, scenario(t, small, paid(0)))
	if len(got.Published) != 1 || got.Published[0].Type != orders.EventShipped || got.Published[0].TenantID != "contoso" {
		t.Errorf("%+v", got.Published)
	}
	if other := orchestratortest.Run(t, scenario(t, small)); len(other.Published) != 0 {
		t.Errorf("%+v", other.Published)
	}
}

// Invalid input is refused permanently.
func TestInput(t *testing.T) {
	t.Parallel()
	for _, input := range []string{``, `{}`, `{"order": {"id": "o-1"}}`, `{"oder": {}}`, `{"order": {"id": "o-1", "lines": [{"article": "chair", "pieces": 0, "cents": 1}]}}`,
		`{"order": {"id": "o-1", "lines": [{"article": "chair", "pieces": 1, "cents": 1}, {"article": "chair", "pieces": 1, "cents": 1}]}}`} {
		if got := orchestratortest.Run(t, scenario(t, input)); !orchestrator.IsPermanent(got.Err) || len(got.Calls) != 0 {
			t.Errorf("%s: %v", input, got)
		}
	}
}

// A crash at any storage call does not change the end of the order.
func TestOrdersSurviveCrashes(t *testing.T) {
	t.Parallel()
	orchestratortest.CrashEverywhere(t, func(t *testing.T) orchestratortest.Scenario[engine.Message, orders.Result] {
		return scenario(t, large, answered(true), paid(2*time.Hour))
	})
}

// After a permanent failure of any call, before or after its effect, a second attempt leaves nothing half done.
func TestOrdersHaveASecondChance(t *testing.T) {
	t.Parallel()
	orchestratortest.FailEverywhere(t, func(t *testing.T) orchestratortest.Scenario[engine.Message, orders.Result] {
		return scenario(t, large, answered(true), paid(2*time.Hour))
	})
}

// Running orders continue with later code: the files hold their histories. ROUNDHOUSE_GOLDEN=write makes a missing
// file.
func TestOrdersUnderWay(t *testing.T) {
	t.Parallel()
	orchestratortest.Golden(t, "testdata/version2.json", scenario(t, large, answered(true), paid(2*time.Hour)))
	before := scenario(t, small, paid(2*time.Hour))
	before.Orchestrator = orders.Definition(orders.NewShop(tables.NewMemory()), terms()).Versions[0]
	orchestratortest.Golden(t, "testdata/version1.json", before)
}
