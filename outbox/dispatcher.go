package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

const (
	// depthFactor is how many batches of one destination a Dispatcher has claimed at most, one of a tenant. The rest of
	// the tenants wait in line for their turn, so none of them can hold up the others by its number of messages.
	depthFactor = 4
	// sweepWidth is how many tenants a sweep works on at once.
	sweepWidth = 256
)

// DeadReason says why a message died.
type DeadReason string

// The reasons of a death.
const (
	ReasonExhausted DeadReason = "AttemptsExhausted" // MaxRetries failures
	ReasonPermanent DeadReason = "Permanent"         // the destination refused it for good
)

// DeadEvent is a message that is about to be flagged as dead.
type DeadEvent struct {
	Event
	Destination string
	Reason      DeadReason
	// Error is the last failure's text, cut at MaxErrorTextLength.
	Error string
	// RetryCount counts the failures.
	RetryCount int
	// FirstFailureAt is that of the oldest attempt still in the log.
	FirstFailureAt, LastFailureAt time.Time
}

// Result counts what a Dispatcher did.
type Result struct {
	// Claimed counts the messages taken; the others say what became of them.
	Claimed   int
	Delivered int // delivered and settled
	Failed    int // to be tried again
	Dead      int
	Skipped   int // found processed already
	PutOff    int // not tried: the circuit was open, the claim or the time ran out
	Lost      int // the claim was lost before it was settled
}

// DispatcherConfig says what a Dispatcher does with messages.
type DispatcherConfig struct {
	// Router is needed.
	Router *Router
	// Dead is called for every message before it is flagged as dead, at least once; after an error of it the message
	// stays pending and Dead is called again later. nil: it is flagged only.
	Dead func(ctx context.Context, e DeadEvent) error
}

// Dispatcher delivers what is due (outbox document, "Dispatcher Behavior"). Any number of them may work on one outbox.
// It is safe for concurrent use, and idle between calls: it starts nothing that outlives them.
type Dispatcher struct {
	o      *Outbox
	router *Router
	dead   func(ctx context.Context, e DeadEvent) error
	slots  *semaphore.Weighted

	mu           sync.Mutex
	destinations map[string]*destination
	// running are the tenants that are being worked on.
	running map[string]*rerun
}

// rerun says that something came in while a tenant was being worked on.
type rerun struct{ wanted bool }

// destination is one destination as this Dispatcher sees it.
type destination struct {
	name string
	// depth bounds the claimed messages, slots the deliveries.
	depth, slots *semaphore.Weighted
	circuit      circuit
}

// NewDispatcher makes a Dispatcher. The error is an ErrInvalid.
func NewDispatcher(o *Outbox, c DispatcherConfig) (*Dispatcher, error) {
	if c.Router == nil {
		return nil, fmt.Errorf("new dispatcher: %w: Router is needed", ErrInvalid)
	}
	d := &Dispatcher{
		o:            o,
		router:       c.Router,
		dead:         c.Dead,
		slots:        semaphore.NewWeighted(int64(o.options.MaxConcurrency)),
		destinations: map[string]*destination{},
		running:      map[string]*rerun{},
	}
	if d.dead == nil {
		d.dead = func(context.Context, DeadEvent) error { return nil }
	}
	return d, nil
}

// Dispatch delivers everything of a tenant that is due: call it for every wake-up message. It returns when nothing is
// due any more, or soon after the end of ctx: what is being delivered then has DeliveryTimeout, nothing new is begun.
// While another call works on the tenant, it leaves its work to that one and returns at once. The error is what
// prevented it from going on; nothing is lost by it.
func (d *Dispatcher) Dispatch(ctx context.Context, tenant string) (Result, error) {
	if err := checkID("tenant id", tenant, true); err != nil {
		return Result{}, fmt.Errorf("dispatch: %w", err)
	}
	d.o.wake.dispatchStarted(tenant)
	more := &rerun{}
	d.mu.Lock()
	if other := d.running[tenant]; other != nil {
		other.wanted = true
		d.mu.Unlock()
		return Result{}, nil
	}
	d.running[tenant] = more
	d.mu.Unlock()

	var total Result
	for {
		result, err := d.newDrain(tenant).run(ctx)
		total.add(result)
		d.mu.Lock()
		if err != nil || ctx.Err() != nil || !more.wanted {
			delete(d.running, tenant)
			d.mu.Unlock()
			if err != nil {
				return total, fmt.Errorf("dispatch tenant %s: %w", partition(tenant), err)
			}
			return total, nil
		}
		more.wanted = false
		d.mu.Unlock()
	}
}

// Sweep delivers everything that is due, of all tenants: call it from a timer. It finds what no wake-up announces:
// retries, messages that a crashed process had claimed, lost wake-ups. Tenants take turns. Rows of before there were
// keys, of the tenants that are registered, are given theirs on the way (Backfill).
func (d *Dispatcher) Sweep(ctx context.Context) (Result, error) {
	var (
		group errgroup.Group
		mu    sync.Mutex
		total Result
		errs  []error
	)
	group.SetLimit(sweepWidth)
	for from, more := "", true; more && ctx.Err() == nil; more = from != "" {
		list, next, err := d.o.listTenants(ctx, from, sweepWidth)
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep: %w", err))
			break
		}
		for _, t := range list {
			group.Go(func() error {
				result, err := d.sweepTenant(ctx, t)
				mu.Lock()
				defer mu.Unlock()
				total.add(result)
				errs = append(errs, err)
				return nil
			})
		}
		from = next
	}
	_ = group.Wait() // the functions return none
	return total, errors.Join(append(errs, ctx.Err())...)
}

func (d *Dispatcher) sweepTenant(ctx context.Context, t knownTenant) (Result, error) {
	if !t.indexed {
		if _, err := NewAdmin(d.o).backfillAll(ctx, t.id); err != nil {
			return Result{}, err
		}
	}
	return d.Dispatch(ctx, t.id)
}

// destination is the state of a destination, made when it is first met. "" is that of events without a route.
func (d *Dispatcher) destination(name string) *destination {
	d.mu.Lock()
	defer d.mu.Unlock()
	to := d.destinations[name]
	if to == nil {
		o := d.o.options
		to = &destination{
			name:  name,
			depth: semaphore.NewWeighted(int64(depthFactor * o.BatchSize)),
			slots: semaphore.NewWeighted(int64(o.MaxPerDestination)),
			circuit: circuit{
				failures: o.CircuitFailures,
				cooldown: o.CircuitCooldown,
				changed:  func(open bool) { d.circuitChanged(name, open) },
			},
		}
		d.destinations[name] = to
	}
	return to
}

func (d *Dispatcher) circuitChanged(name string, open bool) {
	d.o.observe.Circuit(name, open)
	d.o.logger.Warn("outbox circuit changed", "destination", name, "open", open)
}

// add sums up.
func (r *Result) add(other Result) {
	r.Claimed += other.Claimed
	r.Delivered += other.Delivered
	r.Failed += other.Failed
	r.Dead += other.Dead
	r.Skipped += other.Skipped
	r.PutOff += other.PutOff
	r.Lost += other.Lost
}
