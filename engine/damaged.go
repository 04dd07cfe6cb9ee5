package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Damaged reports an unreadable orchestration, by one dead letter of SignalEngine, however often it is called for the
// same damage. The dead letter has the orchestration's id as its correlation id. Its message is a signal that wakes
// the orchestration once its rows are restored. Use it as Config.Damaged of the runtime.
func (p *Pipeline) Damaged(ctx context.Context, d orchestrator.Damage) error {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	rt := p.config.Runtime
	id := DeriveCorrelationID("damaged", d.Partition)
	letter := DeadLetter{
		Engine: SignalEngine, MessageID: id, InsertedAtUtc: d.Since, OriginalQueue: rt.SignalQueue(), CorrelationID: d.ID,
		DetectedReason: ReasonInconsistent, LastFailureAtUtc: d.Since, TenantID: p.runOf(ctx, d.ID).tenantID, Node: rt.Node(),
		ErrorMessage: fmt.Sprintf("the orchestration %s cannot be read: restore its rows, or purge it by force (docs/recovery.md): %s", d.ID, d.Reason),
	}
	if checkID("correlation id", letter.CorrelationID) != nil {
		letter.CorrelationID = id
	}
	wake := orchestrator.Signal{SignalID: "damaged:" + id, InstanceID: d.ID, RuntimeProvider: signalProvider, Type: orchestrator.InternalContinue,
		OccurredAtUtc: d.Since, Payload: orchestrator.Payload{Lost: true}}
	if d.ID == "" {
		letter.ErrorMessage = fmt.Sprintf("a partition of the orchestrations belongs to none: delete its rows in storage (docs/recovery.md): %s", d.Reason)
	}
	var err error
	if letter.OriginalMessage, err = json.Marshal(wake); err != nil {
		return err // unreachable: all of it can be written
	}
	_, err = p.config.DeadLetters.Add(ctx, letter)
	return err
}
