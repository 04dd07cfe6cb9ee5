package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Runs returns the orchestrations of an engine for a correlation id, at most MaxLimit; more says that there are others.
// An engine that this pipeline does not know has none.
//
// The cost is one read. For a singleton it is a scan of the engine's orchestrations with their rounds, because their
// ids contain the instance or tenant and not the run, and one correlation id may stand for runs of many instances. An
// orchestration shows only the last run of its instance; the earlier ones are in the history.
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
