package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/vibedata/roundhouse/orchestrator"
)

// HandleActivities handles one delivery of the runtime's activity queue: activities of an orchestration that any
// process may run. An unreadable message is dead-lettered immediately.
func (p *Pipeline) HandleActivities(ctx context.Context, d Delivery) error {
	defer p.holdMessage(d)()
	m := p.runtimeMessage(d)
	err := p.config.Runtime.RunActivities(ctx, m.body)
	if errors.Is(err, orchestrator.ErrBatch) {
		return m.deadLetter(ctx, ReasonUndecodable, err)
	}
	orchestration := m.orchestration()
	p.logDelivery(ctx, slog.LevelInfo, slog.String("orchestrationId", orchestration),
		slog.String("messageId", m.header.MessageID), slog.Int("attempt", m.attempt))
	return err
}

// HandleActivitiesPoison fails the activities of a message that the host abandoned, so that their orchestration
// handles the failure. If the orchestration cannot be notified, the message becomes a dead letter.
func (p *Pipeline) HandleActivitiesPoison(ctx context.Context, d Delivery) error {
	m := p.runtimeMessage(d)
	reason := fmt.Sprintf("the host gave up on the message %s with this activity: each delivery failed, or took the process down", m.header.MessageID)
	if err := p.config.Runtime.GiveUpActivities(ctx, m.body, reason); err != nil {
		return m.deadLetterPoison(ctx, err)
	}
	return nil
}
