package blobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/vibedata/roundhouse/internal/account"
)

// tryTimeout bounds one try: MaxSize at about 1 MiB a second.
const tryTimeout = time.Minute

// Azure is a Store in Azure Blob Storage or its emulator. A request without an answer, or with a "busy" one, is sent
// up to three times more within some seconds; all operations may be repeated.
type Azure struct {
	service *service.Client
}

var _ Store = (*Azure)(nil)

// NewAzure makes a Store for an account. It sends nothing yet.
func NewAzure(a account.Account) (*Azure, error) {
	options := &azblob.ClientOptions{ClientOptions: a.ClientOptions(tryTimeout)}
	client, err := newClient(a, options)
	if err != nil {
		return nil, fmt.Errorf("blobs of %v: %w", a, err)
	}
	return &Azure{service: client.ServiceClient()}, nil
}

func newClient(a account.Account, options *azblob.ClientOptions) (*azblob.Client, error) {
	if name, key, ok := a.SharedKey(); ok {
		credential, err := azblob.NewSharedKeyCredential(name, key)
		if err != nil {
			return nil, errors.New("the account key is not base64")
		}
		return azblob.NewClientWithSharedKeyCredential(a.BlobEndpoint, credential, options)
	}
	return azblob.NewClient(a.BlobEndpoint, a.Credential, options)
}

// CreateContainer makes sure that a container exists. One that is being deleted is an ErrThrottled.
func (a *Azure) CreateContainer(ctx context.Context, container string) error {
	err := cmp.Or(ctx.Err(), account.CheckName("container", container))
	if err == nil {
		_, err = a.service.NewContainerClient(container).Create(ctx, nil)
		err = account.Classify(ctx, err)
	}
	if err != nil && !errors.Is(err, account.ErrExists) {
		return fmt.Errorf("create container %.64s: %w", container, err)
	}
	return nil
}

// Put writes a blob.
func (a *Azure) Put(ctx context.Context, container, name string, data []byte) error {
	if err := a.put(ctx, container, name, data, nil); err != nil {
		return fmt.Errorf("put blob %s/%s: %w", container, name, err)
	}
	return nil
}

// PutIf writes a blob if its ETag is still this one.
func (a *Azure) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	condition := &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(etag))}
	if etag == "" {
		condition = &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}
	}
	err := a.put(ctx, container, name, data, &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition}})
	if missing, ok := errors.AsType[*account.Failure](err); ok && (missing.Kind == account.ErrExists || missing.Code == "BlobNotFound") {
		// The service has three answers for one thing: somebody else was faster.
		err = fmt.Errorf("%w: %w", ErrPrecondition, account.Answer(http.StatusPreconditionFailed, missing.Code))
	}
	if err != nil {
		return fmt.Errorf("put blob %s/%s if unchanged: %w", container, name, err)
	}
	return nil
}

func (a *Azure) put(ctx context.Context, container, name string, data []byte, options *blockblob.UploadOptions) error {
	if err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(name), checkSize(int64(len(data)))); err != nil {
		return err
	}
	client := a.service.NewContainerClient(container).NewBlockBlobClient(name)
	_, err := client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), options)
	return account.Classify(ctx, err)
}

// Get reads a blob.
func (a *Azure) Get(ctx context.Context, container, name string) ([]byte, error) {
	data, err := a.get(ctx, container, name)
	if err != nil {
		return nil, fmt.Errorf("get blob %s/%s: %w", container, name, err)
	}
	return data, nil
}

func (a *Azure) get(ctx context.Context, container, name string) ([]byte, error) {
	if err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(name)); err != nil {
		return nil, err
	}
	answer, err := a.service.NewContainerClient(container).NewBlobClient(name).DownloadStream(ctx, nil)
	if err != nil {
		return nil, account.Classify(ctx, err)
	}
	body := answer.NewRetryReader(ctx, nil)
	data, err := readBounded(body, answer.ContentLength)
	return data, errors.Join(err, body.Close())
}

