package orders

import (
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
)

// ErrInput means that a message requests an impossible operation. Do not retry.
var ErrInput = errors.New("not an order")

// Input is the input of a message, one member for each operation. It is decoded strictly: an unknown member makes the
// message a dead letter.
type Input struct {
	Order *Order `json:"order,omitempty"`
	// Day is the day to close, as in 2026-04-07.
	Day string `json:"day,omitempty"`
}

// Order is a customer's order.
type Order struct {
	ID    string `json:"id"`
	Lines []Line `json:"lines"`
}

// Line is an article of an order, with the price of a piece.
type Line struct {
	Article string `json:"article"`
	Pieces  int    `json:"pieces"`
	Cents   int    `json:"cents"`
}

// State is the final state of an order.
type State string

// The states of orders.
const (
	Shipped State = "shipped"
	Refused State = "refused"
	Unpaid  State = "unpaid"
	Closed  State = "closed"
)

// Result is the result of a run.
type Result struct {
	State State  `json:"state"`
	Label string `json:"label,omitempty"`
}

// worth returns the price of an order in cents.
func (o Order) worth() int {
	sum := 0
	for _, l := range o.Lines {
		sum += l.Pieces * l.Cents
	}
	return sum
}

// orderOf checks the input of a message. Its caller marks the error as permanent, which saves attempts that cannot
// succeed.
func orderOf(r engine.Request[Input]) (Order, error) {
	if r.Operation != "" && r.Operation != OperationTake {
		return Order{}, fmt.Errorf("%w: the operation is %.40q: ask for %s or %s", ErrInput, r.Operation, OperationTake, OperationClose)
	}
	o := r.Input.Order
	if o == nil || o.ID == "" || len(o.Lines) == 0 {
		return Order{}, fmt.Errorf("%w: an order needs an id and lines", ErrInput)
	}
	seen := map[string]bool{}
	for _, l := range o.Lines {
		if l.Article == "" || l.Pieces < 1 || l.Cents < 0 || seen[l.Article] {
			return Order{}, fmt.Errorf("%w: order %s: each line needs an article of its own, a number of pieces and a price", ErrInput, o.ID)
		}
		seen[l.Article] = true
	}
	return *o, nil
}
