package outbox

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// depthFactor is the number of claimed batches for one destination, one per tenant. Other tenants wait in line, so no
	// tenant can block the others by its number of messages.
	depthFactor = 4
	// sweepWidth is the number of tenants that a sweep works on concurrently.
	sweepWidth = 256
)

// DeadReason is the reason why a message became dead.
type DeadReason string

// These are the reasons.
const (
	ReasonExhausted DeadReason = "AttemptsExhausted" // it failed MaxRetries times
	ReasonPermanent DeadReason = "Permanent"         // the destination refused it permanently
	// ReasonMisconfigured: it is not dead, but waits for a configuration with which it can be sent, and then continues by
	// itself
	ReasonMisconfigured DeadReason = "Misconfigured"
)

// Result counts the work of a Dispatcher.
type Result struct {
	// Claimed counts the claimed messages; the other numbers are their outcomes.
	Claimed   int
	Delivered int // delivered and settled
	Failed    int // will be retried, those that wait for configuration included
	Dead      int
	Skipped   int // found processed already
	PutOff    int // not tried, because the circuit was open, or the claim or the time ended
	Lost      int // the claim was lost before the settlement
}

// DispatcherConfig configures a Dispatcher.
type DispatcherConfig struct {
	// Router is required.
	Router *Router
	// Enter is called by a sweep that has found an open tenant, before its work: the sweep then works in the returned
	// context and calls leave at the end. An error, or the cause with which that context ends, is returned by Sweep, and
	// leaves all tenants unchanged. nil admits all sweeps. A sweep without work does not call it.
	Enter func(ctx context.Context) (work context.Context, leave func(), err error)
	// Circuits is called with the open circuits whenever one opens, fails a try, or closes: MaxCircuits at most, by the
	// names of their destinations. Calls are serialized and must not block. It may be nil.
	Circuits func(open []OpenCircuit)
}

// Dispatcher delivers due messages (outbox document, "Dispatcher Behavior"). Any number of dispatchers may work on one
// outbox. A Dispatcher is safe for concurrent use, and does nothing between calls, except for the deliveries of its
// Writer.
type Dispatcher struct {
	o      *Outbox
	router *Router
	enter  func(ctx context.Context) (work context.Context, leave func(), err error)
	slots  *semaphore.Weighted

	circuits func(open []OpenCircuit)
	telling  sync.Mutex // held while circuits is called

	mu           sync.Mutex
	destinations map[string]*destination
	// running holds the tenants that are being processed.
	running map[string]*rerun

	round  round
	direct *direct
}

// rerun records that another call for the tenant came while it was being processed.
type rerun struct{ wanted bool }

// destination is the state of one destination in this Dispatcher.
type destination struct {
	name string
	// depth bounds the claimed messages, slots the deliveries.
	depth, slots *semaphore.Weighted
	circuit      circuit
}

// NewDispatcher returns a Dispatcher. The error is an ErrInvalid.
func NewDispatcher(o *Outbox, c DispatcherConfig) (*Dispatcher, error) {
	if c.Router == nil {
		return nil, fmt.Errorf("new dispatcher: %w: Router is needed", ErrInvalid)
	}
	d := &Dispatcher{
		o:            o,
		router:       c.Router,
		enter:        c.Enter,
		circuits:     c.Circuits,
		slots:        semaphore.NewWeighted(int64(o.options.MaxConcurrency)),
		destinations: map[string]*destination{},
		running:      map[string]*rerun{},
	}
	d.direct = newDirect(d)
	return d, nil
}

// Dispatch delivers the due messages of a tenant. Call it for every wake-up message. It returns when no message is due,
// or soon after the end of ctx: started deliveries then have DeliveryTimeout to end, and no other starts. While another
// call works on the tenant, Dispatch leaves the work to that call and returns immediately. An error interrupts the work
// without losing messages.
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

// destination returns the state of a destination, and makes it on first use. "" is the destination of events without a
// route.
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
				moved:    d.tellCircuits,
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

// add adds another result.
func (r *Result) add(other Result) {
	r.Claimed += other.Claimed
	r.Delivered += other.Delivered
	r.Failed += other.Failed
	r.Dead += other.Dead
	r.Skipped += other.Skipped
	r.PutOff += other.PutOff
	r.Lost += other.Lost
}