// readBounded does not trust the length that the answer names.
func readBounded(body io.Reader, length *int64) ([]byte, error) {
	var buffer bytes.Buffer
	if length != nil {
		if err := checkSize(*length); err != nil {
			return nil, err
		}
		buffer.Grow(int(max(*length, 0)) + bytes.MinRead)
	}
	if _, err := buffer.ReadFrom(io.LimitReader(body, MaxSize+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	if err := checkSize(int64(buffer.Len())); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// Delete removes a blob; a missing one is not an error, nor is a missing container.
func (a *Azure) Delete(ctx context.Context, container, name string) error {
	err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(name))
	if err == nil {
		_, err = a.service.NewContainerClient(container).NewBlobClient(name).Delete(ctx, nil)
		err = account.Classify(ctx, err)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete blob %s/%s: %w", container, name, err)
	}
	return nil
}

// DeleteVersion removes a blob that is still that version.
func (a *Azure) DeleteVersion(ctx context.Context, container string, v Version) error {
	err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(v.Name))
	if err == nil {
		same := &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"` + v.ETag + `"`))}
		_, err = a.service.NewContainerClient(container).NewBlobClient(v.Name).Delete(ctx,
			&blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: same}})
		err = account.Classify(ctx, err)
	}
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrPrecondition, err) // the emulator says so itself
	}
	if err != nil {
		return fmt.Errorf("delete old blob %s/%s: %w", container, v.Name, err)
	}
	return nil
}

// List gives one page of the names that begin with prefix, in the service's order, with one request. Names that other
// programs gave may break the rules of a Store.
func (a *Azure) List(ctx context.Context, container, prefix, continuation string) ([]string, string, error) {
	items, next, err := a.list(ctx, position{Container: container, Prefix: prefix}, continuation)
	if err != nil {
		return nil, "", fmt.Errorf("list blobs %s/%s: %w", container, prefix, err)
	}
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = *item.Name
	}
	return names, next, nil
}

// ListOld gives those of one page of blobs that were written last before a time, with one request. A blob whose time
// the service does not tell is not old.
func (a *Azure) ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) ([]Version, string, error) {
	items, next, err := a.list(ctx, position{Container: container, Prefix: prefix, Old: true}, continuation)
	if err != nil {
		return nil, "", fmt.Errorf("list old blobs %s/%s: %w", container, prefix, err)
	}
	var old []Version
	for _, item := range items {
		if p := item.Properties; p != nil && p.ETag != nil && p.LastModified != nil && p.LastModified.Before(before) {
			old = append(old, Version{*item.Name, strings.Trim(string(*p.ETag), `"`)}) // lists leave the quotes out, or not
		}
	}
	return old, next, nil
}

func (a *Azure) list(ctx context.Context, first position, continuation string) ([]*container.BlobItem, string, error) {
	if err := cmp.Or(ctx.Err(), account.CheckName("container", first.Container), checkPrefix(first.Prefix)); err != nil {
		return nil, "", err
	}
	at, err := first.resume(continuation)
	if err != nil {
		return nil, "", err
	}
	options := &azblob.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(maxPage))}
	if first.Prefix != "" {
		options.Prefix = &first.Prefix
	}
	if at.Marker != "" {
		options.Marker = &at.Marker
	}
	page, err := a.service.NewContainerClient(first.Container).NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return nil, "", account.Classify(ctx, err)
	}
	at.Marker = ""
	if page.NextMarker != nil {
		at.Marker = *page.NextMarker
	}
	items, err := itemsOf(page)
	return items, at.continuation(), err
}

// itemsOf reads a page. An answer that is cut or of another form must not pass for an empty list.
func itemsOf(page azblob.ListBlobsFlatResponse) ([]*container.BlobItem, error) {
	if page.Segment == nil {
		return nil, fmt.Errorf("%w: the answer holds no list", ErrOutcomeUnknown)
	}
	for _, item := range page.Segment.BlobItems {
		if item == nil || item.Name == nil {
			return nil, fmt.Errorf("%w: the answer holds a blob without a name", ErrOutcomeUnknown)
		}
	}
	return page.Segment.BlobItems, nil
}
