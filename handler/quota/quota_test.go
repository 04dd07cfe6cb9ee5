package quota

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slow is a table whose reads last a second. It counts the reads in flight.
type slow struct {
	tables.Store
	mu               sync.Mutex
	reads, now, most int
}

func (s *slow) Get(context.Context, string, tables.Key) (tables.Entity, error) {
	s.mu.Lock()
	s.reads++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	return tables.Entity{}, nil
}

// request makes a request with that number of reads.
func request(ctx context.Context, q *Quota, s tables.Store, reads int, callers ...Caller) error {
	ctx, end := q.Track(ctx, "192.0.2.1")
	defer end()
	if err := Admit(ctx, callers...); err != nil {
		return err
	}
	for range reads {
		if _, err := Tables(s).Get(ctx, "t", tables.Key{}); err != nil {
			return err
		}
	}
	return nil
}

func people(n int) []Caller {
	return []Caller{{Principal, fmt.Sprint("red/", n)}, {Tenant, "red"}}
}

// A caller gets the content of its bucket plus the rate, however many requests it sends. Its tenant's bucket limits
// all principals of the tenant.
func TestBuckets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		callers func(n int) []Caller
		most    int // transactions in a minute, at 2 per second
		flight  int
		kind    Kind
	}{
		"a principal": {func(int) []Caller { return []Caller{{Principal, "home/ann"}} }, 2 * (burst + 60), inFlight, Principal},
		"a tenant":    {people, 5 * 2 * (burst + 60), 5 * inFlight, Tenant},
		"a key":       {func(int) []Caller { return []Caller{{Key, "function-key"}} }, 10 * 2 * (burst + 60), 10 * inFlight, Key},
		"an address":  {func(int) []Caller { return nil }, 2 * (burst + 60), inFlight, Address},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			refused := map[Kind]int{}
			var mu sync.Mutex
			q := New(Config{PerSecond: 2, Refused: func(k Kind) {
				mu.Lock()
				defer mu.Unlock()
				refused[k]++
			}})
			s := &slow{}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var all sync.WaitGroup
			for n := range 500 {
				all.Go(func() {
					for ctx.Err() == nil {
						var exceeded *ExceededError
						err := request(t.Context(), q, s, 20, c.callers(n)...)
						if errors.As(err, &exceeded) {
							time.Sleep(exceeded.After)
						} else if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			// A request that was admitted may cost more than its share: 20 in the place of 16.
			if s.reads > c.most*20/share || s.most > c.flight || refused[c.kind] == 0 {
				t.Errorf("%d reads, %d at a time, refused %v, want at most %d and %d", s.reads, s.most, refused, c.most*20/share, c.flight)
			}
			if s.reads < c.most/2 {
				t.Errorf("%d reads, the quota allows %d", s.reads, c.most)
			}
			for other, err := range map[string]error{"another principal": request(t.Context(), q, s, 1, Caller{Principal, "home/bob"}),
				"a request without a quota": request(t.Context(), New(Config{}), s, 1)} {
				if err != nil {
					t.Errorf("%s: %v", other, err)
				}
			}
		})
	}
}

// Shared loads and calls of an exempt caller are neither charged nor delayed.
func TestFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := New(Config{PerSecond: 1}), &slow{}
		for _, free := range []func(context.Context) context.Context{Free, func(ctx context.Context) context.Context { Exempt(ctx); return ctx }} {
			ctx, end := q.Track(t.Context(), "192.0.2.1")
			began := time.Now()
			var all sync.WaitGroup
			for range 2 * inFlight {
				all.Go(func() { _, _ = Tables(s).Get(free(ctx), "t", tables.Key{}) })
			}
			all.Wait()
			end()
			if took := time.Since(began); took != time.Second {
				t.Errorf("%v", took)
			}
		}
		if left, full := q.buckets.of(Caller{Address, "192.0.2.1"}).left(time.Now()); !full {
			t.Errorf("%v tokens are left", left)
		}
	})
}

// When there are too many buckets, full ones are removed first; a caller in debt keeps its bucket.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{PerSecond: 1})
		busy := Caller{Principal, "busy"}
		q.buckets.of(busy).tokens.ReserveN(time.Now(), burst)
		for n := range 3 * maxKept {
			q.buckets.of(Caller{Address, fmt.Sprint(n)}).tokens.ReserveN(time.Now(), n%2)
		}
		if n := len(q.buckets.values); n > maxKept {
			t.Errorf("%d buckets", n)
		}
		if left, _ := q.buckets.of(busy).left(time.Now()); left > 0 {
			t.Errorf("the debt is forgotten: %v tokens", left)
		}
	})
}

func TestAddressOf(t *testing.T) {
	t.Parallel()
	for forwarded, want := range map[string]string{
		"":                               "127.0.0.1",
		"203.0.113.9":                    "203.0.113.9",
		"203.0.113.9:4711":               "203.0.113.9",
		"198.51.100.1, 203.0.113.9:4711": "203.0.113.9", // the client has written the first
		"203.0.113.9:4711, 10.0.0.7":     "203.0.113.9",
		"203.0.113.9:4711, 169.254.130.1:80, ::1": "203.0.113.9",
		"10.1.2.3, 10.0.0.7":                      "10.0.0.7",
		"203.0.113.9, forged, 10.0.0.7":           "10.0.0.7",
		"[2001:db8:1:2:3:4:5:6]:4711":             "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1":                    "2001:db8:1:2::/64",
		"::ffff:203.0.113.9":                      "203.0.113.9",
		"nonsense":                                "",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "127.0.0.1:9"
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		testenv.Equal(t, forwarded, want, AddressOf(r))
	}
}
