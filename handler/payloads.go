package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
)

// unreadDelay is the delay of a message that could not be decrypted.
const unreadDelay = time.Minute

// payloads encrypts the program's payloads before they are stored, and decrypts them when they are read.
type payloads struct {
	config   codec.Config
	envelope *codec.Envelope
	queues   queues.Store    // messages are sent unchanged, and received as stored
	own      map[string]bool // the queues of the program's messages
	// runtime are those whose messages have ids of their own, so that they may be requeued under another message id.
	runtime map[string]bool
	log     *slog.Logger
}

// sealPayloads adds the encryption of payloads to the stores of a platform. Without the name of a key, nothing is
// encrypted, and encrypted data is still read.
func sealPayloads(p *Platform, keys codec.Keys, key string) (*payloads, error) {
	envelope, err := codec.NewEnvelope(codec.EnvelopeConfig{Keys: keys})
	if err != nil {
		return nil, err
	}
	s := &payloads{envelope: envelope, queues: p.Queues, own: map[string]bool{}, runtime: map[string]bool{}, log: p.Log}
	s.config = codec.Config{Codec: envelope, ReadOnly: key == "", Clear: orchestrator.ClearColumns(),
		Containers: []string{orchestrator.DefaultContainer, engine.DefaultClaimsContainer, outbox.DefaultContainer},
		Queue:      func(queue string) bool { return s.own[queue] }}
	maps.Copy(s.config.Clear, engine.ClearColumns())
	maps.Copy(s.config.Clear, schedule.ClearColumns())
	maps.Copy(s.config.Clear, outbox.ClearColumns())
	maps.Copy(s.config.Clear, audit.ClearColumns())
	p.Tables, p.Queues, p.Blobs = s.config.Tables(p.Tables), s.config.Queues(p.Queues), s.config.Blobs(p.Blobs)
	return s, nil
}

// listen makes the handlers of the program's queues get messages in clear. It is part of the wiring: nothing runs
// yet.
func (s *payloads) listen(out *program, runtime ...string) {
	for _, queue := range runtime {
		s.runtime[queue], s.runtime[queue+engine.PoisonSuffix] = true, true
	}
	for name, q := range out.Queues {
		s.own[q.Queue] = true
		q.Handle = s.opened(q.Queue, q.Handle)
		out.Queues[name] = q
	}
	for i, q := range out.Poison {
		s.own[q.Queue] = true
		out.Poison[i].Handle = s.opened(q.Queue, q.Handle)
	}
}

// opened decrypts a message before it is handled. A message whose key is unavailable is requeued, so that the host
// does not abandon it after any number of deliveries. In a poison queue, every such message is requeued: a message
// from the program does not expire after seven days, unlike one from the host.
func (s *payloads) opened(queue string, handle trigger.QueueHandler) trigger.QueueHandler {
	return func(ctx context.Context, d engine.Delivery) error {
		body, err := s.config.Message(ctx, d.Body)
		keyless := errors.Is(err, codec.ErrKey)
		switch {
		case err == nil:
			plain := d
			plain.Body = body
			if err = handle(ctx, plain); !errors.Is(err, codec.ErrKey) || !s.runtime[queue] {
				return err
			}
		case !keyless && !strings.HasSuffix(queue, engine.PoisonSuffix):
			return fmt.Errorf("message %s of %s: %w", d.ID, queue, err)
		}
		if back := s.putBack(ctx, queue, d.Body, unreadDelay); back != nil {
			return errors.Join(err, back)
		}
		s.log.ErrorContext(ctx, "a message was put back, because its payload, or one that it needs, cannot be decrypted",
			"queue", queue, "messageId", d.ID, "againMs", unreadDelay.Milliseconds(), "error", err.Error())
		return nil
	}
}

// again requeues the message of a delivery in its received form: a clear one with its identity and its previous
// attempts, and an encrypted one, which may be undecryptable now, unchanged.
func (s *payloads) again(queue string) func(context.Context, engine.Delivery, time.Duration) error {
	return func(ctx context.Context, d engine.Delivery, away time.Duration) error {
		if _, sealed := codec.SealedMessage(d.Body); sealed {
			return s.putBack(ctx, queue, d.Body, away)
		}
		body, err := engine.Again(d)
		if err != nil {
			return err
		}
		return s.putBack(ctx, queue, body, away)
	}
}

// asItCame requeues the message of a delivery, without a count of attempts.
func (s *payloads) asItCame(queue string) func(context.Context, engine.Delivery, time.Duration) error {
	return func(ctx context.Context, d engine.Delivery, away time.Duration) error {
		return s.putBack(ctx, queue, d.Body, away)
	}
}

// putBack requeues a received message unchanged, with a delay.
func (s *payloads) putBack(ctx context.Context, queue string, body []byte, away time.Duration) error {
	if data, sealed := codec.SealedMessage(body); sealed {
		body = data
	}
	if _, err := s.queues.Send(ctx, queue, body, away); err != nil {
		return fmt.Errorf("put a message of %s back: %w", queue, err)
	}
	return nil
}

// prepare makes sure that an encryption key exists, if payloads are encrypted.
func (s *payloads) prepare(ctx context.Context) error {
	if s.config.ReadOnly {
		return nil
	}
	if err := s.envelope.Check(ctx); err != nil {
		return fmt.Errorf("encryption of payloads (ROUNDHOUSE_PAYLOAD_KEY): %w", err)
	}
	return nil
}
