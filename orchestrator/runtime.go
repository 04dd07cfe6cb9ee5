package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Config says what a Runtime works with. Tables and Blobs are required.
type Config struct {
	Tables tables.Store
	Blobs  blobs.Store
	// Table and Container hold the orchestrations; default "orchestrations" for both. IndexTable finds those that are
	// parked, and TaskTable the human tasks; default "orchestrationsParked" and "orchestrationTasks".
	Table      string
	Container  string
	IndexTable string
	TaskTable  string
	// Orchestrators and Activities are what this process can run; names are unique.
	Orchestrators []AnyOrchestrator
	Activities    []AnyActivity
	// Queues carries signals; without it, orchestrations cannot wait for events, and what they wait for beyond the time of
	// a Run is the caller's to wait for. SignalQueue is for what is due now, ScheduleQueue for what is due later, and
	// ActivityQueue for activities that are too many for one process; default "orchestration-signals",
	// "orchestration-schedules" and "orchestration-activities".
	Queues        queues.Store
	SignalQueue   string
	ScheduleQueue string
	ActivityQueue string
	// SpreadAbove is how many activities of one orchestration run at once in this process before others get the rest;
	// default 1,000.
	SpreadAbove int
	// InlineWait is how far away a timer may be that Run waits for, when there are queues to wake it; default 30 s.
	InlineWait time.Duration
	// Publish takes the events that orchestrations publish, after the round that did. It may get the same again, and knows
	// them by tenant and key. Without it, Context.Publish is an error.
	Publish func(ctx context.Context, events []Publication) error
	// Ended is called when a signal has brought an orchestration without a parent to its end, before the signal is
	// acknowledged. An error brings the signal again. It is called, too, before the next run under an id begins
	// (ReuseEnded), with the end of the one before it, which may have been told already.
	Ended func(ctx context.Context, out Outcome) error
	// Noted hears of every orchestration that begins, and of every change of a status, once that is durable. It is called
	// by whoever commits a round, so it must not wait; what a crash keeps from it, nobody tells it. Optional.
	Noted func(n Note)
	// Node names this process in what it writes; default host name and process id.
	Node string
	// ProgressInterval is how often the progress that an activity's heartbeats tell is recorded; default 30 s.
	ProgressInterval time.Duration
	// LostAfter is after what time an orchestration that waits for others of this program is looked after, in case that
	// their message is lost; default 1 h. LateAfter is the same for one whose timer is overdue; default 5 min.
	LostAfter time.Duration
	LateAfter time.Duration
	// MaxActivities bounds the activities that run at once in this process; default 64.
	MaxActivities int
	// Linger is how long a result that leads to no decision waits for others, so that they share a round; default 250 ms.
	// LingerResults bounds how many such results wait; default 100. A crash loses what waits, and those activities run
	// again.
	Linger        time.Duration
	LingerResults int
	// Grace is how long activities may take to return once their time is over; default 2 s.
	Grace time.Duration
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Log takes what the runtime and the orchestrators log; default slog.Default().
	Log *slog.Logger
}

// Runtime runs orchestrations. It is safe for concurrent use and has nothing to close: everything it does belongs to a
// call of Run.
type Runtime struct {
	config        Config
	journal       *journal
	orchestrators map[string]AnyOrchestrator // by name, the version that was registered last
	versions      map[version]AnyOrchestrator
	activities    map[string]AnyActivity
	slots         chan struct{} // one for each running activity

	mu     sync.Mutex
	active map[string]*driver // by orchestration id: at most one in a process
	counts Counts
	past   []string // rows of the index that say nothing any more
}

// version is an orchestrator's name and the version of its code.
type version struct{ name, version string }

// Counts is what a Runtime has seen since it was made.
type Counts struct {
	// Stale signals were about something that is over, Duplicates brought what had been brought before. Both are dropped.
	Stale, Duplicates int
	// Conflicts are rounds that another process committed first.
	Conflicts int
	// Woken orchestrations were overdue, and driven again by the sweeper.
	Woken int
}

// Counts tells what the runtime has seen.
func (r *Runtime) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

func (r *Runtime) tally(add func(*Counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.counts)
}

