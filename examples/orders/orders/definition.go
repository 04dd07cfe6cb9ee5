// Package orders is an engine that processes orders of a shop, as an example to copy from. Each file shows one thing:
//
//	definition.go  an engine: its definition for the platform
//	order.go       its input and result, and how input is checked
//	take.go        the orchestrator: from the arrival of an order to its shipment
//	version1.go    an earlier version of the orchestrator, for orders that began with it
//	reserve.go     fan-out over the lines of an order, and compensation
//	approve.go     an approval by a user
//	pay.go         an event from outside, or a timeout
//	ship.go        a child orchestration
//	close.go       a schedule, and a second operation of the engine
//	shop.go        the activities
//
// It owns the tables ordersBooked and ordersShipped.
package orders

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// The engine's name, and the queue of its messages.
const (
	Engine = "orders"
	Queue  = "orders-queue"
)

// The operations of messages.
const (
	OperationTake  = "take"
	OperationClose = "close-day"
)

// Terms are the decisions of the shop's owner.
type Terms struct {
	// Limit is the worth in cents above which a user with one of the roles Approvers has to approve an order.
	Limit     int      `json:"limit"`
	Approvers []string `json:"approvers"`
	// ApprovalFor and PaymentFor are how long an order waits for its approval and for its payment.
	ApprovalFor time.Duration `json:"approvalFor"`
	PaymentFor  time.Duration `json:"paymentFor"`
	// Grace is how long a customer may cancel a paid order.
	Grace time.Duration `json:"grace"`
}

// engineSteps are the engine's activities and its child, as called by its orchestrators.
type engineSteps struct {
	terms   Terms
	reserve *orchestrator.Activity[Reservation, string]
	release *orchestrator.Activity[Reservation, string]
	book    *orchestrator.Activity[Booking, string]
	refund  *orchestrator.Activity[Booking, string]
	label   *orchestrator.Activity[string, string]
	handOff *orchestrator.Activity[Parcel, string]
	total   *orchestrator.Activity[string, Total]
	ship    *orchestrator.Orchestrator[Order, Parcel]
}

// Definition returns the engine over a shop. The app's functions, queues, tables, timers and routes are derived from
// it.
func Definition(shop *Shop, terms Terms) engine.Definition {
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 3, FirstInterval: time.Second})
	timeout := orchestrator.WithTimeout(time.Minute)
	s := &engineSteps{
		terms:   terms,
		reserve: orchestrator.NewActivity("reserve", shop.Reserve, retry, timeout),
		release: orchestrator.NewActivity("release", shop.Release, retry, timeout),
		book:    orchestrator.NewActivity("book-payment", shop.Book, retry, timeout),
		refund:  orchestrator.NewActivity("refund", shop.Refund, retry, timeout),
		label:   orchestrator.NewActivity("label", shop.Label, retry, timeout),
		handOff: orchestrator.NewActivity("hand-off", shop.HandOff, retry, timeout),
		total:   orchestrator.NewActivity("total", shop.Total, retry, timeout),
	}
	s.ship = orchestrator.NewOrchestrator("orders-shipment", s.shipment)
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, s.run, orchestrator.WithVersion("2")),
		Versions:     []orchestrator.AnyOrchestrator{engine.Orchestrate(Engine, s.runVersion1, orchestrator.WithVersion("1"))},
		Children:     []orchestrator.AnyOrchestrator{s.ship},
		Operations:   []orchestrator.AnyActivity{s.reserve, s.book, s.total},
		Activities:   []orchestrator.AnyActivity{s.release, s.refund, s.label, s.handOff},
		Schedules:    []engine.Schedule{{Name: "close", Cron: "0 0 22 * * *", Messages: closeTheDay}},
		Intakes:      []engine.Intake{{Function: "orders-intake", Route: "orders", Status: http.StatusAccepted}},
		Tables:       []string{BookedTable, ShippedTable},
		Example: &engine.Message{TenantID: "contoso", Operation: OperationTake,
			Input: json.RawMessage(`{"order": {"id": "o-1", "lines": [{"article": "chair", "pieces": 2, "cents": 4900}, {"article": "table", "pieces": 1, "cents": 19900}]}}`)},
	}
}
