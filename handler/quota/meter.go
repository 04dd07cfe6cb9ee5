package quota

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// bucket holds the remaining transactions of a caller.
type bucket struct {
	tokens *rate.Limiter
	calls  chan struct{} // one element for each call in flight
	logged rate.Sometimes

	mu       sync.Mutex
	requests int // in flight
}

func newBucket(perSecond, calls int) *bucket {
	return &bucket{tokens: rate.NewLimiter(rate.Limit(perSecond), burst*perSecond), calls: make(chan struct{}, calls), logged: rate.Sometimes{Interval: time.Minute}}
}

// left returns the tokens, and whether the bucket is full and no request is in flight.
func (b *bucket) left(now time.Time) (left float64, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left = b.tokens.TokensAt(now)
	return left, b.requests == 0 && left >= float64(b.tokens.Burst())
}

// enter adds a request if the bucket holds a share for it and for all others in flight. Otherwise it returns the
// time until then.
func (b *bucket) enter(now time.Time) (after time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	need := min(float64(share*(b.requests+1)), float64(b.tokens.Burst()))
	if missing := need - b.tokens.TokensAt(now); missing > 0 {
		return time.Duration(missing / float64(b.tokens.Limit()) * float64(time.Second)), false
	}
	b.requests++
	return 0, true
}

func (b *bucket) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests--
}

// meter charges the calls of one request.
type meter struct {
	quota   *Quota
	address Caller

	mu       sync.Mutex
	buckets  []*bucket // nil when the request has ended
	admitted bool
}

type meterKey struct{}

func meterOf(ctx context.Context) *meter {
	m, _ := ctx.Value(meterKey{}).(*meter)
	return m
}

func (m *meter) admit(callers []Caller) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admitted || m.buckets == nil {
		return nil
	}
	now := time.Now()
	var entered []*bucket
	for _, c := range callers {
		b := m.quota.buckets.of(c)
		after, ok := b.enter(now)
		if !ok {
			for _, b := range entered {
				b.leave()
			}
			m.quota.config.Refused(c.Kind)
			b.logged.Do(func() {
				m.quota.config.Log.Warn("a caller has used up its quota of storage transactions: its requests are refused with 429", "type", string(c.Kind), "by", c.ID)
			})
			return &ExceededError{Caller: c, After: after}
		}
		entered = append(entered, b)
	}
	m.buckets, m.admitted = entered, true
	return nil
}

func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admitted {
		for _, b := range m.buckets {
			b.leave()
		}
	}
	m.buckets = nil
}

func (m *meter) charged() []*bucket {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buckets
}

// spend makes and charges a storage call. It waits first while too many of the caller's calls are in flight.
func spend(ctx context.Context, call func() error) error {
	m := meterOf(ctx)
	if m == nil {
		return call()
	}
	for _, b := range m.charged() {
		select {
		case b.calls <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-b.calls }()
		b.tokens.ReserveN(time.Now(), 1)
	}
	return call()
}