// New checks the configuration and names everything that is wrong with it.
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
	}
	var errs []error
	if c.Tables == nil || c.Blobs == nil {
		errs = append(errs, errors.New("tables and blobs are required"))
	}
	if c.MaxActivities < 1 || c.SpreadAbove < 1 || c.LingerResults < 1 || c.Linger < 0 || c.Grace < 0 ||
		c.ProgressInterval < 0 || c.LostAfter < 0 || c.LateAfter < 0 {
		errs = append(errs, errors.New("numbers and times must be positive"))
	}
	for _, o := range c.Orchestrators {
		if o == nil || o.Name() == "" {
			errs = append(errs, errors.New("an orchestrator needs a name"))
			continue
		}
		v := version{o.Name(), o.configured().version}
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
	return r, nil
}

func (c Config) withDefaults() Config {
	setDefault(&c.Table, "orchestrations")
	setDefault(&c.Container, "orchestrations")
	setDefault(&c.IndexTable, "orchestrationsParked")
	setDefault(&c.TaskTable, "orchestrationTasks")
	setDefault(&c.SignalQueue, "orchestration-signals")
	setDefault(&c.ScheduleQueue, "orchestration-schedules")
	setDefault(&c.ActivityQueue, "orchestration-activities")
	setDefault(&c.SpreadAbove, 1000)
	setDefault(&c.ProgressInterval, 30*time.Second)
	setDefault(&c.LostAfter, time.Hour)
	setDefault(&c.LateAfter, 5*time.Minute)
	setDefault(&c.InlineWait, 30*time.Second)
	setDefault(&c.MaxActivities, 64)
	setDefault(&c.Linger, 250*time.Millisecond)
	setDefault(&c.LingerResults, 100)
	setDefault(&c.Grace, 2*time.Second)
	if c.Node == "" {
		host, _ := os.Hostname() // without one, the process id has to do
		c.Node = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// SignalQueue is the name of the queue that signals come through at once, ScheduleQueue of that for those that are due
// later, and ActivityQueue of that for activities that any process may run.
func (r *Runtime) SignalQueue() string { return r.config.SignalQueue }

// ScheduleQueue is the name of the queue of signals that are due later.
func (r *Runtime) ScheduleQueue() string { return r.config.ScheduleQueue }

// ActivityQueue is the name of the queue of activities that any process may run.
func (r *Runtime) ActivityQueue() string { return r.config.ActivityQueue }

// Node is what this process is called in what it writes.
func (r *Runtime) Node() string { return r.config.Node }

// Prepare creates the tables, the container and the queues that are missing.
func (r *Runtime) Prepare(ctx context.Context) error {
	errs := []error{r.config.Tables.CreateTable(ctx, r.config.Table), r.config.Blobs.CreateContainer(ctx, r.config.Container)}
	if r.config.Queues != nil {
		errs = append(errs, r.config.Tables.CreateTable(ctx, r.config.IndexTable), r.config.Tables.CreateTable(ctx, r.config.TaskTable))
		for _, queue := range []string{r.config.SignalQueue, r.config.ScheduleQueue, r.config.ActivityQueue} {
			errs = append(errs, r.config.Queues.CreateQueue(ctx, queue))
		}
	}
	return errors.Join(errs...)
}

// pinned is the orchestrator in the version that an execution began with.
func (r *Runtime) pinned(started event) (AnyOrchestrator, error) {
	o := r.versions[version{started.Name, started.Version}]
	switch {
	case o != nil:
		return o, nil
	case started.Version != "" && r.orchestrators[started.Name] != nil:
		return nil, fmt.Errorf("%q began in the version %q, register that, too: %w", started.Name, started.Version, ErrUnknownOrchestrator)
	default:
		return nil, fmt.Errorf("%q: %w", started.Name, ErrUnknownOrchestrator)
	}
}

// Start says which orchestration to run.
type Start struct {
	// ID identifies the orchestration, at most 400 bytes of UTF-8.
	ID string
	// Orchestrator is the name of the registered function, Input its argument as JSON.
	Orchestrator string
	Input        json.RawMessage
	// CorrelationID is handed to everything that the orchestration starts. It is part of its identity: another one under
	// the same id is ErrConflict.
	CorrelationID string
	// Carry is handed on to every Outcome, up to 48 KiB: what the caller needs to settle an end that comes by a signal.
	Carry []byte
	// Timeout bounds each execution: one that has not ended then fails with the code TimedOut, wherever it waits. 0 does
	// not.
	Timeout time.Duration
	// Parent is the id of the orchestration that calls, "" for none.
	Parent string
	// Reference is what the business calls what the orchestration works on; optional.
	Reference *Reference
	// Reuse says what Runtime.Start does when the id is taken, and RequestID makes it the same start when it is repeated.
	// Of these, Run knows ReuseEnded only: runs with different correlation ids then share the id, one after the other.
	Reuse     Reuse
	RequestID string
	// deliver says that the orchestration has to exist: a signal wakes it.
	deliver bool
	// Resume is a hint that the orchestration exists. It saves a transaction when right and costs one when wrong.
	Resume bool
}

// maxCarry bounds Start.Carry, in bytes.
const maxCarry = 48 << 10

// validID says whether table keys and blob names can be made of an id.
func validID(id string) bool {
	return id != "" && len(id) <= 400 && len(tables.EscapeKey(id)) <= 512 && utf8.ValidString(id)
}

func (s Start) validate() error {
	switch {
	case !validID(s.ID):
		return fmt.Errorf("the orchestration id needs 1 to 400 bytes of UTF-8, not %d", len(s.ID))
	case len(s.Carry) > maxCarry:
		return fmt.Errorf("orchestration %s carries %d bytes, at most %d: %w", s.ID, len(s.Carry), maxCarry, tables.ErrTooLarge)
	case !json.Valid(s.Input) || !utf8.Valid(s.Input):
		return fmt.Errorf("the input of orchestration %s is not JSON in UTF-8", s.ID)
	}
	return s.Reference.validate()
}

// Run starts an orchestration, or resumes it where its last round ended, and drives it until it ends, until it has
// nothing to do for longer than ctx lasts, or until ctx ends. One that completed before is only looked up. One that
// failed goes on as its next execution.
//
// With ReuseEnded, an id has one run at a time: another correlation id than that of the latest execution begins the next,
// once Config.Ended has taken the end of the latest, and is ErrConflict until that has ended. A run that has completed is
// looked up for as long as the one after it is the latest.
//
// The error is about driving, not about the orchestration, which ends with Outcome.Failure: ErrElsewhere, ErrConflict,
// ErrUnknownOrchestrator, ErrUnknownActivity, ErrCorrupt, a *DeterminismError, or what storage said. After an error, Run may be repeated.
func (r *Runtime) Run(ctx context.Context, s Start) (Outcome, error) {
	if err := s.validate(); err != nil {
		return Outcome{}, err
	}
	o := r.orchestrators[s.Orchestrator]
	if o == nil {
		return Outcome{}, fmt.Errorf("orchestration %s: %q: %w", s.ID, s.Orchestrator, ErrUnknownOrchestrator)
	}
	for {
		d, joined := r.enter(ctx, s, o, nil)
		if joined && !d.asked.deliver && d.asked.CorrelationID != s.CorrelationID {
			return Outcome{}, fmt.Errorf("orchestration %s runs for correlation id %s: %w", s.ID, d.asked.CorrelationID, ErrConflict)
		}
		select {
		case <-d.finished:
		case <-ctx.Done():
			if joined {
				return Outcome{ID: s.ID, CorrelationID: s.CorrelationID, Status: Running, Joined: true, ResumeAt: r.config.Now()}, nil
			}
			<-d.finished // it has seen the end of ctx too
		}
		if joined && d.asked.deliver && ctx.Err() == nil {
			continue // a signal may do less than a start: it begins nothing, and revives nothing
		}
		out := d.outcome
		out.Joined = joined
		return out, d.err
	}
}

// Get tells where an orchestration stands, from its rounds alone: ErrNotFound, ErrCorrupt, or what storage said.
func (r *Runtime) Get(ctx context.Context, id string) (Outcome, error) {
	all, err := r.loadKnown(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	return outcomeOf(id, all), nil
}

// outcomeOf is the latest execution, with those that failed before it.
func outcomeOf(id string, all []generation) Outcome {
	last := len(all) - 1
	out := summarize(id, all[last])
	for _, g := range all[:last] {
		out.Earlier = append(out.Earlier, summarize(id, g))
	}
	return out
}

// loadKnown reads an orchestration that there has to be.
func (r *Runtime) loadKnown(ctx context.Context, id string) ([]generation, error) {
	all, err := r.journal.load(ctx, id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
	}
	return all, err
}

// enter finds the driver of an orchestration in this process, or makes one. A delivery is handed to either.
func (r *Runtime) enter(ctx context.Context, s Start, o AnyOrchestrator, v *delivery) (d *driver, joined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.active[s.ID]; d != nil {
		d.hand(v)
		return d, true
	}
	d = newDriver(r, s, o)
	d.hand(v)
	r.active[s.ID] = d
	go func() {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.active, s.ID)
			close(d.finished)
		}()
		d.run(ctx)
	}()
	return d, false
}
