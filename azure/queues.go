package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/vibedata/roundhouse/internal/storage"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// queueTryTimeout bounds one try.
	queueTryTimeout = 10 * time.Second
	// sendTimeout bounds one try of a Send, which is not repeated: the service itself answers within 30 seconds.
	sendTimeout = 30 * time.Second
)

// Queues is a queues.Store in Azure Queue Storage or its emulator. A request without an answer, or with a "busy" one,
// is sent up to three times more within some seconds. So a Receive may hide messages that it does not return, until
// their visibility ends. A Renew or Delete may return queues.ErrPopReceipt or queues.ErrNotFound after its own first
// try succeeded. A Send is repeated only while nothing was applied: it adds one message at most.
type Queues struct {
	service *azqueue.ServiceClient
}

var _ queues.Store = (*Queues)(nil)

// NewQueues returns a queues.Store for an account. It sends no request yet.
func NewQueues(a Account) (*Queues, error) {
	options := &azqueue.ClientOptions{ClientOptions: a.ClientOptions(queueTryTimeout)}
	options.PerCallPolicies = append(options.PerCallPolicies, keepText{})
	service, err := newQueueService(a, options)
	if err != nil {
		return nil, fmt.Errorf("queues of %v: %w", a, err)
	}
	return &Queues{service: service}, nil
}

func newQueueService(a Account, options *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
	if name, key, ok := a.SharedKey(); ok {
		credential, err := azqueue.NewSharedKeyCredential(name, key)
		if err != nil {
			return nil, errors.New("the account key is not base64")
		}
		return azqueue.NewServiceClientWithSharedKeyCredential(a.QueueEndpoint, credential, options)
	}
	return azqueue.NewServiceClient(a.QueueEndpoint, a.Credential, options)
}

// CreateQueue creates a queue if it is missing. A queue that is being deleted is a queues.ErrThrottled.
func (a *Queues) CreateQueue(ctx context.Context, queue string) error {
	err := cmp.Or(ctx.Err(), queues.CheckQueue(queue))
	if err == nil {
		_, err = a.service.CreateQueue(ctx, queue, nil)
		err = classify(ctx, err)
	}
	if err != nil && !errors.Is(err, storage.ErrExists) {
		return fmt.Errorf("create queue %.64s: %w", queue, err)
	}
	return nil
}

// Send sends a message.
func (a *Queues) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	text, err := queues.Encode(body)
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", queue, err)
	}
	return a.SendText(ctx, queue, text, delay)
}

// SendText sends a message with exactly this text, as other programs may. It is not part of queues.Store.
func (a *Queues) SendText(ctx context.Context, queue, text string, delay time.Duration) (string, error) {
	sent, err := a.sendText(ctx, queue, text, delay)
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", queue, err)
	}
	return deref(sent.MessageID), nil
}

// sendText repeats a request only while the service refuses it as busy or cannot be reached.
func (a *Queues) sendText(ctx context.Context, queue, text string, delay time.Duration) (sent azqueue.EnqueuedMessage, err error) {
	if err := cmp.Or(ctx.Err(), queues.CheckQueue(queue), queues.CheckText(text), queues.CheckDelay(delay)); err != nil {
		return sent, err
	}
	forever := int32(-1)
	retry := policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: maxRetries, TryTimeout: sendTimeout, RetryDelay: retryDelay, MaxRetryDelay: maxRetryDelay, ShouldRetry: notApplied})
	answer, err := a.service.NewQueueClient(queue).EnqueueMessage(retry, text,
		&azqueue.EnqueueMessageOptions{TimeToLive: &forever, VisibilityTimeout: wholeSeconds(delay)})
	if unreachable(err) {
		return sent, &failure{Kind: queues.ErrThrottled, cause: fmt.Errorf("the service is not reachable: %w", err)}
	}
	if err != nil {
		return sent, classifyQueue(ctx, err)
	}
	if len(answer.Messages) == 0 || answer.Messages[0] == nil {
		return sent, fmt.Errorf("%w: the answer holds no message", queues.ErrOutcomeUnknown)
	}
	return *answer.Messages[0], nil
}

// SendHidden sends a message that the sender keeps hidden. It is not repeated: the sender would know only one of two
// messages.
func (a *Queues) SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (queues.Message, error) {
	text, err := queues.Encode(body)
	var sent azqueue.EnqueuedMessage
	if err = cmp.Or(err, queues.CheckHidden(hidden)); err == nil {
		sent, err = a.sendText(storage.WithSingleTry(ctx), queue, text, hidden)
	}
	if err != nil {
		return queues.Message{}, fmt.Errorf("send to %s: %w", queue, err)
	}
	return queues.Message{ID: deref(sent.MessageID), PopReceipt: deref(sent.PopReceipt), InsertedAt: deref(sent.InsertionTime).UTC(),
		ExpiresAt: deref(sent.ExpirationTime).UTC(), NextVisibleAt: deref(sent.TimeNextVisible).UTC()}, nil
}

