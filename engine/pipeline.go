package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// PoisonSuffix is the suffix that the Functions host adds to a queue's name to name its poison queue.
const PoisonSuffix = "-poison"

const (
	defaultElsewhereDelay = 30 * time.Second
	defaultConflictDelay  = 30 * time.Second
)

// Config configures a Pipeline. All fields but the last nine are required.
type Config struct {
	Definitions []Definition
	Runtime     *orchestrator.Runtime
	History     *History
	DeadLetters *DeadLetters
	Queues      queues.Store
	// Claims holds the inputs that are too large for a message. Without it, a message that refers to one is
	// dead-lettered.
	Claims *Claims
	// HostMaxDequeueCount is the number of deliveries after which the host abandons a message. It must be higher than
	// every engine's MaxAttempts, so that the engine's own limit applies first. 0 means unknown.
	HostMaxDequeueCount int
	// ElsewhereDelay is the delay of a requeued message whose orchestration runs in another process; the default is
	// 30 s.
	ElsewhereDelay time.Duration
	// Locks is the registry in which messages of singletons check the lock of their instance; without it, only their
	// orchestrations do.
	Locks Locks
	// ConflictDelay is the delay of a requeued message whose instance another run works on, or until the lock expires
	// if that is sooner; the default is 30 s.
	ConflictDelay time.Duration
	// Nodes represents this process among those of the app. Without it, work of a dead process continues when its
	// messages are redelivered.
	Nodes Nodes
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// Observe is called for every delivery whose fate is known, for counters and traces; nil is not called. It must
	// not block.
	Observe func(ctx context.Context, s Settled)
	// Log gets one line for every delivery; the default is slog.Default().
	Log *slog.Logger
}

// Pipeline handles deliveries. It is safe for concurrent use.
type Pipeline struct {
	config  Config
	byQueue map[string]Definition
	byName  map[string]Definition
	counts  counts
}

// NewPipeline makes a Pipeline. It returns all errors of the configuration.
func NewPipeline(c Config) (*Pipeline, error) {
	if c.ElsewhereDelay == 0 {
		c.ElsewhereDelay = defaultElsewhereDelay
	}
	if c.ConflictDelay == 0 {
		c.ConflictDelay = defaultConflictDelay
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = redact.Logger(c.Log)
	p := &Pipeline{config: c, byQueue: map[string]Definition{}, byName: map[string]Definition{}}
	var errs []error
	if c.Runtime == nil || c.History == nil || c.DeadLetters == nil || c.Queues == nil {
		errs = append(errs, errors.New("runtime, history, dead letters and queues are required"))
	}
	for _, d := range c.Definitions {
		d = d.withDefaults()
		errs = append(errs, d.validate())
		if _, taken := p.byQueue[d.Queue]; taken || p.byName[d.Name].Name != "" {
			errs = append(errs, fmt.Errorf("engine %s: its name or its queue %s belongs to another engine, too", d.Name, d.Queue))
		}
		if c.HostMaxDequeueCount != 0 && c.HostMaxDequeueCount <= d.MaxAttempts {
			errs = append(errs, fmt.Errorf("engine %s: the host gives up after %d deliveries: set maxDequeueCount in host.json above %d",
				d.Name, c.HostMaxDequeueCount, d.MaxAttempts))
		}
		p.byQueue[d.Queue], p.byName[d.Name] = d, d
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("engine pipeline: %w", err)
	}
	return p, nil
}

// Prepare creates the missing tables, engine queues and poison queues, those of the runtime included.
func (p *Pipeline) Prepare(ctx context.Context) error {
	var errs []error
	for _, step := range p.Preparations() {
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}

// Preparations returns the steps of Prepare, for callers that run them in parallel: the steps are independent.
func (p *Pipeline) Preparations() []func(context.Context) error {
	rt := p.config.Runtime
	names := []string{rt.SignalQueue() + PoisonSuffix, rt.ScheduleQueue() + PoisonSuffix, rt.ActivityQueue() + PoisonSuffix}
	for queue := range p.byQueue {
		names = append(names, queue, queue+PoisonSuffix)
	}
	steps := []func(context.Context) error{p.config.History.CreateTable, p.config.DeadLetters.CreateTable, p.config.Claims.createContainer}
	for _, name := range names {
		steps = append(steps, func(ctx context.Context) error { return p.config.Queues.CreateQueue(ctx, name) })
	}
	return steps
}

// Handle handles one delivery (standard, sections 1.2 to 1.7). A nil error means that the delivery may be
// acknowledged; an error means that the message has to be redelivered. The end of ctx bounds the work: an unfinished
// message is requeued.
func (p *Pipeline) Handle(ctx context.Context, d Delivery) error {
	return p.handleDelivery(ctx, d, (*attempt).handle)
}

// HandlePoison dead-letters a message that the host abandoned (standard, section 1.7), unless it is one already, or
// the run has succeeded after all.
func (p *Pipeline) HandlePoison(ctx context.Context, d Delivery) error {
	d.Queue = strings.TrimSuffix(d.Queue, PoisonSuffix)
	return p.handleDelivery(ctx, d, (*attempt).handlePoison)
}

func (p *Pipeline) handleDelivery(ctx context.Context, d Delivery, settle func(*attempt, context.Context)) error {
	def, ok := p.byQueue[d.Queue]
	if !ok {
		return fmt.Errorf("no engine has the queue %s: its trigger function belongs to another deployment context", d.Queue)
	}
	v := p.newAttempt(def, d)
	if v.decodeErr == nil {
		tellReport(ctx, v.ids()...)
	}
	settle(v, ctx)
	v.report(ctx)
	return v.err
}
