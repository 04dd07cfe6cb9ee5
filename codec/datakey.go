package codec

import (
	"context"
	"crypto/cipher"
	"fmt"
	"sync"
	"time"
)

const (
	// keyTimeout bounds one request for a key.
	keyTimeout = 30 * time.Second
	// retryAfter is how long a failed renewal or unwrap of a data key is cached, so that many callers send one request.
	retryAfter = 10 * time.Second
)

// dataKey encrypts payloads.
type dataKey struct {
	aead   cipher.AEAD
	header []byte
	made   time.Time
	uses   int
}

// current is the data key that encrypts now.
type current struct {
	keys    Keys
	maxAge  time.Duration
	maxUses int
	now     func() time.Time
	// made is called with every new data key.
	made func(*dataKey)

	mu      sync.Mutex
	key     *dataKey
	retryAt time.Time // after a failure: the time of the next try
	failure error
}

// use returns the data key for one more payload. If a key is due for replacement and the vault returns no other, the
// old key stays in use up to its number of uses. An outage of the vault therefore stops no running program.
func (c *current) use(ctx context.Context) (*dataKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	spent := c.key == nil || c.key.uses >= c.maxUses
	if spent || now.Sub(c.key.made) >= c.maxAge {
		if err := c.renew(ctx, now); err != nil && spent {
			return nil, err
		}
	}
	c.key.uses++
	return c.key, nil
}

// renew makes the next data key. The caller holds the lock, because all callers need the result.
func (c *current) renew(ctx context.Context, now time.Time) error {
	if now.Before(c.retryAt) {
		return c.failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyTimeout)
	defer cancel()
	key := newKey()
	wrapped, id, err := c.keys.Wrap(ctx, key)
	if err == nil && (id == "" || len(id) > MaxKeyID || len(wrapped) == 0 || len(wrapped) > MaxWrapped) {
		err = fmt.Errorf("the key %.300q wraps data keys in %d bytes, at most %d are allowed: use an RSA key of 2,048, 3,072 or 4,096 bits", id, len(wrapped), MaxWrapped)
	}
	var aead cipher.AEAD
	if err == nil {
		aead, err = newAEAD(key)
	}
	if err != nil {
		c.retryAt, c.failure = now.Add(retryAfter), err
		return err
	}
	c.key, c.retryAt, c.failure = &dataKey{aead: aead, header: header{id, wrapped}.encode(), made: now}, time.Time{}, nil
	c.made(c.key)
	return nil
}
