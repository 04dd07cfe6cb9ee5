package blobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
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
	err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(name), checkSize(int64(len(data))))
	if err == nil {
		client := a.service.NewContainerClient(container).NewBlockBlobClient(name)
		_, err = client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), nil)
		err = account.Classify(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("put blob %s/%s: %w", container, name, err)
	}
	return nil
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
