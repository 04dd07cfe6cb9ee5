package blobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a Store in memory with the service's promises and limits, for tests, simulations and benchmarks. Make one
// with NewMemory.
type Memory struct {
	// Now is the clock, time.Now when nil.
	Now func() time.Time

	mu         sync.RWMutex
	containers map[string]map[string]storedBlob
	puts       int // number of writes so far
	// pageLimit is the most names of a page; tests of paging make it small.
	pageLimit int
}

var _ Store = (*Memory)(nil)

// storedBlob is a blob with its metadata.
type storedBlob struct {
	data    []byte
	etag    string
	written time.Time
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{containers: map[string]map[string]storedBlob{}, pageLimit: MaxPage}
}

func (m *Memory) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

// CreateContainer creates a container if it is missing.
func (m *Memory) CreateContainer(ctx context.Context, container string) error {
	if err := cmp.Or(ctx.Err(), CheckContainer(container)); err != nil {
		return fmt.Errorf("create container %.64s: %w", container, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[container] == nil {
		m.containers[container] = map[string]storedBlob{}
	}
	return nil
}

// Put writes a blob.
func (m *Memory) Put(ctx context.Context, container, name string, data []byte) error {
	if err := m.put(ctx, container, name, data, func(string) bool { return true }); err != nil {
		return fmt.Errorf("put blob %s/%s: %w", container, name, err)
	}
	return nil
}

// PutIf writes a blob if it still has this ETag.
func (m *Memory) PutIf(ctx context.Context, container, name string, data []byte, etag string) error {
	if err := m.put(ctx, container, name, data, func(have string) bool { return have == etag }); err != nil {
		return fmt.Errorf("put blob %s/%s if unchanged: %w", container, name, err)
	}
	return nil
}

// put writes a blob if may accepts the ETag of the existing blob, "" without one.
func (m *Memory) put(ctx context.Context, container, name string, data []byte, may func(etag string) bool) error {
	if err := cmp.Or(ctx.Err(), CheckContainer(container), CheckName(name), CheckSize(int64(len(data)))); err != nil {
		return err
	}
	copied := append([]byte{}, data...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[container] == nil {
		return fmt.Errorf("%w: there is no such container", ErrNotFound)
	}
	if !may(m.containers[container][name].etag) {
		RecordResponse(ctx, m.now(), "")
		return ErrPrecondition
	}
	m.puts++
	etag := fmt.Sprintf("\"0x%X\"", m.puts)
	m.containers[container][name] = storedBlob{data: copied, etag: etag, written: m.now().Truncate(time.Second)}
	RecordResponse(ctx, m.now(), etag)
	return nil
}

// Get reads a blob.
func (m *Memory) Get(ctx context.Context, container, name string) ([]byte, error) {
	if err := cmp.Or(ctx.Err(), CheckContainer(container), CheckName(name)); err != nil {
		return nil, fmt.Errorf("get blob %s/%s: %w", container, name, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	blob, ok := m.containers[container][name]
	RecordResponse(ctx, m.now(), blob.etag)
	if !ok {
		return nil, fmt.Errorf("get blob %s/%s: %w", container, name, ErrNotFound)
	}
	return append([]byte{}, blob.data...), nil
}

// Delete deletes a blob; a missing blob or container is not an error.
func (m *Memory) Delete(ctx context.Context, container, name string) error {
	if err := cmp.Or(ctx.Err(), CheckContainer(container), CheckName(name)); err != nil {
		return fmt.Errorf("delete blob %s/%s: %w", container, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.containers[container], name)
	return nil
}

// DeleteVersion deletes a blob that still has this version.
func (m *Memory) DeleteVersion(ctx context.Context, container string, v Version) error {
	if err := cmp.Or(ctx.Err(), CheckContainer(container), CheckName(v.Name)); err != nil {
		return fmt.Errorf("delete old blob %s/%s: %w", container, v.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if blob, ok := m.containers[container][v.Name]; !ok || blob.etag != v.ETag {
		return fmt.Errorf("delete old blob %s/%s: %w: it was written since, or is gone", container, v.Name, ErrPrecondition)
	}
	delete(m.containers[container], v.Name)
	return nil
}

// List returns one page of the names that begin with prefix, in the order of their bytes.
func (m *Memory) List(ctx context.Context, container, prefix, continuation string) ([]string, string, error) {
	names, next, err := m.list(ctx, Listing{Container: container, Prefix: prefix}, continuation)
	if err != nil {
		return nil, "", fmt.Errorf("list blobs %s/%s: %w", container, prefix, err)
	}
	return names, next, nil
}

// ListOld examines one page of blobs and returns those that were last written before a time.
func (m *Memory) ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) ([]Version, string, error) {
	names, next, err := m.list(ctx, Listing{Container: container, Prefix: prefix, Old: true}, continuation)
	if err != nil {
		return nil, "", fmt.Errorf("list old blobs %s/%s: %w", container, prefix, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var old []Version
	for _, name := range names {
		if blob, ok := m.containers[container][name]; ok && blob.written.Before(before) {
			old = append(old, Version{name, blob.etag})
		}
	}
	return old, next, nil
}

func (m *Memory) list(ctx context.Context, first Listing, continuation string) ([]string, string, error) {
	if err := cmp.Or(ctx.Err(), CheckContainer(first.Container), CheckPrefix(first.Prefix)); err != nil {
		return nil, "", err
	}
	at, err := first.Resume(continuation)
	if err != nil {
		return nil, "", err
	}
	names, err := m.names(first.Container, first.Prefix, at.Marker)
	if err != nil {
		return nil, "", err
	}
	slices.Sort(names)
	if len(names) <= m.pageLimit {
		return names, "", nil
	}
	at.Marker = names[m.pageLimit]
	return slices.Clone(names[:m.pageLimit]), at.Continuation(), nil
}

// names returns the names that begin with prefix and are not below from, in no particular order.
func (m *Memory) names(container, prefix, from string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	blobs := m.containers[container]
	if blobs == nil {
		return nil, fmt.Errorf("%w: there is no such container", ErrNotFound)
	}
	var names []string
	for name := range blobs {
		if strings.HasPrefix(name, prefix) && name >= from {
			names = append(names, name)
		}
	}
	return names, nil
}
