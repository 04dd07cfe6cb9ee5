package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// SignalEngine is the engine of dead letters from the runtime's own queues: signals that could not be applied, and
// activities that could not be run.
const SignalEngine = "orchestration"

// runtimeMessage is a message of one of the runtime's own queues: signals, schedules, activities.
type runtimeMessage struct {
	*Pipeline
	queue   string // the queue of the message
	header  header
	body    []byte
	attempt int
}

func (p *Pipeline) runtimeMessage(d Delivery) runtimeMessage {
	m := runtimeMessage{Pipeline: p, queue: d.Queue}
	m.header, m.body = splitHeader(d)
	if checkID("message id", m.header.MessageID) != nil {
		m.header.MessageID = deriveCorrelationID(m.header.MessageID)
	}
	m.attempt = m.header.Attempts + d.DequeueCount
	return m
}

// putBack requeues the message, with a delay. It keeps its identity, so that it can become one dead letter only; a
// message without room for the header becomes a new one.
func (m runtimeMessage) putBack(ctx context.Context, delay time.Duration) error {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	h := m.header
	h.Attempts = m.attempt - 1
	body, err := h.prepend(m.body)
	if len(body) > queues.MaxBody {
		body = m.body
	}
	if err == nil {
		_, err = m.config.Queues.Send(ctx, m.queue, body, delay)
	}
	if err != nil {
		return fmt.Errorf("put message %s back into %s: %w", m.header.MessageID, m.queue, err)
	}
	return nil
}

// deadLetter dead-letters the message under its run.
func (m runtimeMessage) deadLetter(ctx context.Context, reason Reason, cause error) error {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	parent, retries := m.header.parentLetter()
	of := m.runOf(ctx, m.orchestration())
	_, err := m.config.DeadLetters.Add(ctx, DeadLetter{
		Engine: SignalEngine, MessageID: m.header.MessageID, InsertedAtUtc: m.header.InsertedAt,
		OriginalQueue: strings.TrimSuffix(m.queue, PoisonSuffix), OriginalMessage: m.body,
		ErrorMessage: cause.Error(), DetectedReason: reason, DequeueCount: m.attempt,
		LastFailureAtUtc: m.config.Now(), CorrelationID: of.correlationID, TenantID: of.tenantID,
		ParentRowKey: parent, RetryCount: retries, Node: m.config.Runtime.Node(),
	})
	return err
}

// deadLetterPoison makes a message of a poison queue a dead letter. A poison queue has no poison queue: a message
// that failed there too often would stay hidden for ever. So the message is requeued while storage refuses the dead
// letter.
func (m runtimeMessage) deadLetterPoison(ctx context.Context, cause error) error {
	poisoned := m
	poisoned.attempt = max(m.config.HostMaxDequeueCount, m.attempt) // the dequeue count starts again in the poison queue
	err := poisoned.deadLetter(ctx, poisonReason(cause), cause)
	if err == nil {
		return nil
	}
	if back := m.putBack(ctx, m.config.ElsewhereDelay); back != nil {
		return errors.Join(err, back)
	}
	return nil
}

// poisonReason returns the reason why no delivery succeeded.
func poisonReason(cause error) Reason {
	_, stalled := errors.AsType[*orchestrator.DeterminismError](cause)
	switch {
	case errors.Is(cause, orchestrator.ErrUnknownOrchestrator):
		return ReasonUnknownOrchestrator
	case stalled || errors.Is(cause, orchestrator.ErrCorrupt):
		return ReasonInconsistent
	default:
		return ReasonPoison
	}
}

// orchestration returns the id of the orchestration that the message is for, or a derived id if the message does not
// name one.
func (m runtimeMessage) orchestration() string {
	var envelope struct {
		Orchestration string `json:"workflowInstanceId"`
	}
	err := json.Unmarshal(m.body, &envelope)
	if err != nil || checkID("correlation id", envelope.Orchestration) != nil {
		return deriveCorrelationID(m.header.MessageID)
	}
	return envelope.Orchestration
}

// runIDs identify the dead letters of an orchestration.
type runIDs struct{ correlationID, tenantID string }

// runOf returns the ids of an orchestration's run. For an unreadable status, it returns the orchestration's own id
// and no tenant, so only the platform sees the dead letter.
func (p *Pipeline) runOf(ctx context.Context, orchestration string) runIDs {
	s, err := p.config.Runtime.Status(ctx, orchestration)
	if err != nil {
		return runIDs{correlationID: orchestration}
	}
	if checkID("correlation id", s.CorrelationID) != nil {
		s.CorrelationID = orchestration
	}
	return runIDs{s.CorrelationID, s.TenantID}
}
