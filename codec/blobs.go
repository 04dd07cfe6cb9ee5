package codec

import (
	"context"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/blobs"
)

// Blobs encrypts the blobs of Containers. List, Delete and the comparison of versions work as on store: names and
// versions stay as they are.
func (c Config) Blobs(store blobs.Store) blobs.Store {
	return &blobStore{store, c}
}

type blobStore struct {
	blobs.Store
	config Config
}

func (s *blobStore) Put(ctx context.Context, container, name string, data []byte) error {
	sealed, err := s.seal(ctx, container, name, data)
	if err != nil {
		return err
	}
	return s.Store.Put(ctx, container, name, sealed)
}

func (s *blobStore) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	sealed, err := s.seal(ctx, container, name, data)
	if err != nil {
		return err
	}
	return s.Store.PutIf(ctx, container, name, sealed, etag)
}

func (s *blobStore) seal(ctx context.Context, container, name string, data []byte) ([]byte, error) {
	if s.config.ReadOnly || !slices.Contains(s.config.Containers, container) {
		return data, nil
	}
	if err := blobs.CheckSize(int64(len(data))); err != nil { // refuse the sizes that the plain store refuses
		return nil, fmt.Errorf("put %s/%s: %w", container, name, err)
	}
	sealed, err := s.config.Codec.Encode(ctx, squeeze(data, deflateBlobFrom), blobPlace(container, name))
	if err != nil {
		return nil, fmt.Errorf("put %s/%s: %w", container, name, err)
	}
	return frame(sealed), nil
}

func (s *blobStore) Get(ctx context.Context, container, name string) ([]byte, error) {
	data, err := s.Store.Get(ctx, container, name)
	if err != nil || !slices.Contains(s.config.Containers, container) || !framed(data) {
		return data, err
	}
	plain, err := s.config.Codec.Decode(ctx, unframe(data), blobPlace(container, name))
	if err == nil {
		plain, err = expand(plain)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s/%s: %w", container, name, err)
	}
	return plain, nil
}

func blobPlace(container, name string) string { return "blob " + container + "/" + name }
