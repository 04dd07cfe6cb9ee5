package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
)

// DataContainer holds the payloads of events that do not fit a queue message (claim check). A dataref is
// "outbox-claims/{blob}", relative to the blob endpoint of the account. Admin.SweepData deletes them once every
// receiver must have read them.
const DataContainer = "outbox-claims"

// ErrDataRef means that the text is not a dataref of this package.
var ErrDataRef = errors.New("not a dataref of the outbox")

// queueName is the service's rule, without the length.
var queueName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// QueueConfig configures a Storage Queue as a destination.
type QueueConfig struct {
	// Queue is the name: 3 to 63 of a-z, 0-9 and single hyphens between them. Required.
	Queue string
	// Queues is the store of the queue. Required.
	Queues queues.Store
	// Blobs holds the payloads of events over queues.MaxBody. Without it, such events are refused.
	Blobs blobs.Store
	// Source and Subject are as in HTTPConfig.
	Source, Subject string
}

// Validate returns all errors of a configuration, as one ErrInvalid.
func (c QueueConfig) Validate() error {
	_, err := c.build()
	return err
}

// Queue is a Transport to a Storage Queue. A message is a CloudEvent in the JSON event format, in base64 as
// queues.Store writes it. Its id is the event's key, the same in every attempt. The queue does not drop duplicates, so
// receivers have to. An event over queues.MaxBody travels without data; its attribute dataref names the blob with the
// payload, which ReadData reads.
//
// Events that cannot be encoded or are too large fail permanently. All other failures are transient, such as a missing
// queue or a refused credential, because their repair does not change the event.
type Queue struct {
	queue  string
	queues queues.Store
	blobs  blobs.Store
	origin origin
}

var _ Transport = (*Queue)(nil)

// NewQueue validates a configuration and returns its Transport. It sends no request yet.
func NewQueue(c QueueConfig) (*Queue, error) {
	return c.build()
}

func (c QueueConfig) build() (*Queue, error) {
	from, err := newOrigin(c.Source, c.Subject)
	errs := []error{err}
	if len(c.Queue) < 3 || len(c.Queue) > 63 || !queueName.MatchString(c.Queue) {
		errs = append(errs, fmt.Errorf("queue name %.64q: use 3 to 63 of a-z, 0-9 and single hyphens between them", c.Queue))
	}
	if c.Queues == nil {
		errs = append(errs, errors.New("QueueConfig.Queues is missing"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("queue transport: %w: %w", ErrInvalid, err)
	}
	return &Queue{queue: c.Queue, queues: c.Queues, blobs: c.Blobs, origin: from}, nil
}

// Prepare creates the queue and DataContainer if they are missing. Errors are those of queues and blobs.
func (q *Queue) Prepare(ctx context.Context) error {
	if err := q.queues.CreateQueue(ctx, q.queue); err != nil {
		return fmt.Errorf("prepare queue transport: %w", err)
	}
	if q.blobs == nil {
		return nil
	}
	if err := q.blobs.CreateContainer(ctx, DataContainer); err != nil {
		return fmt.Errorf("prepare queue transport: %w", err)
	}
	return nil
}

// Deliver sends an event. Every error is a *DeliveryError; errors.Is finds the sentinels of queues and blobs.
func (q *Queue) Deliver(ctx context.Context, e Event) error {
	event, err := q.origin.toCloudEvent(e)
	if err != nil {
		return &DeliveryError{Permanent: true, Err: fmt.Errorf("send to queue %s: %w", q.queue, err)}
	}
	body, err := event.encode()
	if err != nil {
		return &DeliveryError{Permanent: true, Err: fmt.Errorf("send to queue %s: %w", q.queue, err)}
	}
	if len(body) > queues.MaxBody {
		if body, err = q.spill(ctx, event, len(body)); err != nil {
			return q.failed(err)
		}
	}
	if _, err := q.queues.Send(ctx, q.queue, body, 0); err != nil {
		return q.failed(err)
	}
	return nil
}

func (q *Queue) failed(err error) *DeliveryError {
	return &DeliveryError{
		Permanent: errors.Is(err, queues.ErrTooLarge) || errors.Is(err, queues.ErrInvalid),
		Err:       fmt.Errorf("send to queue %s: %w", q.queue, err),
	}
}

// spill writes the payload to a blob and returns the message that names it. The blob is written first, so that no
// message names a missing blob.
func (q *Queue) spill(ctx context.Context, event cloudEvent, size int) ([]byte, error) {
	if q.blobs == nil {
		return nil, fmt.Errorf("%w: the event %s has %d bytes of at most %d, and no blob store is configured",
			queues.ErrTooLarge, event.ID, size, queues.MaxBody)
	}
	data, name := event.Data, dataName(event)
	event.Data, event.DataRef = nil, DataContainer+"/"+name
	body, err := event.encode()
	if err != nil {
		return nil, err
	}
	if len(body) > queues.MaxBody {
		return nil, fmt.Errorf("%w: the event %s has %d bytes of at most %d without its payload",
			queues.ErrTooLarge, event.ID, len(body), queues.MaxBody)
	}
	err = q.blobs.Put(ctx, DataContainer, name, data)
	if errors.Is(err, blobs.ErrNotFound) {
		if err := q.blobs.CreateContainer(ctx, DataContainer); err != nil {
			return nil, fmt.Errorf("payload of event %s: %w", event.ID, err)
		}
		err = q.blobs.Put(ctx, DataContainer, name, data)
	}
	if err != nil {
		return nil, fmt.Errorf("payload of event %s: %w", event.ID, err)
	}
	return body, nil
}

// dataName returns a blob name that is the same in every attempt, and legal for any tenant id. Tenants and events do
// not share blobs, because a receiver may delete a blob after reading it.
func dataName(event cloudEvent) string {
	tenant := sha256.Sum256([]byte(event.TenantID))
	return hex.EncodeToString(tenant[:]) + "/" + event.ID
}

// isDataName reports whether dataName makes such names.
func isDataName(name string) bool {
	tenant, id, parts := strings.Cut(name, "/")
	key, err := uuid.Parse(id)
	return parts && len(tenant) == 2*sha256.Size && strings.Trim(tenant, "0123456789abcdef") == "" && err == nil && key.String() == id
}

// ReadData is for receivers: it reads the payload that the attribute dataref of a message names. Any other reference is
// an ErrDataRef, so that writers of messages cannot use it to read other blobs. Other errors are those of blobs.
func ReadData(ctx context.Context, store blobs.Store, dataref string) ([]byte, error) {
	name, ok := strings.CutPrefix(dataref, DataContainer+"/")
	if !ok || !isDataName(name) {
		return nil, fmt.Errorf("read payload %.128q: %w", dataref, ErrDataRef)
	}
	data, err := store.Get(ctx, DataContainer, name)
	if err != nil {
		return nil, fmt.Errorf("read payload %s: %w", dataref, err)
	}
	return data, nil
}
