// Package orders is an engine for the orders of a shop, as an example to copy from. Each file shows one feature:
//
//	definition.go  an engine: its description for the platform
//	order.go       its input and output, and the check of the input
//	take.go        the orchestrator: an order from its arrival to its shipment
//	version1.go    an earlier version of the orchestrator, for orders that began with it
//	reserve.go     fan-out over the lines of an order, and compensation
//	approve.go     an approval by a person
//	pay.go         an external event, or a timeout
//	ship.go        a child orchestration
//	close.go       a schedule, and a second operation of the engine
//	shop.go        the data of the activities
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

// The engine's name, and the queue that its messages arrive in.
const (
	Engine = "orders"
	Queue  = "orders-queue"
)

// The operations of messages.
const (
	OperationTake  = "take"
	OperationClose = "close-day"
)

// Terms are the settings of the shop's owner.
type Terms struct {
	// Limit is the price in cents above which a person with one of the roles Approvers has to approve an order.
	Limit     int      `json:"limit"`
	Approvers []string `json:"approvers"`
	// ApprovalFor and PaymentFor bound the waits of an order for its approval and for its payment.
	ApprovalFor time.Duration `json:"approvalFor"`
	PaymentFor  time.Duration `json:"paymentFor"`
	// Grace is the time in which a customer may cancel a paid order.
	Grace time.Duration `json:"grace"`
}

// engineSteps are the engine's activities and its child, as its orchestrators call them.
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

// Definition returns the engine over a shop. Functions, queues, tables, timers and routes of the app are derived from
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
