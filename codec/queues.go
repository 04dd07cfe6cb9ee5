package codec

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// queuePlace is the place of every message: the host moves messages between queues.
const queuePlace = "a queue message"

// Queues encrypts the messages that are sent to the queues of Config.Queue, and decrypts those that are received from
// them. An undecryptable message is not returned: it is redelivered when its visibility ends, and Receive fails if it
// has no other message.
func (c Config) Queues(store queues.Store) queues.Store {
	return &queueStore{store, c}
}

type queueStore struct {
	queues.Store
	config Config
}

func (s *queueStore) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	sealed, err := s.seal(ctx, queue, body)
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", queue, err)
	}
	return s.Store.Send(ctx, queue, sealed, delay)
}

func (s *queueStore) SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (queues.Message, error) {
	sealed, err := s.seal(ctx, queue, body)
	if err != nil {
		return queues.Message{}, fmt.Errorf("send to %s: %w", queue, err)
	}
	return s.Store.SendHidden(ctx, queue, sealed, hidden)
}

func (s *queueStore) Update(ctx context.Context, queue, id, popReceipt string, body []byte, visibility time.Duration) (string, error) {
	sealed, err := s.seal(ctx, queue, body)
	if err != nil {
		return "", fmt.Errorf("update %s/%.64s: %w", queue, id, err)
	}
	return s.Store.Update(ctx, queue, id, popReceipt, sealed, visibility)
}

// seal encrypts a body for one of the queues of Config.Queue.
func (s *queueStore) seal(ctx context.Context, queue string, body []byte) ([]byte, error) {
	if s.config.ReadOnly || !s.config.Queue(queue) {
		return body, nil
	}
	if _, err := queues.Encode(body); err != nil { // refuse the bodies that the plain store refuses
		return nil, err
	}
	sealed, err := s.config.Codec.Encode(ctx, squeeze(body, deflateFrom), queuePlace)
	if err != nil {
		return nil, err
	}
	return frame(sealed), nil
}

// open decrypts a message, if it is encrypted.
func (s *queueStore) open(ctx context.Context, queue string, m queues.Message) (queues.Message, error) {
	body, sealed := SealedMessage([]byte(m.Text))
	if !sealed {
		return m, nil
	}
	plain, err := s.config.open(ctx, body)
	if err == nil {
		m.Text, err = queues.Encode(plain)
	}
	if err != nil {
		return m, fmt.Errorf("message %s of %s: %w", m.ID, queue, err)
	}
	return m, nil
}

// Peek returns an undecryptable message without its text: the caller needs to know that it exists.
func (s *queueStore) Peek(ctx context.Context, queue string) (queues.Message, bool, error) {
	m, found, err := s.Store.Peek(ctx, queue)
	if err != nil || !found || !s.config.Queue(queue) {
		return m, found, err
	}
	opened, err := s.open(ctx, queue, m)
	if err != nil {
		m.Text = ""
		return m, true, nil
	}
	return opened, true, nil
}

func (s *queueStore) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	received, err := s.Store.Receive(ctx, queue, limit, visibility)
	if err != nil || !s.config.Queue(queue) {
		return received, err
	}
	var errs []error
	readable := received[:0]
	for _, m := range received {
		if m, err = s.open(ctx, queue, m); err != nil {
			errs = append(errs, err)
			continue
		}
		readable = append(readable, m)
	}
	if len(readable) == 0 {
		return nil, errors.Join(errs...)
	}
	return readable, nil
}

// Message returns the body of a message that this program has received without a Store, such as by a trigger: decrypted
// if it was encrypted, otherwise as it is. The errors are ErrKey and ErrDamaged.
func (c Config) Message(ctx context.Context, body []byte) ([]byte, error) {
	data, sealed := SealedMessage(body)
	if !sealed {
		return body, nil
	}
	return c.open(ctx, data)
}

func (c Config) open(ctx context.Context, data []byte) ([]byte, error) {
	plain, err := c.Codec.Decode(ctx, unframe(data), queuePlace)
	if err != nil {
		return nil, err
	}
	return expand(plain)
}

// SealedMessage reports whether a message is encrypted, and returns its encrypted data. The body may be the stored
// text, which is base64.
func SealedMessage(body []byte) (data []byte, sealed bool) {
	if framed(body) {
		return body, true
	}
	if len(body) < len(messageMark) || string(body[:len(messageMark)]) != messageMark {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(string(body))
	return data, err == nil && framed(data)
}

// messageMark is the beginning of the base64 of an encrypted message. It leaves out the last byte of magic, whose bits
// share a character with the next byte.
var messageMark = base64.StdEncoding.EncodeToString([]byte(magic)[:3])
