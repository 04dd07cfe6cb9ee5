package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// burst is the number of events that a tenant adds, one at a time, before a dispatcher runs.
	burst = 500
	// azuriteBurst is the same over Azurite: a batch.
	azuriteBurst = 50
	// outboxTenants is the number of tenants that add in parallel.
	outboxTenants = 8
	// deliverySamples is the minimum number of events for the percentiles of the delay.
	deliverySamples = 1000
)

// outboxes lists the measurements of the outbox.
func outboxes() []scenario {
	return []scenario{outboxCost(), outboxOverAzurite(), outboxInMemory(), outboxDelay()}
}

// mailroom is an outbox whose destination only counts: the outbox is measured.
type mailroom struct {
	writer     *outbox.Writer
	dispatcher *outbox.Dispatcher
	delivered  chan struct{} // receives a token for each delivery, if not nil
}

// Deliver counts an event.
func (m *mailroom) Deliver(context.Context, outbox.Event) error {
	if m.delivered != nil {
		m.delivered <- struct{}{}
	}
	return nil
}

// newMailroom makes an outbox with the default options, without a log, and creates its storage.
func newMailroom(ctx context.Context, c outbox.Config) (*mailroom, error) {
	c.Options, c.Logger = outbox.DefaultOptions(), slog.New(slog.DiscardHandler)
	o, err := outbox.New(c)
	if err != nil {
		return nil, err
	}
	m := &mailroom{writer: outbox.NewWriter(o)}
	router, err := outbox.NewRouter([]outbox.Route{{EventType: "*", Destination: "there"}}, outbox.Destinations{"there": m})
	if err != nil {
		return nil, err
	}
	m.dispatcher, err = outbox.NewDispatcher(o, outbox.DispatcherConfig{Router: router})
	return m, errors.Join(err, o.Create(ctx))
}

func memoryOutbox() outbox.Config {
	return outbox.Config{Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory()}
}

// add adds events of a tenant, one at a time.
func (m *mailroom) add(ctx context.Context, tenant string, n int) error {
	for range n {
		_, err := m.writer.Add(ctx, outbox.Message{TenantID: tenant, EventType: "bench.done", Payload: []byte(`{"instanceId":"instance-1","version":1}`)})
		if err != nil {
			return err
		}
	}
	return nil
}

// deliver delivers the due events of a tenant, which must be n.
func (m *mailroom) deliver(ctx context.Context, tenant string, n int) error {
	result, err := m.dispatcher.Dispatch(ctx, tenant)
	if err == nil && result.Delivered != n {
		err = fmt.Errorf("%d events of %d were delivered", result.Delivered, n)
	}
	return err
}

// outboxCost counts the cost of events from their addition until they are processed, including the host's handling of
// the wake-ups.
func outboxCost() scenario {
	m := metric{"outbox/tx_per_message", "transactions", "goal 4 or less"}
	return scenario{[]metric{m}, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		n, err := countOutbox(ctx)
		return []float64{n}, err
	}}
}

func countOutbox(ctx context.Context) (float64, error) {
	var ahead atomic.Int64 // makes the delayed wake-up due
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	c, count := memoryOutbox(), &faults.Plan{}
	memory := queues.NewMemory()
	memory.Now, c.Now = now, now
	c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, count.Intercept), faults.Queues(memory, count.Intercept), faults.Blobs(c.Blobs, count.Intercept)
	m, err := newMailroom(ctx, c)
	if err != nil {
		return 0, err
	}
	before := len(count.Calls())
	if err := m.add(ctx, "tenant", burst); err != nil {
		return 0, err
	}
	ahead.Store(int64(time.Minute))
	delivered, err := m.host(ctx, c.Queues)
	if err == nil && delivered != burst {
		err = fmt.Errorf("%d events of %d were delivered", delivered, burst)
	}
	return float64(len(count.Calls())-before) / burst, err
}

// host handles the wake-ups like the Functions host and the handler, until none is left.
func (m *mailroom) host(ctx context.Context, queue queues.Store) (delivered int, err error) {
	for {
		wakes, err := queue.Receive(ctx, outbox.DefaultQueue, 32, time.Minute)
		if err != nil || len(wakes) == 0 {
			return delivered, err
		}
		for _, msg := range wakes {
			w, err := outbox.DecodeWake(msg.Text)
			if err != nil {
				return delivered, err
			}
			result, err := m.dispatcher.Dispatch(ctx, w.Tenant)
			if err != nil {
				return delivered, err
			}
			delivered += result.Delivered
			if err := queue.Delete(ctx, outbox.DefaultQueue, msg.ID, msg.PopReceipt); err != nil {
				return delivered, err
			}
		}
	}
}

