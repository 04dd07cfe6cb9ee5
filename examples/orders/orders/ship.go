package orders

import (
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Parcel is a shipped order.
type Parcel struct {
	OrderID string `json:"orderId"`
	Label   string `json:"label"`
	// Day is its shipment date, as in 2026-04-07.
	Day   string `json:"day"`
	Cents int    `json:"cents"`
}

// shipment is a child: an orchestration with its own id, rounds and attempts, which other orchestrators could call as
// well. It takes the day from its context, because the clock of the process would differ in a replay.
func (s *engineSteps) shipment(ctx *orchestrator.Context, order Order) (Parcel, error) {
	label, err := s.label.Call(ctx, order.ID).Await()
	if err != nil {
		return Parcel{}, err
	}
	parcel := Parcel{OrderID: order.ID, Label: label, Day: ctx.Now().Format(time.DateOnly), Cents: order.worth()}
	_, err = s.handOff.Call(ctx, parcel).Await()
	return parcel, err
}
