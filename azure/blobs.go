package azure

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

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/storage"
)

// blobTryTimeout bounds one try: blobs.MaxSize at about 1 MiB a second.
const blobTryTimeout = time.Minute

// Blobs is a blobs.Store in Azure Blob Storage or its emulator. A request without an answer, or with a "busy" one, is
// sent up to three times more within some seconds; all operations may be repeated.
type Blobs struct {
	service *service.Client
}

var _ blobs.Store = (*Blobs)(nil)

// NewBlobs returns a blobs.Store for an account. It sends no request yet.
func NewBlobs(a Account) (*Blobs, error) {
	options := &azblob.ClientOptions{ClientOptions: a.ClientOptions(blobTryTimeout)}
	client, err := newBlobClient(a, options)
	if err != nil {
		return nil, fmt.Errorf("blobs of %v: %w", a, err)
	}
	return &Blobs{service: client.ServiceClient()}, nil
}

func newBlobClient(a Account, options *azblob.ClientOptions) (*azblob.Client, error) {
	if name, key, ok := a.SharedKey(); ok {
		credential, err := azblob.NewSharedKeyCredential(name, key)
		if err != nil {
			return nil, errors.New("the account key is not base64")
		}
		return azblob.NewClientWithSharedKeyCredential(a.BlobEndpoint, credential, options)
	}
	return azblob.NewClient(a.BlobEndpoint, a.Credential, options)
}

// CreateContainer creates a container if it is missing. A container that is being deleted is a blobs.ErrThrottled.
func (a *Blobs) CreateContainer(ctx context.Context, container string) error {
	err := cmp.Or(ctx.Err(), blobs.CheckContainer(container))
	if err == nil {
		_, err = a.service.NewContainerClient(container).Create(ctx, nil)
		err = classify(ctx, err)
	}
	if err != nil && !errors.Is(err, storage.ErrExists) {
		return fmt.Errorf("create container %.64s: %w", container, err)
	}
	return nil
}

// Put writes a blob.
func (a *Blobs) Put(ctx context.Context, container, name string, data []byte) error {
	if err := a.put(ctx, container, name, data, nil); err != nil {
		return fmt.Errorf("put blob %s/%s: %w", container, name, err)
	}
	return nil
}

// PutIf writes a blob if it still has this ETag.
func (a *Blobs) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	condition := &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(etag))}
	if etag == "" {
		condition = &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}
	}
	err := a.put(ctx, container, name, data, &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition}})
	if missing, ok := errors.AsType[*failure](err); ok && (missing.Kind == storage.ErrExists || missing.Code == "BlobNotFound") {
		// The service has three answers for a lost race.
		err = fmt.Errorf("%w: %w", blobs.ErrPrecondition, failureOf(http.StatusPreconditionFailed, missing.Code))
	}
	if err != nil {
		return fmt.Errorf("put blob %s/%s if unchanged: %w", container, name, err)
	}
	return nil
}

func (a *Blobs) put(ctx context.Context, container, name string, data []byte, options *blockblob.UploadOptions) error {
	if err := cmp.Or(ctx.Err(), blobs.CheckContainer(container), blobs.CheckName(name), blobs.CheckSize(int64(len(data)))); err != nil {
		return err
	}
	client := a.service.NewContainerClient(container).NewBlockBlobClient(name)
	_, err := client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), options)
	return classify(ctx, err)
}

// Get reads a blob.
func (a *Blobs) Get(ctx context.Context, container, name string) ([]byte, error) {
	data, err := a.get(ctx, container, name)
	if err != nil {
		return nil, fmt.Errorf("get blob %s/%s: %w", container, name, err)
	}
	return data, nil
}

func (a *Blobs) get(ctx context.Context, container, name string) ([]byte, error) {
	if err := cmp.Or(ctx.Err(), blobs.CheckContainer(container), blobs.CheckName(name)); err != nil {
		return nil, err
	}
	answer, err := a.service.NewContainerClient(container).NewBlobClient(name).DownloadStream(ctx, nil)
	if err != nil {
		return nil, classify(ctx, err)
	}
	body := answer.NewRetryReader(ctx, nil)
	data, err := readBounded(body, answer.ContentLength)
	return data, errors.Join(err, body.Close())
}