// outboxOverAzurite measures the throughput of events with an Azurite.
func outboxOverAzurite() scenario {
	m := metric{"outbox/azurite/messages_per_s", "messages/s", ""}
	return scenario{[]metric{m}, func(ctx context.Context, d time.Duration) (values []float64, err error) {
		startCtx, cancel := context.WithTimeout(ctx, azuriteStart)
		defer cancel()
		server, err := azurite.Start(startCtx, azurite.Config{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		table, err1 := azure.NewTables(server.Account())
		queue, err2 := azure.NewQueues(server.Account())
		blob, err3 := azure.NewBlobs(server.Account())
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		round := 0
		return outboxThroughput(ctx, d, azuriteBurst, func() outbox.Config {
			round++ // a new table each time, because Azurite slows down as one fills
			return outbox.Config{Tables: table, Queues: queue, Blobs: blob, Table: fmt.Sprintf("bench%d", round)}
		})
	}}
}

// outboxInMemory measures the same in memory.
func outboxInMemory() scenario {
	m := metric{"outbox/memory/messages_per_s", "messages/s", "goal 20000 or more"}
	return scenario{[]metric{m}, func(ctx context.Context, d time.Duration) ([]float64, error) {
		return outboxThroughput(ctx, d, burst, memoryOutbox)
	}}
}

// outboxThroughput lets tenants add and deliver events repeatedly, and returns how many were processed in a second.
func outboxThroughput(ctx context.Context, d time.Duration, n int, config func() outbox.Config) ([]float64, error) {
	rates, err := repeat(ctx, d, func(ctx context.Context, slice time.Duration) ([]float64, error) {
		m, err := newMailroom(ctx, config())
		if err != nil {
			return nil, err
		}
		var next atomic.Int64
		rate, err := saturate(ctx, outboxTenants, slice, func(ctx context.Context) error {
			tenant := fmt.Sprintf("tenant-%d", next.Add(1))
			if err := m.add(ctx, tenant, n); err != nil {
				return err
			}
			return m.deliver(ctx, tenant, n)
		})
		return []float64{rate * float64(n)}, err
	})
	if err != nil {
		return nil, err
	}
	return []float64{median(rates)}, nil
}

// outboxDelay measures the time from the call of Add until the destination has the event, one at a time. Its queue
// message wakes the dispatcher immediately: the host's polling is not included.
func outboxDelay() scenario {
	metrics := []metric{{"outbox/add_to_delivered_ms/p50", "ms", ""}, {"outbox/add_to_delivered_ms/p99", "ms", ""}}
	return scenario{metrics, func(ctx context.Context, d time.Duration) ([]float64, error) {
		samples, err := repeat(ctx, d, idleDeliveries)
		if err != nil {
			return nil, err
		}
		return []float64{percentile(samples, 50) / 1000, percentile(samples, 99) / 1000}, nil
	}}
}

// announced is a queue that signals each sent message.
type announced struct {
	queues.Store
	sent chan struct{}
}

// Send sends a message and signals it.
func (a announced) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	id, err := a.Store.Send(ctx, queue, body, delay)
	a.sent <- struct{}{}
	return id, err
}

// idleDeliveries times deliveries for d, in microseconds.
func idleDeliveries(ctx context.Context, d time.Duration) ([]float64, error) {
	c := memoryOutbox()
	queue := announced{c.Queues, make(chan struct{}, 1)}
	c.Queues = queue
	m, err := newMailroom(ctx, c)
	if err != nil {
		return nil, err
	}
	m.delivered = make(chan struct{}, 1)
	return timed(ctx, d, deliverySamples/rounds, func(ctx context.Context) (took time.Duration, err error) {
		began := time.Now()
		var group errgroup.Group
		group.Go(func() error {
			<-queue.sent
			delivered, err := m.host(ctx, queue)
			if err == nil && delivered != 1 {
				err = fmt.Errorf("%d events were delivered, want one", delivered)
			}
			if err != nil {
				m.delivered <- struct{}{} // without a wait
			}
			return err
		})
		if err := m.add(ctx, "tenant", 1); err != nil {
			return 0, err
		}
		<-m.delivered
		took = time.Since(began)
		return took, group.Wait()
	})
}
