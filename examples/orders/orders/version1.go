package orders

import (
	"errors"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// runVersion1 is the orchestrator from before approvals and the grace. An order that began with it continues with it;
// new ones begin with run. Remove it when GET /api/orchestrations shows no open run of version 1.
func (s *engineSteps) runVersion1(ctx *orchestrator.Context, r engine.Request[Input]) (Result, error) {
	order, err := orderOf(r)
	if err != nil {
		return Result{}, orchestrator.Permanent(err)
	}
	terms, err := s.recordedTerms(ctx)
	if err != nil {
		return Result{}, err
	}
	err = s.reserveLines(ctx, order)
	paid := false
	if err == nil {
		paid, err = s.pay(ctx, order, terms)
	}
	if err != nil || !paid {
		return Result{State: Unpaid}, errors.Join(err, orchestrator.Undo(ctx))
	}
	return s.complete(ctx, r, order)
}
