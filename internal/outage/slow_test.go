package outage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/internal/storage"
	"github.com/vibedata/roundhouse/tables"
)

// server answers one request at a time. A request whose caller has stopped waiting is served nevertheless.
type server struct {
	turn chan struct{}

	mu     sync.Mutex
	took   time.Duration
	served int // requests answered to a caller
	vain   int // requests whose caller had stopped waiting
}

// tryTimeout is the time of one try, as in package azure.
const tryTimeout = 10 * time.Second

func newServer(took time.Duration) *server { return &server{turn: make(chan struct{}, 1), took: took} }

func (s *server) set(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = took
}

// serve is an Interceptor with the retries of the SDK.
func (s *server) serve(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	var err error
	for try := range 4 {
		if try > 0 && (storage.SingleTry(ctx) || c.Operation == "Send") {
			break
		}
		if err = s.request(ctx, next); !errors.Is(err, storage.ErrOutcomeUnknown) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (s *server) request(ctx context.Context, next func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		s.mu.Lock()
		took := s.took
		s.mu.Unlock()
		time.Sleep(took)
		answer <- next(context.WithoutCancel(ctx))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.served++; ctx.Err() != nil {
			s.served--
			s.vain++
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return storage.ErrOutcomeUnknown
	}
}

func (s *server) counts() (served, vain int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served, s.vain
}

// outages counts the records of outages.
type outages struct {
	slog.Handler
	mu    sync.Mutex
	count int
}

func (o *outages) Enabled(context.Context, slog.Level) bool { return true }
func (o *outages) Handle(_ context.Context, r slog.Record) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Level == slog.LevelWarn {
		o.count++
	}
	return nil
}

// A service that answers one request at a time is slow, not gone. So no outage is reported, and its capacity is used
// for requests whose callers still wait. No message exists more than twice, and the service is used to the full again
// after it has become quick.
func TestSlowService(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		took    time.Duration
		workers int
	}{{60 * time.Millisecond, 60}, {150 * time.Millisecond, 60}, {400 * time.Millisecond, 60}, {400 * time.Millisecond, 300}, {12 * time.Second, 4}} {
		t.Run(fmt.Sprintf("%v, %d workers", tt.took, tt.workers), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const load, quick = 5 * time.Minute, 5 * time.Millisecond
				inner, slow, seen := newWorld(t, 1), newServer(tt.took), &outages{}
				c := outage.Config{Log: slog.New(seen)}
				store, sends := outage.Tables(faults.Tables(inner.inTables, slow.serve), c), outage.Queues(faults.Queues(inner.inQueues, slow.serve), c)
				began := time.Now()
				var all sync.WaitGroup
				for n := range tt.workers {
					all.Go(func() {
						for i := 0; time.Since(began) < load+20*time.Second; i++ {
							ctx, cancel := context.WithTimeout(context.Background(), budget)
							ctx = outage.Wait(ctx)
							body := fmt.Sprintf("%d-%d", n, i)
							for step := range 3 {
								if err := store.Apply(ctx, table, tables.Insert(row(fmt.Sprintf("%s-%d", body, step)))); err != nil && !errors.Is(err, tables.ErrExists) {
									t.Errorf("insert %s-%d: %v", body, step, err)
								}
							}
							_, err := sends.Send(ctx, queue, []byte(body), 0)
							if inner.mu.Lock(); true {
								inner.sent[body] = err
								inner.mu.Unlock()
							}
							cancel()
						}
					})
				}
				time.Sleep(load)
				served, vain := slow.counts()
				if goodput := float64(served) / float64(load/tt.took); tt.took < time.Second && goodput < 0.9 {
					t.Errorf("goodput %.2f of the capacity (%d answers, %d in vain), want 0.9", goodput, served, vain)
				}
				slow.set(quick)
				time.Sleep(10 * time.Second)
				before, _ := slow.counts()
				time.Sleep(5 * time.Second)
				after, _ := slow.counts()
				if rate := float64(after-before) / float64(5*time.Second/quick); tt.took < time.Second && rate < 0.9 {
					t.Errorf("10 s after the service has become quick, %.2f of its capacity is used, want 0.9", rate)
				}
				all.Wait()
				inner.checkMessages(t)
				if seen.count > 0 && tt.took < time.Second {
					t.Errorf("%d outages, want none", seen.count)
				}
				t.Logf("%d answers, %d in vain, %d outages", served, vain, seen.count)
			})
		})
	}
}