// Receive receives visible messages and hides them.
func (a *Queues) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]queues.Message, error) {
	err := cmp.Or(ctx.Err(), queues.CheckQueue(queue), queues.CheckReceive(limit, visibility))
	var answer azqueue.DequeueMessagesResponse
	if err == nil {
		number := int32(limit)
		answer, err = a.service.NewQueueClient(queue).DequeueMessages(ctx,
			&azqueue.DequeueMessagesOptions{NumberOfMessages: &number, VisibilityTimeout: wholeSeconds(visibility)})
		err = classifyQueue(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", queue, err)
	}
	var out []queues.Message
	for _, m := range answer.Messages {
		out = append(out, queues.Message{
			ID:            deref(m.MessageID),
			PopReceipt:    deref(m.PopReceipt),
			Text:          deref(m.MessageText),
			DequeueCount:  deref(m.DequeueCount),
			InsertedAt:    deref(m.InsertionTime).UTC(),
			ExpiresAt:     deref(m.ExpirationTime).UTC(),
			NextVisibleAt: deref(m.TimeNextVisible).UTC(),
		})
	}
	return out, nil
}

// Renew hides a received message for longer.
func (a *Queues) Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error) {
	err := cmp.Or(ctx.Err(), queues.CheckQueue(queue), queues.CheckReceipt(id, popReceipt), queues.CheckDelay(visibility))
	var answer azqueue.UpdateMessageResponse
	if err == nil {
		answer, err = a.service.NewQueueClient(queue).UpdateMessage(withTextKept(ctx), id, popReceipt, "",
			&azqueue.UpdateMessageOptions{VisibilityTimeout: wholeSeconds(visibility)})
		err = classifyQueue(ctx, err)
	}
	if err != nil {
		return "", fmt.Errorf("renew %s/%.64s: %w", queue, id, err)
	}
	return deref(answer.PopReceipt), nil
}

// Update hides a received message for longer and replaces its body.
func (a *Queues) Update(ctx context.Context, queue, id, popReceipt string, body []byte, visibility time.Duration) (string, error) {
	text, err := queues.Encode(body)
	err = cmp.Or(ctx.Err(), err, queues.CheckQueue(queue), queues.CheckReceipt(id, popReceipt), queues.CheckDelay(visibility))
	var answer azqueue.UpdateMessageResponse
	if err == nil {
		answer, err = a.service.NewQueueClient(queue).UpdateMessage(ctx, id, popReceipt, text,
			&azqueue.UpdateMessageOptions{VisibilityTimeout: wholeSeconds(visibility)})
		err = classifyQueue(ctx, err)
	}
	if err != nil {
		return "", fmt.Errorf("update %s/%.64s: %w", queue, id, err)
	}
	return deref(answer.PopReceipt), nil
}

// Delete removes a received message.
func (a *Queues) Delete(ctx context.Context, queue, id, popReceipt string) error {
	err := cmp.Or(ctx.Err(), queues.CheckQueue(queue), queues.CheckReceipt(id, popReceipt))
	if err == nil {
		_, err = a.service.NewQueueClient(queue).DeleteMessage(ctx, id, popReceipt, nil)
		err = classifyQueue(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete %s/%.64s: %w", queue, id, err)
	}
	return nil
}

// Peek returns the message that would be received next.
func (a *Queues) Peek(ctx context.Context, queue string) (next queues.Message, found bool, err error) {
	err = cmp.Or(ctx.Err(), queues.CheckQueue(queue))
	var answer azqueue.PeekMessagesResponse
	if err == nil {
		answer, err = a.service.NewQueueClient(queue).PeekMessages(ctx, nil) // one message
		err = classifyQueue(ctx, err)
	}
	if err != nil {
		return queues.Message{}, false, fmt.Errorf("peek at %s: %w", queue, err)
	}
	if len(answer.Messages) == 0 {
		return queues.Message{}, false, nil
	}
	m := answer.Messages[0]
	return queues.Message{ID: deref(m.MessageID), Text: deref(m.MessageText), DequeueCount: deref(m.DequeueCount),
		InsertedAt: deref(m.InsertionTime).UTC(), ExpiresAt: deref(m.ExpirationTime).UTC()}, true, nil
}

// Length returns the approximate number of messages, hidden ones included.
func (a *Queues) Length(ctx context.Context, queue string) (int, error) {
	err := cmp.Or(ctx.Err(), queues.CheckQueue(queue))
	var answer azqueue.GetQueuePropertiesResponse
	if err == nil {
		answer, err = a.service.NewQueueClient(queue).GetProperties(ctx, nil)
		err = classifyQueue(ctx, err)
	}
	if err != nil {
		return 0, fmt.Errorf("length of %s: %w", queue, err)
	}
	return int(deref(answer.ApproximateMessagesCount)), nil
}

// classifyQueue is classify with the failures of queues.
func classifyQueue(ctx context.Context, err error) error {
	err = classify(ctx, err)
	if f, ok := errors.AsType[*failure](err); ok && f.Code == "PopReceiptMismatch" {
		f.Kind = queues.ErrPopReceipt
	}
	return err
}

// keepText removes the body from a Renew. The SDK always sends a text with it, and an empty one would replace the
// message's; the service keeps the text when the request has no body.
type keepText struct{}

type keepTextKey struct{}

func withTextKept(ctx context.Context) context.Context {
	return context.WithValue(ctx, keepTextKey{}, true)
}

// Do sends one request.
func (keepText) Do(req *policy.Request) (*http.Response, error) {
	if req.Raw().Context().Value(keepTextKey{}) != nil {
		if err := req.SetBody(nil, ""); err != nil {
			return nil, err
		}
	}
	return req.Next()
}

func wholeSeconds(d time.Duration) *int32 {
	n := int32(queues.WholeSeconds(d) / time.Second)
	return &n
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
