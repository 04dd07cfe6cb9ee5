package blobs

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/vibedata/roundhouse/internal/account"
)

// Memory is a Store in memory with the service's promises and limits, for tests, simulations and benchmarks. It is
// ready after NewMemory.
type Memory struct {
	mu         sync.RWMutex
	containers map[string]map[string][]byte
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{containers: map[string]map[string][]byte{}}
}

// CreateContainer makes sure that a container exists.
func (m *Memory) CreateContainer(ctx context.Context, container string) error {
	if err := cmp.Or(ctx.Err(), account.CheckName("container", container)); err != nil {
		return fmt.Errorf("create container %.64s: %w", container, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[container] == nil {
		m.containers[container] = map[string][]byte{}
	}
	return nil
}

// Put writes a blob.
func (m *Memory) Put(ctx context.Context, container, name string, data []byte) error {
	if err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(name), checkSize(int64(len(data)))); err != nil {
		return fmt.Errorf("put blob %s/%s: %w", container, name, err)
	}
	held := append([]byte{}, data...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[container] == nil {
		return fmt.Errorf("put blob %s/%s: %w: there is no such container", container, name, ErrNotFound)
	}
	m.containers[container][name] = held
	return nil
}

// Get reads a blob.
func (m *Memory) Get(ctx context.Context, container, name string) ([]byte, error) {
	if err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(name)); err != nil {
		return nil, fmt.Errorf("get blob %s/%s: %w", container, name, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	data, ok := m.containers[container][name]
	if !ok {
		return nil, fmt.Errorf("get blob %s/%s: %w", container, name, ErrNotFound)
	}
	return append([]byte{}, data...), nil
}

// Delete removes a blob; a missing one is not an error, nor is a missing container.
func (m *Memory) Delete(ctx context.Context, container, name string) error {
	if err := cmp.Or(ctx.Err(), account.CheckName("container", container), checkName(name)); err != nil {
		return fmt.Errorf("delete blob %s/%s: %w", container, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.containers[container], name)
	return nil
}
