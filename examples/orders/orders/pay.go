package orders

import (
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// EventPaid is the name of the event by which the bank reports a payment:
//
//	POST /api/orchestrations/orders-{correlationId}/events/payment-received
const EventPaid = "payment-received"

// Payment is the content of the event.
type Payment struct {
	Reference string `json:"reference"`
	Cents     int    `json:"cents"`
}

// Booking is a payment of an order.
type Booking struct {
	OrderID string  `json:"orderId"`
	Payment Payment `json:"payment"`
}

// pay waits for the payment, or until its timeout. An event that arrived before the wait has been kept.
func (s *engineSteps) pay(ctx *orchestrator.Context, order Order, terms Terms) (bool, error) {
	paid := orchestrator.Event[Payment](ctx, EventPaid)
	late := orchestrator.Timer(ctx, terms.PaymentFor)
	if orchestrator.Any(ctx, paid, late) == 1 {
		return false, nil
	}
	payment, err := paid.Await()
	if err != nil {
		return false, fmt.Errorf("payment of order %s: %w", order.ID, err)
	}
	b := Booking{order.ID, payment}
	if _, err := s.book.Call(ctx, b, orchestrator.WithUndo(s.refund, b)).Await(); err != nil {
		return false, fmt.Errorf("book the payment of order %s: %w", order.ID, err)
	}
	return true, nil
}
