package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Runtime runs orchestrations. It is safe for concurrent use. It does nothing between calls. Close only matters with
// Config.CachedEvents.
type Runtime struct {
	config        Config
	journal       *journal
	orchestrators map[string]AnyOrchestrator // by name, the version that was registered last
	versions      map[version]AnyOrchestrator
	activities    map[string]AnyActivity
	slots         chan struct{} // one slot for each running activity
	roundBudget   roundBudget
	columnNames   columnNames

	mu             sync.Mutex
	active         map[string]*driver // by orchestration id: at most one driver each
	cache          cache
	blocked        map[string]error // causes of blocked orchestrator code, by orchestration id
	running        runningCalls
	counts         Counts
	obsoleteParked []string // obsolete rows of the index

	reviewFrom string // starting point of the next review of damaged orchestrations
}

// version is an orchestrator's name and version.
type version struct{ name, version string }

func (v version) check() error {
	if err := checkName("an orchestrator", v.name); err != nil || v.version == "" {
		return err
	}
	return checkName("a version of orchestrator "+v.name, v.version)
}

// Counts holds the counters of a Runtime since New.
type Counts struct {
	// Stale signals concerned work that had ended. Duplicates repeated signals that had been applied. Both are
	// dropped.
	Stale, Duplicates int
	// Conflicts are rounds that another process committed first.
	Conflicts int
	// Woken counts overdue orchestrations that the sweeper woke.
	Woken int
	// Damaged counts how often an orchestration could not be read.
	Damaged int
}

// Counts returns the current counters.
func (r *Runtime) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

func (r *Runtime) count(add func(*Counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.counts)
}

// New makes a Runtime. The error lists every mistake in the configuration.
func New(c Config) (*Runtime, error) {
	c = c.withDefaults()
	r := &Runtime{
		config:        c,
		journal:       &journal{tables: c.Tables, blobs: c.Blobs, table: c.Table, container: c.Container},
		orchestrators: map[string]AnyOrchestrator{},
		versions:      map[version]AnyOrchestrator{},
		activities:    map[string]AnyActivity{},
		slots:         make(chan struct{}, max(c.MaxActivities, 1)),
		active:        map[string]*driver{},
		cache:         cache{most: c.CachedEvents},
		blocked:       map[string]error{},
		roundBudget:   defaultRoundBudget(),
	}
	var errs []error
	if c.Tables == nil || c.Blobs == nil {
		errs = append(errs, errors.New("tables and blobs are required"))
	}
	if c.MaxActivities < 1 || c.MaxInlineActivities < 1 || c.LingerResults < 1 || c.Linger < 0 || c.Grace < 0 || c.TurnTimeout < 0 ||
		c.ProgressInterval < 0 || c.CachedEvents < 0 || c.LostAfter < 0 || c.LateAfter < 0 || c.KeepEarly < 0 {
		errs = append(errs, errors.New("numbers and times must be positive"))
	}
	for _, o := range c.Orchestrators {
		if o == nil {
			errs = append(errs, errors.New("an orchestrator is nil"))
			continue
		}
		v := version{o.Name(), o.configured().version}
		if err := v.check(); err != nil {
			errs = append(errs, err)
			continue
		}
		if r.versions[v] != nil {
			errs = append(errs, fmt.Errorf("orchestrator %s is registered twice in the version %q", v.name, v.version))
		}
		r.versions[v], r.orchestrators[o.Name()] = o, o
	}
	for _, a := range c.Activities {
		if err := a.check(); err != nil {
			errs = append(errs, err)
			continue
		}
		if r.activities[a.Name()] != nil {
			errs = append(errs, fmt.Errorf("activity %s is registered twice", a.Name()))
		}
		r.activities[a.Name()] = a
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("orchestrator runtime: %w", err)
	}
	r.columnNames = newColumnNames(c)
	return r, nil
}

// SignalQueue is the name of the queue of signals that are due now.
func (r *Runtime) SignalQueue() string { return r.config.SignalQueue }

