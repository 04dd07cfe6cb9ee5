package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/vibedata/roundhouse/internal/account"
)

// tryTimeout bounds one try; a page of 1,000 large rows takes a few seconds at most.
const tryTimeout = 10 * time.Second

// Azure is a Store in Azure Table Storage or its emulator. A request without an answer, or with a "busy" one, is sent
// up to three times more within some seconds. So an insert may report ErrExists, and a replace or delete with an ETag
// ErrPrecondition or ErrNotFound, for what its own first try did: read before concluding.
type Azure struct {
	service *aztables.ServiceClient
}

var _ Store = (*Azure)(nil)

// NewAzure makes a Store for an account. It sends nothing yet.
func NewAzure(a account.Account) (*Azure, error) {
	options := &aztables.ClientOptions{ClientOptions: a.ClientOptions(tryTimeout)}
	options.PerCallPolicies = append(options.PerCallPolicies, readTransaction{})
	if a.Emulator {
		options.PerCallPolicies = append(options.PerCallPolicies, asciiJSON{})
	}
	service, err := newService(a, options)
	if err != nil {
		return nil, fmt.Errorf("tables of %v: %w", a, err)
	}
	return &Azure{service: service}, nil
}

func newService(a account.Account, options *aztables.ClientOptions) (*aztables.ServiceClient, error) {
	if name, key, ok := a.SharedKey(); ok {
		credential, err := aztables.NewSharedKeyCredential(name, key)
		if err != nil {
			return nil, errors.New("the account key is not base64")
		}
		return aztables.NewServiceClientWithSharedKey(a.TableEndpoint, credential, options)
	}
	return aztables.NewServiceClient(a.TableEndpoint, a.Credential, options)
}

// CreateTable makes sure that a table exists. A table that is being deleted is an ErrThrottled.
func (a *Azure) CreateTable(ctx context.Context, table string) error {
	err := cmp.Or(ctx.Err(), checkTable(table))
	if err == nil {
		_, err = a.service.CreateTable(ctx, table, nil)
		err = account.Classify(ctx, err)
	}
	if err != nil && !errors.Is(err, ErrExists) {
		return fmt.Errorf("create table %s: %w", clip(table), err)
	}
	return nil
}

// Get reads one entity.
func (a *Azure) Get(ctx context.Context, table string, key Key) (Entity, error) {
	e, err := a.get(ctx, table, key)
	if err != nil {
		return Entity{}, fmt.Errorf("get %s %s: %w", table, key, err)
	}
	return e, nil
}

func (a *Azure) get(ctx context.Context, table string, key Key) (Entity, error) {
	if err := cmp.Or(ctx.Err(), checkTable(table), checkKey(key)); err != nil {
		return Entity{}, err
	}
	format := aztables.MetadataFormatMinimal
	var answer *http.Response
	_, err := a.service.NewClient(table).GetEntity(policy.WithCaptureResponse(ctx, &answer), key.Partition, key.Row,
		&aztables.GetEntityOptions{Format: &format})
	if err != nil {
		return Entity{}, account.Classify(ctx, err)
	}
	body, err := payload(answer)
	if err != nil {
		return Entity{}, err
	}
	return decodeEntity(body)
}

// Query reads one page.
func (a *Azure) Query(ctx context.Context, table string, q Query) (Page, error) {
	page, err := a.list(ctx, table, q.lookup())
	if err != nil {
		return Page{}, fmt.Errorf("query %s %s: %w", table, clip(q.Partition), err)
	}
	return page, nil
}

// Scan reads one page over many partitions.
func (a *Azure) Scan(ctx context.Context, table string, s Scan) (Page, error) {
	page, err := a.list(ctx, table, s.lookup())
	if err != nil {
		return Page{}, fmt.Errorf("scan %s for %s: %w", table, clip(s.Row), err)
	}
	return page, nil
}

