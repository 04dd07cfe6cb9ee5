package poller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

const name = "orders"

// world is a source, a state store and a sink, which processes share. It checks their actions.
type world struct {
	t      testing.TB
	source *pollertest.Source
	state  *watched

	mu sync.Mutex
	// delivered are the rows of successful deliveries, in order; quarantined the quarantined ones.
	delivered, quarantined []int
	// deliver is the sink, nil accepts everything.
	deliver func(ctx context.Context, d poller.Delivery) error
	// tokens are those of deliveries.
	tokens []int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	memory := blobs.NewMemory()
	w := &world{t: t, source: &pollertest.Source{}}
	w.state = &watched{Store: memory, w: w, committers: map[int64]string{}}
	testenv.OK(t, (poller.BlobStore{Blobs: memory}).Create(t.Context()))
	return w
}

func (w *world) store() poller.Store { return poller.BlobStore{Blobs: w.state} }

func (w *world) operator() poller.Operator { return poller.Operator{Store: w.store()} }

// process returns a process with faults, or without when the plan is nil.
func (w *world) process(plan *faults.Plan, change func(*poller.RunnerConfig)) *poller.Runner {
	w.t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	c := poller.RunnerConfig{Name: name, Source: source{w.source, plan},
		Store:      poller.BlobStore{Blobs: faults.Blobs(w.state, plan.Intercept)},
		Handler:    poller.HandlerFunc(func(ctx context.Context, d poller.Delivery) error { return w.handle(ctx, plan, d) }),
		Quarantine: func(ctx context.Context, q poller.Quarantined) error { return w.giveUp(ctx, plan, q) },
	}
	if change != nil {
		change(&c)
	}
	r := testenv.Must(poller.NewRunner(c))(w.t)
	return r
}

// source is a source whose calls can fail.
type source struct {
	*pollertest.Source
	plan *faults.Plan
}

func (s source) Fetch(ctx context.Context, after poller.Cursor, limit, maxBytes int) (b poller.Batch, err error) {
	var fetched poller.Batch
	err = s.plan.Intercept(ctx, faults.Call{Service: "source", Operation: "Fetch"}, func(ctx context.Context) (err error) {
		fetched, err = s.Source.Fetch(ctx, after, limit, maxBytes)
		return err
	})
	if err != nil {
		return poller.Batch{}, err
	}
	return fetched, nil
}

func (w *world) handle(ctx context.Context, plan *faults.Plan, d poller.Delivery) error {
	return plan.Intercept(ctx, faults.Call{Service: "handler", Operation: "Deliver"}, func(ctx context.Context) error {
		if w.deliver != nil {
			if err := w.deliver(ctx, d); err != nil {
				return err
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tokens = append(w.tokens, d.Token)
		for i, row := range d.Rows {
			w.delivered = append(w.delivered, pollertest.Number(row.Cursor))
			if d.EventIDs[i] != poller.EventID(name, row) {
				w.t.Errorf("row %s has event id %s", row.Key, d.EventIDs[i])
			}
		}
		return nil
	})
}

func (w *world) giveUp(ctx context.Context, plan *faults.Plan, q poller.Quarantined) error {
	return plan.Intercept(ctx, faults.Call{Service: "handler", Operation: "Quarantine"}, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.quarantined = append(w.quarantined, pollertest.Number(q.Row.Cursor))
		return nil
	})
}

// times returns how often each row was delivered, and how often quarantined.
func (w *world) times() (delivered, quarantined map[int]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delivered, quarantined = map[int]int{}, map[int]int{}
	for _, n := range w.delivered {
		delivered[n]++
	}
	for _, n := range w.quarantined {
		quarantined[n]++
	}
	return delivered, quarantined
}

// passed reports whether a row was delivered or quarantined.
func (w *world) passed(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.delivered, n) || slices.Contains(w.quarantined, n)
}

// document returns the stored state.
func (w *world) document() *poller.Document {
	w.t.Helper()
	v := testenv.Must(w.operator().Show(w.t.Context(), name))(w.t)
	return v.Document
}

// tick runs a tick that must not fail.
func (w *world) tick(r *poller.Runner) poller.Result {
	w.t.Helper()
	result := testenv.Must(r.Tick(w.t.Context()))(w.t)
	return result
}

// wait lets time pass in the bubble.
func wait(d time.Duration) { <-time.After(d) }

// watched is a blob store that compares each version of a state document with the previous one.
type watched struct {
	blobs.Store
	w *world
	// rewinds allows the checkpoint to go back, as an operator may.
	rewinds bool

	mu         sync.Mutex
	last       *poller.Document
	writes     int
	committers map[int64]string
}

func (s *watched) PutIf(ctx context.Context, container, blob string, data []byte, etag string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Store.PutIf(ctx, container, blob, data, etag); err != nil {
		return err
	}
	s.writes++
	doc, err := poller.Decode(data)
	if err != nil {
		s.w.t.Errorf("a document that cannot be read was written: %v", err)
		return nil
	}
	if text, err := doc.Encode(); err != nil || !bytes.Equal(text, data) {
		s.w.t.Errorf("the document changed on its way: %v", err)
	}
	if doc.PollerName != name {
		return nil
	}
	if err := s.follow(doc); err != nil {
		s.w.t.Error(err)
	}
	s.last = doc
	return nil
}

// follow checks that a version may follow the previous one.
func (s *watched) follow(doc *poller.Document) error {
	before := s.last
	if before == nil {
		before = &poller.Document{}
	}
	if doc.Lease.Token < before.Lease.Token {
		return fmt.Errorf("the token went back from %d to %d", before.Lease.Token, doc.Lease.Token)
	}
	was, is := pollertest.Number(before.Cursor()), pollertest.Number(doc.Cursor())
	if was == is || s.rewinds {
		return nil
	}
	if is < was {
		return fmt.Errorf("the checkpoint went back from %d to %d", was, is)
	}
	hold := doc.Lease.Owner + "/" + doc.Lease.Nonce
	if before.Lease.Token != doc.Lease.Token || before.Lease.Owner+"/"+before.Lease.Nonce != hold || doc.Lease.Owner == "" {
		return fmt.Errorf("%s committed under the lease of %s", hold, before.Lease.Owner)
	}
	if first, ok := s.committers[doc.Lease.Token]; ok && first != hold {
		return fmt.Errorf("token %d has two committers, %s and %s", doc.Lease.Token, first, hold)
	}
	s.committers[doc.Lease.Token] = hold
	var errs []error
	for n := was + 1; n <= is; n++ {
		if !s.w.passed(n) {
			errs = append(errs, fmt.Errorf("row %d was passed over", n))
		}
	}
	return errors.Join(errs...)
}

func (s *watched) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// document0 returns the stored state, an empty one without any.
func (w *world) document0() *poller.Document {
	w.t.Helper()
	if w.state.count() == 0 {
		return &poller.Document{}
	}
	return w.document()
}

func numberText(n int) string { return pollertest.Row(n).Cursor.Value }
