package azure

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

	"github.com/vibedata/roundhouse/tables"
)

// tableTryTimeout bounds one try; a page of 1,000 large rows takes a few seconds at most.
const tableTryTimeout = 10 * time.Second

// Tables is a tables.Store in Azure Table Storage or its emulator. A request without an answer, or with a "busy" one,
// is sent up to three times more within some seconds. So after its own first try succeeded, an insert may return
// tables.ErrExists, and a replace or delete with an ETag tables.ErrPrecondition or tables.ErrNotFound. Read the entity
// before you draw a conclusion.
type Tables struct {
	service *aztables.ServiceClient
}

var _ tables.Store = (*Tables)(nil)

// NewTables returns a tables.Store for an account. It sends no request yet.
func NewTables(a Account) (*Tables, error) {
	options := &aztables.ClientOptions{ClientOptions: a.ClientOptions(tableTryTimeout)}
	options.PerCallPolicies = append(options.PerCallPolicies, readTransaction{})
	if a.Emulator {
		options.PerCallPolicies = append(options.PerCallPolicies, asciiJSON{})
	}
	service, err := newTableService(a, options)
	if err != nil {
		return nil, fmt.Errorf("tables of %v: %w", a, err)
	}
	return &Tables{service: service}, nil
}

func newTableService(a Account, options *aztables.ClientOptions) (*aztables.ServiceClient, error) {
	if name, key, ok := a.SharedKey(); ok {
		credential, err := aztables.NewSharedKeyCredential(name, key)
		if err != nil {
			return nil, errors.New("the account key is not base64")
		}
		return aztables.NewServiceClientWithSharedKey(a.TableEndpoint, credential, options)
	}
	return aztables.NewServiceClient(a.TableEndpoint, a.Credential, options)
}

// CreateTable creates a table if it is missing. A table that is being deleted is a tables.ErrThrottled.
func (a *Tables) CreateTable(ctx context.Context, table string) error {
	err := cmp.Or(ctx.Err(), tables.CheckTable(table))
	if err == nil {
		_, err = a.service.CreateTable(ctx, table, nil)
		err = classify(ctx, err)
	}
	if err != nil && !errors.Is(err, tables.ErrExists) {
		return fmt.Errorf("create table %.64s: %w", table, err)
	}
	return nil
}

// Get reads one entity.
func (a *Tables) Get(ctx context.Context, table string, key tables.Key) (tables.Entity, error) {
	e, err := a.get(ctx, table, key)
	if err != nil {
		return tables.Entity{}, fmt.Errorf("get %s %s: %w", table, key, err)
	}
	return e, nil
}

func (a *Tables) get(ctx context.Context, table string, key tables.Key) (tables.Entity, error) {
	if err := cmp.Or(ctx.Err(), tables.CheckTable(table), tables.CheckKey(key)); err != nil {
		return tables.Entity{}, err
	}
	format := aztables.MetadataFormatMinimal
	var answer *http.Response
	_, err := a.service.NewClient(table).GetEntity(policy.WithCaptureResponse(ctx, &answer), key.Partition, key.Row,
		&aztables.GetEntityOptions{Format: &format})
	if err != nil {
		return tables.Entity{}, classify(ctx, err)
	}
	body, err := payload(answer)
	if err != nil {
		return tables.Entity{}, err
	}
	return decodeEntity(body)
}

// Query reads one page.
func (a *Tables) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	page, err := a.list(ctx, table, q.Lookup())
	if err != nil {
		return tables.Page{}, fmt.Errorf("query %s %.64s: %w", table, q.Partition, err)
	}
	return page, nil
}

// Scan reads one page over many partitions.
func (a *Tables) Scan(ctx context.Context, table string, s tables.Scan) (tables.Page, error) {
	page, err := a.list(ctx, table, s.Lookup())
	if err != nil {
		return tables.Page{}, fmt.Errorf("scan %s for %.64s: %w", table, s.Row, err)
	}
	return page, nil
}

