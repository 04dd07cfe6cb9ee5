package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Runs are the orchestrations of an engine that run, or ran last, under a correlation id, MaxLimit at most; more says that
// there are others. An engine that this pipeline does not have has none.
//
// It costs one read, but for a singleton a scan past the engine's orchestrations and their rounds: the id of such a one
// tells its instance or tenant, not its run, and one correlation id may stand for runs of many instances. Of an instance's
// runs an orchestration shows the last; the history has those before.
func (p *Pipeline) Runs(ctx context.Context, engine, correlationID string) (found []orchestrator.Summary, more bool, err error) {
	def, ok := p.byName[engine]
	if !ok {
		return nil, false, nil
	}
	if def.Singleton != "" {
		f := orchestrator.Filter{Prefix: engine + "-", Orchestrator: engine, CorrelationID: correlationID}
		found, next, err := p.config.Runtime.List(ctx, f, MaxLimit, "")
		if err != nil {
			return nil, false, fmt.Errorf("runs of engine %s under correlation id %s: %w", engine, correlationID, err)
		}
		return found, next != "", nil
	}
	a := &attempt{Pipeline: p, def: def, message: Message{CorrelationID: correlationID}}
	s, err := p.config.Runtime.Status(ctx, a.orchestrationID())
	if errors.Is(err, orchestrator.ErrNotFound) || err == nil && s.CorrelationID != correlationID {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("run of engine %s under correlation id %s: %w", engine, correlationID, err)
	}
	return []orchestrator.Summary{s}, false, nil
}