// ScheduleQueue is the name of the queue of signals that are due later.
func (r *Runtime) ScheduleQueue() string { return r.config.ScheduleQueue }

// ActivityQueue is the name of the queue of activities that any process may run.
func (r *Runtime) ActivityQueue() string { return r.config.ActivityQueue }

// Node returns the name that this process writes into rounds and rows. It may change, see Nodes.
func (r *Runtime) Node() string {
	if r.config.Nodes != nil {
		return r.config.Nodes.Name()
	}
	return r.config.Node
}

// Prepare creates the tables, the container and the queues if they are missing.
func (r *Runtime) Prepare(ctx context.Context) error {
	var errs []error
	for _, step := range r.Preparations() {
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}

// Preparations returns the steps of Prepare. They are independent, so callers may run them at the same time.
func (r *Runtime) Preparations() []func(context.Context) error {
	table := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { return r.config.Tables.CreateTable(ctx, name) }
	}
	steps := []func(context.Context) error{table(r.config.Table), func(ctx context.Context) error { return r.config.Blobs.CreateContainer(ctx, r.config.Container) }}
	if r.config.Queues == nil {
		return steps
	}
	steps = append(steps, table(r.config.IndexTable), table(r.config.TaskTable))
	for _, queue := range []string{r.config.SignalQueue, r.config.ScheduleQueue, r.config.ActivityQueue} {
		steps = append(steps, func(ctx context.Context) error { return r.config.Queues.CreateQueue(ctx, queue) })
	}
	return steps
}

// pinned returns the orchestrator in the version with which an execution began.
func (r *Runtime) pinned(started event) (AnyOrchestrator, error) {
	pinned := started.start().Version
	o := r.versions[version{started.Name, pinned}]
	switch {
	case o != nil:
		return o, nil
	case pinned != "" && r.orchestrators[started.Name] != nil:
		return nil, fmt.Errorf("%q began in the version %q, register that, too: %w", started.Name, pinned, ErrUnknownOrchestrator)
	default:
		return nil, fmt.Errorf("%q: %w", started.Name, ErrUnknownOrchestrator)
	}
}

// Run starts an orchestration, or resumes it from its last round. It drives the orchestration until it ends, until it
// has nothing to do for longer than ctx lasts, or until ctx ends. Run only looks up a completed orchestration. For a
// failed one, it makes another attempt.
//
// With ReuseEnded, an id has one run at a time. A Start with another correlation id than the latest execution's begins
// the next run, once Config.Ended has accepted the end of the latest. Until the latest has ended, the error is
// ErrConflict. A completed run can be looked up until the run after the next begins.
//
// The error is about driving, not about the orchestration: Outcome.Failure is the orchestration's error. It is
// ErrElsewhere, ErrConflict, ErrUnknownOrchestrator, ErrCorrupt, or an error of storage; after any of these, Run may
// be repeated. ErrStalled means that the code cannot continue. The error also wraps the cause: a *DeterminismError, a
// *BlockedError, ErrUnknownActivity, or ErrUnknownOrchestrator for a version. A stalled orchestration needs no Run:
// the sweeper continues it when the code is fixed.
func (r *Runtime) Run(ctx context.Context, s Start) (Outcome, error) {
	o, err := r.startable(s)
	if err != nil {
		return Outcome{}, err
	}
	for {
		d, joined := r.join(ctx, s, o, nil)
		if joined && !d.request.deliver && d.request.CorrelationID != s.CorrelationID {
			return Outcome{}, fmt.Errorf("orchestration %s runs for correlation id %s: %w", s.ID, d.request.CorrelationID, ErrConflict)
		}
		select {
		case <-d.finished:
		case <-ctx.Done():
			if joined {
				return Outcome{ID: s.ID, CorrelationID: s.CorrelationID, Status: Running, Joined: true, ResumeAt: r.config.Now()}, nil
			}
			d.await(ctx) // the driver has the same ctx, so it finishes soon
		}
		if joined && d.request.deliver && ctx.Err() == nil {
			continue // a driver for a signal does less than one for a start: it starts nothing and retries nothing
		}
		out := d.outcome
		if !mayRepeat(s.TenantID, out.TenantID) { // it joined another Run, or the run is over
			return Outcome{}, otherTenant(s.ID)
		}
		if joined && d.err == nil {
			if err := s.checkSame(out.Carry); err != nil {
				return Outcome{}, err
			}
		}
		out.Joined = joined
		r.noteDamage(ctx, d.err)
		return out, d.err
	}
}