func (a *Tables) list(ctx context.Context, table string, l *tables.Lookup) (tables.Page, error) {
	if err := cmp.Or(ctx.Err(), tables.CheckTable(table), l.Check()); err != nil {
		return tables.Page{}, err
	}
	options, err := listOptions(l)
	if err != nil {
		return tables.Page{}, err
	}
	var answer *http.Response
	pager := a.service.NewClient(table).NewListEntitiesPager(options)
	list, err := pager.NextPage(policy.WithCaptureResponse(ctx, &answer))
	if err != nil {
		return tables.Page{}, classify(ctx, err)
	}
	body, err := payload(answer)
	if err != nil {
		return tables.Page{}, err
	}
	entities, err := decodeEntities(body)
	if err != nil {
		return tables.Page{}, err
	}
	page := tables.Page{Entities: entities}
	if pager.More() {
		page.Next = l.Next(deref(list.NextPartitionKey), deref(list.NextRowKey))
	}
	return page, nil
}

func listOptions(l *tables.Lookup) (*aztables.ListEntitiesOptions, error) {
	partition, row, err := l.Resume()
	if err != nil {
		return nil, err
	}
	format := aztables.MetadataFormatMinimal
	expression := filter(l)
	limit := int32(l.Limit)
	options := &aztables.ListEntitiesOptions{Filter: &expression, Top: &limit, Format: &format,
		NextPartitionKey: ref(partition), NextRowKey: ref(row)}
	if len(l.Select) > 0 {
		// The ETag is derived from the timestamp, and the keys are part of every Entity.
		selected := strings.Join(append([]string{"PartitionKey", "RowKey", "Timestamp"}, l.Select...), ",")
		options.Select = &selected
	}
	return options, nil
}

// Apply applies all operations or none.
func (a *Tables) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	if err := a.apply(ctx, table, ops); err != nil {
		return fmt.Errorf("apply to %s: %w", table, err)
	}
	return nil
}

func (a *Tables) apply(ctx context.Context, table string, ops []tables.Op) error {
	if err := cmp.Or(ctx.Err(), tables.CheckTable(table), tables.CheckOps(ops)); err != nil {
		return err
	}
	client := a.service.NewClient(table)
	if len(ops) > 1 {
		return transact(ctx, client, ops)
	}
	err := classify(ctx, applyOne(ctx, client, &ops[0]))
	return blame(err, 0, ops)
}

func applyOne(ctx context.Context, client *aztables.Client, op *tables.Op) error {
	if op.Kind == tables.OpDelete {
		_, err := client.DeleteEntity(ctx, op.Entity.Partition, op.Entity.Row, &aztables.DeleteEntityOptions{IfMatch: etag(op)})
		return err
	}
	body, err := encodeEntity(&op.Entity)
	if err != nil {
		return err
	}
	switch op.Kind {
	case tables.OpInsert:
		// Without this header the service returns the whole entity.
		quiet := policy.WithHTTPHeader(ctx, http.Header{"Prefer": {"return-no-content"}})
		_, err = client.AddEntity(quiet, body, nil)
	case tables.OpReplace:
		_, err = client.UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{IfMatch: etag(op), UpdateMode: aztables.UpdateModeReplace})
	case tables.OpUpsert:
		_, err = client.UpsertEntity(ctx, body, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	}
	return err
}

// blame makes a *tables.OpError of a failure that one operation caused.
func blame(err error, index int, ops []tables.Op) error {
	f, ok := errors.AsType[*failure](err)
	if !ok || f.Code == "TableNotFound" || index < 0 || index >= len(ops) {
		return err
	}
	switch f.Kind {
	case tables.ErrExists, tables.ErrNotFound, tables.ErrPrecondition, tables.ErrTooLarge, tables.ErrInvalid:
		return &tables.OpError{Index: index, Key: ops[index].Entity.Key, Err: err}
	}
	return err
}

// etag returns the condition of a replace or delete.
func etag(op *tables.Op) *azcore.ETag {
	condition := azcore.ETagAny
	if op.Entity.ETag != "" {
		condition = azcore.ETag(op.Entity.ETag)
	}
	return &condition
}

// payload returns the original answer. The SDK's own copy has gone through a map of float64, where 5.0 became 5.
func payload(answer *http.Response) ([]byte, error) {
	if answer == nil {
		return nil, fmt.Errorf("%w: the answer was not captured", tables.ErrOutcomeUnknown)
	}
	body, err := runtime.Payload(answer)
	if err != nil {
		return nil, fmt.Errorf("%w: read the answer: %w", tables.ErrOutcomeUnknown, err)
	}
	return body, nil
}

func ref(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
