package outage

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/blobs"
)

// probeContainer is read to check whether blobs answer. It does not exist.
const probeContainer = "outage-probe"

// Blobs wraps s with the waiting of this package.
func Blobs(s blobs.Store, c Config) blobs.Store {
	return blobStore{s, newWatch("blobs", c, func(ctx context.Context) error {
		_, err := s.Get(ctx, probeContainer, "probe")
		return err
	})}
}

type blobStore struct {
	inner blobs.Store
	watch *watch
}

func (s blobStore) CreateContainer(ctx context.Context, container string) error {
	return s.watch.do(ctx, func(ctx context.Context) error { return s.inner.CreateContainer(ctx, container) })
}

func (s blobStore) Put(ctx context.Context, container, name string, data []byte) error {
	return s.watch.make(ctx, kind{bulk: true}, func(ctx context.Context) error { return s.inner.Put(ctx, container, name, data) })
}

func (s blobStore) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	return s.watch.make(ctx, kind{bulk: true}, func(ctx context.Context) error { return s.inner.PutIf(ctx, container, name, data, etag) })
}

func (s blobStore) Get(ctx context.Context, container, name string) (data []byte, err error) {
	err = s.watch.make(ctx, kind{bulk: true}, func(ctx context.Context) error { data, err = s.inner.Get(ctx, container, name); return err })
	return data, err
}

func (s blobStore) Delete(ctx context.Context, container, name string) error {
	return s.watch.do(ctx, func(ctx context.Context) error { return s.inner.Delete(ctx, container, name) })
}

func (s blobStore) List(ctx context.Context, container, prefix, continuation string) (names []string, next string, err error) {
	err = s.watch.make(ctx, kind{bulk: true}, func(ctx context.Context) error {
		names, next, err = s.inner.List(ctx, container, prefix, continuation)
		return err
	})
	return names, next, err
}

func (s blobStore) ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) (old []blobs.Version, next string, err error) {
	err = s.watch.make(ctx, kind{bulk: true}, func(ctx context.Context) error {
		old, next, err = s.inner.ListOld(ctx, container, prefix, before, continuation)
		return err
	})
	return old, next, err
}

func (s blobStore) DeleteVersion(ctx context.Context, container string, v blobs.Version) error {
	return s.watch.do(ctx, func(ctx context.Context) error { return s.inner.DeleteVersion(ctx, container, v) })
}
