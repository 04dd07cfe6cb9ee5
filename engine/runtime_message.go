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

// SignalEngine is the engine under which messages of the runtime's own queues are dead letters: signals that nobody could
// apply, activities that nobody could run.
const SignalEngine = "orchestration"

// runtimeMessage is a message of one of the runtime's own queues: signals, schedules, activities.
type runtimeMessage struct {
	*Pipeline
	queue   string // that it came from
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

// putBack sends the message to its queue again, for later. It stays the message that it was, so that it can be one dead
// letter only; one that has no room to say so becomes a new one.
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

// deadLetter makes the message a dead letter, with the orchestration that it was for as its correlation id.
func (m runtimeMessage) deadLetter(ctx context.Context, reason Reason, cause error) error {
	ctx, cancel := withSettleTimeout(ctx)
	defer cancel()
	parent, retries := m.header.parentLetter()
	_, err := m.config.DeadLetters.Add(ctx, DeadLetter{
		Engine: SignalEngine, MessageID: m.header.MessageID, InsertedAtUtc: m.header.InsertedAt,
		OriginalQueue: strings.TrimSuffix(m.queue, PoisonSuffix), OriginalMessage: m.body,
		ErrorMessage: cause.Error(), DetectedReason: reason, DequeueCount: m.attempt,
		LastFailureAtUtc: m.config.Now(), CorrelationID: m.orchestration(),
		ParentRowKey: parent, RetryCount: retries, Node: m.config.Runtime.Node(),
	})
	return err
}

// deadLetterPoison makes a message of a poison queue a dead letter. A poison queue has none of its own: what failed there too
// often would stay, hidden, for ever. So it is put back as long as storage does not take it.
func (m runtimeMessage) deadLetterPoison(ctx context.Context, cause error) error {
	buried := m
	buried.attempt = max(m.config.HostMaxDequeueCount, m.attempt) // the host counts from the beginning here
	err := buried.deadLetter(ctx, poisonReason(cause), cause)
	if err == nil {
		return nil
	}
	if back := m.putBack(ctx, m.config.ElsewhereDelay); back != nil {
		return errors.Join(err, back)
	}
	return nil
}

// poisonReason is why no attempt could come to rest.
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

// orchestration is the id of the one that the message is for, or an id of its own if it does not tell.
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
