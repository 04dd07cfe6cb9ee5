package queues

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/vibedata/roundhouse/internal/account"
)

// tryTimeout bounds one try.
const tryTimeout = 10 * time.Second

// Azure is a Store in Azure Queue Storage or its emulator. A request without an answer, or with a "busy" one, is sent
// up to three times more within some seconds. So a Send may put its message twice, a Receive may hide messages that it
// does not return, until their visibility ends, and a Renew or Delete may report ErrPopReceipt or ErrNotFound for
// what its own first try did.
type Azure struct {
	service *azqueue.ServiceClient
}

var _ Store = (*Azure)(nil)

// NewAzure makes a Store for an account. It sends nothing yet.
func NewAzure(a account.Account) (*Azure, error) {
	options := &azqueue.ClientOptions{ClientOptions: a.ClientOptions(tryTimeout)}
	options.PerCallPolicies = append(options.PerCallPolicies, keepText{})
	service, err := newService(a, options)
	if err != nil {
		return nil, fmt.Errorf("queues of %v: %w", a, err)
	}
	return &Azure{service: service}, nil
}

func newService(a account.Account, options *azqueue.ClientOptions) (*azqueue.ServiceClient, error) {
	if name, key, ok := a.SharedKey(); ok {
		credential, err := azqueue.NewSharedKeyCredential(name, key)
		if err != nil {
			return nil, errors.New("the account key is not base64")
		}
		return azqueue.NewServiceClientWithSharedKeyCredential(a.QueueEndpoint, credential, options)
	}
	return azqueue.NewServiceClient(a.QueueEndpoint, a.Credential, options)
}

// CreateQueue makes sure that a queue exists. A queue that is being deleted is an ErrThrottled.
func (a *Azure) CreateQueue(ctx context.Context, queue string) error {
	err := cmp.Or(ctx.Err(), account.CheckName("queue", queue))
	if err == nil {
		_, err = a.service.CreateQueue(ctx, queue, nil)
		err = account.Classify(ctx, err)
	}
	if err != nil && !errors.Is(err, account.ErrExists) {
		return fmt.Errorf("create queue %.64s: %w", queue, err)
	}
	return nil
}

// Send puts a message.
func (a *Azure) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	if err := checkBody(body); err != nil {
		return "", fmt.Errorf("send to %s: %w", queue, err)
	}
	return a.SendText(ctx, queue, encode(body), delay)
}

// SendText puts a message with exactly this text, as a foreign sender may. It is not part of Store.
func (a *Azure) SendText(ctx context.Context, queue, text string, delay time.Duration) (string, error) {
	id, err := a.sendText(ctx, queue, text, delay)
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", queue, err)
	}
	return id, nil
}

func (a *Azure) sendText(ctx context.Context, queue, text string, delay time.Duration) (string, error) {
	if err := cmp.Or(ctx.Err(), account.CheckName("queue", queue), checkText(text), checkDelay(delay)); err != nil {
		return "", err
	}
	forever := int32(-1)
	answer, err := a.service.NewQueueClient(queue).EnqueueMessage(ctx, text,
		&azqueue.EnqueueMessageOptions{TimeToLive: &forever, VisibilityTimeout: wholeSeconds(delay)})
	if err != nil {
		return "", classify(ctx, err)
	}
	if len(answer.Messages) == 0 || answer.Messages[0] == nil {
		return "", fmt.Errorf("%w: the answer holds no message", ErrOutcomeUnknown)
	}
	return deref(answer.Messages[0].MessageID), nil
}

// Receive takes visible messages and hides them.
func (a *Azure) Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]Message, error) {
	err := cmp.Or(ctx.Err(), account.CheckName("queue", queue), checkReceive(limit, visibility))
	var answer azqueue.DequeueMessagesResponse
	if err == nil {
		number := int32(limit)
		answer, err = a.service.NewQueueClient(queue).DequeueMessages(ctx,
			&azqueue.DequeueMessagesOptions{NumberOfMessages: &number, VisibilityTimeout: wholeSeconds(visibility)})
		err = classify(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", queue, err)
	}
	var out []Message
	for _, m := range answer.Messages {
		out = append(out, Message{
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
func (a *Azure) Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error) {
	err := cmp.Or(ctx.Err(), account.CheckName("queue", queue), checkReceipt(id, popReceipt), checkDelay(visibility))
	var answer azqueue.UpdateMessageResponse
	if err == nil {
		answer, err = a.service.NewQueueClient(queue).UpdateMessage(withTextKept(ctx), id, popReceipt, "",
			&azqueue.UpdateMessageOptions{VisibilityTimeout: wholeSeconds(visibility)})
		err = classify(ctx, err)
	}
	if err != nil {
		return "", fmt.Errorf("renew %s/%.64s: %w", queue, id, err)
	}
	return deref(answer.PopReceipt), nil
}

// Delete removes a received message.
func (a *Azure) Delete(ctx context.Context, queue, id, popReceipt string) error {
	err := cmp.Or(ctx.Err(), account.CheckName("queue", queue), checkReceipt(id, popReceipt))
	if err == nil {
		_, err = a.service.NewQueueClient(queue).DeleteMessage(ctx, id, popReceipt, nil)
		err = classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("delete %s/%.64s: %w", queue, id, err)
	}
	return nil
}

// Length is the approximate number of messages, hidden ones included.
func (a *Azure) Length(ctx context.Context, queue string) (int, error) {
	err := cmp.Or(ctx.Err(), account.CheckName("queue", queue))
	var answer azqueue.GetQueuePropertiesResponse
	if err == nil {
		answer, err = a.service.NewQueueClient(queue).GetProperties(ctx, nil)
		err = classify(ctx, err)
	}
	if err != nil {
		return 0, fmt.Errorf("length of %s: %w", queue, err)
	}
	return int(deref(answer.ApproximateMessagesCount)), nil
}

// classify is account.Classify with the failures that only queues have.
func classify(ctx context.Context, err error) error {
	err = account.Classify(ctx, err)
	if f, ok := errors.AsType[*account.Failure](err); ok && f.Code == "PopReceiptMismatch" {
		f.Kind = ErrPopReceipt
	}
	return err
}

// keepText takes the body out of a Renew. The SDK always sends a text with it, and an empty one would replace the
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
	n := int32(seconds(d) / time.Second)
	return &n
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
