package codec

import (
	"container/list"
	"context"
	"crypto/cipher"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// cache keeps the most recently used data keys. Concurrent callers that miss the same key send one request for it.
type cache struct {
	size   int
	now    func() time.Time
	flight singleflight.Group

	mu    sync.Mutex
	byKey map[string]*list.Element
	order *list.List // of cached, the most recently used first
}

// cached is a data key, or a recent failure to get it.
type cached struct {
	key     string
	aead    cipher.AEAD
	failure error
	until   time.Time // of the failure
}

func newCache(size int, now func() time.Time) *cache {
	return &cache{size: size, now: now, byKey: map[string]*list.Element{}, order: list.New()}
}

// get returns the data key of a header, and calls open for an unknown one.
func (c *cache) get(ctx context.Context, key string, open func(context.Context) (cipher.AEAD, error)) (cipher.AEAD, error) {
	if found, ok := c.find(key); ok {
		return found.aead, found.failure
	}
	value, err, _ := c.flight.Do(key, func() (any, error) {
		if found, ok := c.find(key); ok {
			return found.aead, found.failure
		}
		// All waiting callers share the result, so the request outlives the first of them.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
		defer cancel()
		aead, err := open(ctx)
		c.add(cached{key: key, aead: aead, failure: err, until: c.now().Add(retryAfter)})
		return aead, err
	})
	aead, _ := value.(cipher.AEAD)
	return aead, err
}

// find returns a cached entry and makes it the most recently used.
func (c *cache) find(key string) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byKey[key]
	if !ok {
		return cached{}, false
	}
	found, _ := at.Value.(cached)
	if found.failure != nil && !c.now().Before(found.until) {
		return cached{}, false
	}
	c.order.MoveToFront(at)
	return found, true
}

func (c *cache) add(one cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.byKey[one.key]; ok {
		c.order.Remove(at)
	}
	c.byKey[one.key] = c.order.PushFront(one)
	for c.order.Len() > c.size {
		last := c.order.Back()
		old, _ := c.order.Remove(last).(cached)
		delete(c.byKey, old.key)
	}
}