func (a *Azure) list(ctx context.Context, table string, l *lookup) (Page, error) {
	if err := cmp.Or(ctx.Err(), checkTable(table), checkLookup(l)); err != nil {
		return Page{}, err
	}
	options, err := listOptions(l)
	if err != nil {
		return Page{}, err
	}
	var answer *http.Response
	pager := a.service.NewClient(table).NewListEntitiesPager(options)
	list, err := pager.NextPage(policy.WithCaptureResponse(ctx, &answer))
	if err != nil {
		return Page{}, account.Classify(ctx, err)
	}
	body, err := payload(answer)
	if err != nil {
		return Page{}, err
	}
	entities, err := decodeEntities(body)
	if err != nil {
		return Page{}, err
	}
	page := Page{Entities: entities}
	if pager.More() {
		page.Next = l.next(deref(list.NextPartitionKey), deref(list.NextRowKey))
	}
	return page, nil
}

func listOptions(l *lookup) (*aztables.ListEntitiesOptions, error) {
	next, err := l.resume()
	if err != nil {
		return nil, err
	}
	format := aztables.MetadataFormatMinimal
	expression := filter(l)
	limit := int32(l.pageLimit())
	options := &aztables.ListEntitiesOptions{Filter: &expression, Top: &limit, Format: &format,
		NextPartitionKey: ref(next.Partition), NextRowKey: ref(next.Row)}
	if len(l.selected) > 0 {
		// The ETag is made of the timestamp, and the keys are part of every Entity.
		selected := strings.Join(append([]string{"PartitionKey", "RowKey", "Timestamp"}, l.selected...), ",")
		options.Select = &selected
	}
	return options, nil
}

// Apply applies all operations or none.
func (a *Azure) Apply(ctx context.Context, table string, ops ...Op) error {
	if err := a.apply(ctx, table, ops); err != nil {
		return fmt.Errorf("apply to %s: %w", table, err)
	}
	return nil
}

func (a *Azure) apply(ctx context.Context, table string, ops []Op) error {
	if err := cmp.Or(ctx.Err(), checkTable(table), checkApply(ops)); err != nil {
		return err
	}
	client := a.service.NewClient(table)
	if len(ops) > 1 {
		return transact(ctx, client, ops)
	}
	err := account.Classify(ctx, applyOne(ctx, client, &ops[0]))
	return blame(err, 0, ops)
}

func applyOne(ctx context.Context, client *aztables.Client, op *Op) error {
	if op.Kind == OpDelete {
		_, err := client.DeleteEntity(ctx, op.Entity.Partition, op.Entity.Row, &aztables.DeleteEntityOptions{IfMatch: etag(op)})
		return err
	}
	body, err := encodeEntity(&op.Entity)
	if err != nil {
		return err
	}
	switch op.Kind {
	case OpInsert:
		// Without this the service sends the whole entity back.
		quiet := policy.WithHTTPHeader(ctx, http.Header{"Prefer": {"return-no-content"}})
		_, err = client.AddEntity(quiet, body, nil)
	case OpReplace:
		_, err = client.UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{IfMatch: etag(op), UpdateMode: aztables.UpdateModeReplace})
	case OpUpsert:
		_, err = client.UpsertEntity(ctx, body, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	}
	return err
}

// blame makes an *OpError of a failure that is one operation's fault.
func blame(err error, index int, ops []Op) error {
	f, ok := errors.AsType[*account.Failure](err)
	if !ok || f.Code == "TableNotFound" || index < 0 || index >= len(ops) {
		return err
	}
	switch f.Kind {
	case ErrExists, ErrNotFound, ErrPrecondition, ErrTooLarge, ErrInvalid:
		return &OpError{Index: index, Key: ops[index].Entity.Key, Err: err}
	}
	return err
}

// etag is the condition of a replace or delete.
func etag(op *Op) *azcore.ETag {
	condition := azcore.ETagAny
	if op.Entity.ETag != "" {
		condition = azcore.ETag(op.Entity.ETag)
	}
	return &condition
}

// payload is the answer as it came. The SDK's own copy has gone through a map of float64, where 5.0 became 5.
func payload(answer *http.Response) ([]byte, error) {
	if answer == nil {
		return nil, fmt.Errorf("%w: the answer was not captured", ErrOutcomeUnknown)
	}
	body, err := runtime.Payload(answer)
	if err != nil {
		return nil, fmt.Errorf("%w: read the answer: %w", ErrOutcomeUnknown, err)
	}
	return body, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func ref(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
