package orders

import (
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Reservation is a reserved line of an order.
type Reservation struct {
	OrderID string `json:"orderId"`
	Line    Line   `json:"line"`
}

// reserveLines is fan-out and fan-in: it reserves all lines in parallel, and waits for all of them. Each call names its
// compensation. When one line fails, the others have finished, and the Undo of the orchestrator releases them, the
// failed one included: it may have done half of its work.
func (s *engineSteps) reserveLines(ctx *orchestrator.Context, order Order) error {
	var lines []*orchestrator.Future[string]
	for _, line := range order.Lines {
		r := Reservation{order.ID, line}
		lines = append(lines, s.reserve.Call(ctx, r, orchestrator.WithUndo(s.release, r)))
	}
	if _, err := orchestrator.All(lines...); err != nil {
		return fmt.Errorf("reserve the lines of order %s: %w", order.ID, err)
	}
	return nil
}