// runChild is Run for a call of a sub-orchestration by an orchestration of this process.
func (r *Runtime) runChild(ctx context.Context, s Start) (Outcome, error) {
	o, err := r.startable(s)
	if err != nil {
		return Outcome{}, err
	}
	for {
		d, joined := r.join(ctx, s, o, nil)
		if !joined {
			d.await(ctx)
			return d.outcome, d.err
		}
		select {
		case <-d.finished: // the driver may have been made for something else, so the rounds decide
			s.Resume = true
		case <-ctx.Done():
			return Outcome{ID: s.ID, Status: Running, ResumeAt: r.config.Now()}, nil
		}
	}
}

// startable validates a Start and returns its orchestrator.
func (r *Runtime) startable(s Start) (AnyOrchestrator, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if o := r.versionFor(s); o != nil {
		return o, nil
	}
	if s.Version != "" {
		return nil, fmt.Errorf("orchestration %s: version %q of %q: %w", s.ID, s.Version, s.Orchestrator, ErrUnknownOrchestrator)
	}
	return nil, fmt.Errorf("orchestration %s: %q: %w", s.ID, s.Orchestrator, ErrUnknownOrchestrator)
}

// versionFor returns the orchestrator that a start requests; nil if it is not registered.
func (r *Runtime) versionFor(s Start) AnyOrchestrator {
	if s.Version == "" {
		return r.orchestrators[s.Orchestrator]
	}
	return r.versions[version{s.Orchestrator, s.Version}]
}

// Get returns the state of an orchestration, from its rounds alone. The error is ErrNotFound, ErrCorrupt, or an error
// of storage.
func (r *Runtime) Get(ctx context.Context, id string) (Outcome, error) {
	all, err := r.loadKnown(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	return outcomeOf(id, all), nil
}

// outcomeOf returns the outcome of the latest execution, with those of the earlier ones.
func outcomeOf(id string, all []storedExecution) Outcome {
	last := len(all) - 1
	out := summarize(id, all[last])
	for _, g := range all[:last] {
		out.Earlier = append(out.Earlier, summarize(id, g))
	}
	return out
}

// loadKnown loads an orchestration that must exist.
func (r *Runtime) loadKnown(ctx context.Context, id string) ([]storedExecution, error) {
	if !validID(id) {
		return nil, fmt.Errorf("orchestration %.400q: %w", id, ErrNotFound)
	}
	all, err := r.journal.load(ctx, id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
	}
	return all, err
}

// join returns the driver of an orchestration in this process, or starts one, and gives it the delivery.
func (r *Runtime) join(ctx context.Context, s Start, o AnyOrchestrator, v *delivery) (d *driver, joined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.active[s.ID]; d != nil {
		d.enqueue(v)
		return d, true
	}
	d = newDriver(r, s, o)
	d.release = r.Hold(s.ID)
	d.blocked = r.blocked[s.ID]
	d.enqueue(v)
	r.active[s.ID] = d
	go d.run(ctx)
	return d, false
}

// await waits until the driver has finished. ctx is the driver's own; when it ends, await makes the driver hand over.
func (d *driver) await(ctx context.Context) {
	select {
	case <-d.finished:
		return
	case <-ctx.Done():
		d.handOver()
	}
	<-d.finished
}

// finish removes a driver and publishes its outcome, once.
func (r *Runtime) finish(d *driver, out Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[d.request.ID] != d {
		return
	}
	delete(r.active, d.request.ID)
	d.release()
	d.outcome, d.err = out, err
	close(d.finished)
}
