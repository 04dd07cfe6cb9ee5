package codec

import (
	"container/list"
	"context"
	"crypto/cipher"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// cache keeps the data keys that were unwrapped last. Many callers that miss the same one ask for it once.
type cache struct {
	size   int
	now    func() time.Time
	flight singleflight.Group

	mu    sync.Mutex
	byKey map[string]*list.Element
	order *list.List // of cached, the one used last in front
}

// cached is a data key, or why it could not be had a moment ago.
type cached struct {
	key     string
	aead    cipher.AEAD
	failure error
	until   time.Time // of the failure
}

func newCache(size int, now func() time.Time) *cache {
	return &cache{size: size, now: now, byKey: map[string]*list.Element{}, order: list.New()}
}

// get returns the data key of a header, which open gets when it is not known.
func (c *cache) get(ctx context.Context, key string, open func(context.Context) (cipher.AEAD, error)) (cipher.AEAD, error) {
	if found, ok := c.find(key); ok {
		return found.aead, found.failure
	}
	value, err, _ := c.flight.Do(key, func() (any, error) {
		if found, ok := c.find(key); ok {
			return found.aead, found.failure
		}
		// The result is for all who wait, so it does not end with the first of them.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
		defer cancel()
		aead, err := open(ctx)
		c.add(cached{key: key, aead: aead, failure: err, until: c.now().Add(retryAfter)})
		return aead, err
	})
	aead, _ := value.(cipher.AEAD)
	return aead, err
}

// find returns what is known, and makes it the one used last.
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