// readBounded does not trust the length in the answer.
func readBounded(body io.Reader, length *int64) ([]byte, error) {
	var buffer bytes.Buffer
	if length != nil {
		if err := blobs.CheckSize(*length); err != nil {
			return nil, err
		}
		buffer.Grow(int(max(*length, 0)) + bytes.MinRead)
	}
	if _, err := buffer.ReadFrom(io.LimitReader(body, blobs.MaxSize+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", blobs.ErrOutcomeUnknown, err)
	}
	if err := blobs.CheckSize(int64(buffer.Len())); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// Delete removes a blob. A missing blob or container is not an error.
func (a *Blobs) Delete(ctx context.Context, container, name string) error {
	err := cmp.Or(ctx.Err(), blobs.CheckContainer(container), blobs.CheckName(name))
	if err == nil {
		_, err = a.service.NewContainerClient(container).NewBlobClient(name).Delete(ctx, nil)
		err = classify(ctx, err)
	}
	if err != nil && !errors.Is(err, blobs.ErrNotFound) {
		return fmt.Errorf("delete blob %s/%s: %w", container, name, err)
	}
	return nil
}

// DeleteVersion removes a blob that still has this version.
func (a *Blobs) DeleteVersion(ctx context.Context, container string, v blobs.Version) error {
	err := cmp.Or(ctx.Err(), blobs.CheckContainer(container), blobs.CheckName(v.Name))
	if err == nil {
		same := &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"` + v.ETag + `"`))}
		_, err = a.service.NewContainerClient(container).NewBlobClient(v.Name).Delete(ctx,
			&blob.DeleteOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: same}})
		err = classify(ctx, err)
	}
	if errors.Is(err, blobs.ErrNotFound) {
		err = fmt.Errorf("%w: %w", blobs.ErrPrecondition, err) // the emulator returns it itself
	}
	if err != nil {
		return fmt.Errorf("delete old blob %s/%s: %w", container, v.Name, err)
	}
	return nil
}

// List returns one page of the names that begin with prefix, in the service's order, with one request. Names from other
// programs may break the rules of a blobs.Store.
func (a *Blobs) List(ctx context.Context, container, prefix, continuation string) ([]string, string, error) {
	items, next, err := a.list(ctx, blobs.Listing{Container: container, Prefix: prefix}, continuation)
	if err != nil {
		return nil, "", fmt.Errorf("list blobs %s/%s: %w", container, prefix, err)
	}
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = *item.Name
	}
	return names, next, nil
}

// ListOld returns those blobs of one page that were last written before a time, with one request. A blob for which the
// service returns no time is not old.
func (a *Blobs) ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) ([]blobs.Version, string, error) {
	items, next, err := a.list(ctx, blobs.Listing{Container: container, Prefix: prefix, Old: true}, continuation)
	if err != nil {
		return nil, "", fmt.Errorf("list old blobs %s/%s: %w", container, prefix, err)
	}
	var old []blobs.Version
	for _, item := range items {
		if p := item.Properties; p != nil && p.ETag != nil && p.LastModified != nil && p.LastModified.Before(before) {
			old = append(old, blobs.Version{Name: *item.Name, ETag: strings.Trim(string(*p.ETag), `"`)}) // lists may quote ETags
		}
	}
	return old, next, nil
}

func (a *Blobs) list(ctx context.Context, first blobs.Listing, continuation string) ([]*container.BlobItem, string, error) {
	if err := cmp.Or(ctx.Err(), blobs.CheckContainer(first.Container), blobs.CheckPrefix(first.Prefix)); err != nil {
		return nil, "", err
	}
	at, err := first.Resume(continuation)
	if err != nil {
		return nil, "", err
	}
	options := &azblob.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(blobs.MaxPage))}
	if first.Prefix != "" {
		options.Prefix = &first.Prefix
	}
	if at.Marker != "" {
		options.Marker = &at.Marker
	}
	page, err := a.service.NewContainerClient(first.Container).NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return nil, "", classify(ctx, err)
	}
	at.Marker = ""
	if page.NextMarker != nil {
		at.Marker = *page.NextMarker
	}
	items, err := itemsOf(page)
	return items, at.Continuation(), err
}

// itemsOf reads a page. A cut or malformed answer must not pass for an empty list.
func itemsOf(page azblob.ListBlobsFlatResponse) ([]*container.BlobItem, error) {
	if page.Segment == nil {
		return nil, fmt.Errorf("%w: the answer holds no list", blobs.ErrOutcomeUnknown)
	}
	for _, item := range page.Segment.BlobItems {
		if item == nil || item.Name == nil {
			return nil, fmt.Errorf("%w: the answer holds a blob without a name", blobs.ErrOutcomeUnknown)
		}
	}
	return page.Segment.BlobItems, nil
}
