package quota

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"
)

const (
	// DefaultPerSecond is the rate of a bucket, in transactions per second.
	DefaultPerSecond = 200
	// burst is the capacity of a bucket, in seconds of its rate.
	burst = 30
	// share is the minimum that a bucket must hold for each request in flight. Most requests cost less.
	share = 16
	// inFlight limits a caller's simultaneous storage calls.
	inFlight = 32
)

// Kind is the kind of a caller, which labels its metric.
type Kind string

// The kinds of callers. A Tenant is the sum of its principals, an Address one without credentials.
const (
	Principal Kind = "principal"
	Tenant    Kind = "tenant"
	Key       Kind = "key"
	Address   Kind = "address"
)

// weight is the factor on a principal's rate and calls in flight. Many machines share a key, and many principals a
// tenant.
func (k Kind) weight() int {
	switch k {
	case Tenant:
		return 5
	case Key:
		return 10
	default:
		return 1
	}
}

// Caller is charged for a request.
type Caller struct {
	Kind Kind
	ID   string
}

// Config configures a Quota.
type Config struct {
	// PerSecond is the rate of a principal and an address, in transactions; 0 means no limit.
	PerSecond int
	// Refused counts refused requests; nil counts nothing.
	Refused func(Kind)
	// Log takes one record a minute for each caller that is refused; nil means no log.
	Log *slog.Logger
}

// Quota holds the buckets of all callers. It is safe for concurrent use.
type Quota struct {
	config  Config
	buckets kept[*bucket]
}

// New returns a Quota.
func New(c Config) *Quota {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Refused == nil {
		c.Refused = func(Kind) {}
	}
	return &Quota{config: c, buckets: keep(func(by Caller) *bucket { return newBucket(c.PerSecond*by.Kind.weight(), inFlight*by.Kind.weight()) })}
}

// ExceededError reports that a caller has used up its quota.
type ExceededError struct {
	Caller Caller
	// After is the time until the caller can retry the request.
	After time.Duration
}

// Error implements [error].
func (e *ExceededError) Error() string {
	return fmt.Sprintf("too many storage transactions of this %s: repeat the request in %s seconds, or narrow it", e.Caller.Kind, e.RetryAfter())
}

// RetryAfter is the value of the header, in seconds.
func (e *ExceededError) RetryAfter() string {
	return strconv.Itoa(int(math.Ceil(max(1, e.After.Seconds()))))
}

// Refuse answers a request with 429.
func (e *ExceededError) Refuse(w http.ResponseWriter) {
	w.Header().Set("Retry-After", e.RetryAfter())
	http.Error(w, e.Error(), http.StatusTooManyRequests)
}

// Track returns a context whose storage calls are charged to the address until Admit names the caller, and a
// function that ends the request.
func (q *Quota) Track(ctx context.Context, address string) (context.Context, func()) {
	if q == nil || q.config.PerSecond == 0 {
		return ctx, func() {}
	}
	m := &meter{quota: q, buckets: []*bucket{q.buckets.of(Caller{Address, address})}, address: Caller{Address, address}}
	return context.WithValue(ctx, meterKey{}, m), m.end
}

// Admit checks the quota of the callers of a request before it reaches storage, and charges the request to them from
// then on. A request without callers is charged to its address. The error is an *ExceededError.
func Admit(ctx context.Context, callers ...Caller) error {
	m := meterOf(ctx)
	if m == nil {
		return nil
	}
	if len(callers) == 0 {
		callers = []Caller{m.address}
	}
	return m.admit(callers)
}

// Exempt stops charging a request, for callers without a limit.
func Exempt(ctx context.Context) {
	if m := meterOf(ctx); m != nil {
		m.end()
	}
}

// Free returns a context whose storage calls are not charged, because several requests wait for their results.
func Free(ctx context.Context) context.Context {
	if meterOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, meterKey{}, (*meter)(nil))
}
