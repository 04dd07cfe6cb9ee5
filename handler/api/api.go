package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/handler/api/health"
	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/handler/api/timeline"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
)

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 30 * time.Second

// maxBody bounds the bytes read of a request's body.
const maxBody = 256 << 10

// Config configures the API.
type Config struct {
	// History and DeadLetters are the tables; both are required.
	History     *engine.History
	DeadLetters *engine.DeadLetters
	// Operations runs bulk operations; without it, the paths of operations do not exist. Retrier, Runtime, and Outbox
	// with Snapshot, which measures it, need it; without one of them, its paths do not exist.
	Operations *bulk.Operations
	Retrier    *engine.Retrier
	Outbox     *outbox.Admin
	Snapshot   func(context.Context) (outbox.Snapshot, error)
	// Backlog counts the waiting messages of the outbox, as outbox.Dispatcher does; without it, its path does not
	// exist.
	Backlog func(ctx context.Context, tenant string) (outbox.Backlog, error)
	// Door authenticates callers, and records their changes; required.
	Door access.Door
	// Tasks are the human tasks; without them, their paths do not exist.
	Tasks *tasks.Service
	// Schedules are those of the engines; without them, their paths do not exist. Result, if it is set, returns the
	// state of their messages, as engine.Pipeline.Result does.
	Schedules *schedule.Scheduler
	Result    func(ctx context.Context, engine string, m engine.Message) (engine.Result, error)
	// Nodes lists the processes of the app, as nodes.List does; without it, neither its path nor that of the outbox's
	// circuits, which nodes report, exists.
	Nodes func(ctx context.Context) ([]nodes.Info, error)
	// Owner is engine.Pipeline.Owner. Callers of one tenant start engines only on data of that tenant; without it,
	// they start none.
	Owner func(ctx context.Context, engine string, m engine.Message, instanceTenant string) (tenant string, known bool, err error)
	// Registry is the registry of managed instances; without it, its paths do not exist. Placement names the app's
	// own instance; nil means none.
	Registry  *registry.Registry
	Placement *engine.Placement
	// RunID returns the id of a message's run, as engine.Pipeline.RunID does; without it, timelines find runs by List
	// only. EventID returns the outbox id of a run's event with a key; without it, timelines have no deliveries.
	RunID   func(engine string, m engine.Message) string
	EventID func(tenantID, eventType, key string) string
	// Runtime runs the orchestrations; without it, and without Operations, their paths do not exist. Admit, if it is
	// set, prepares a start for its orchestrator, or refuses it, as engine.Pipeline.Admit does.
	Runtime *orchestrator.Runtime
	Admit   func(ctx context.Context, s orchestrator.Start) (orchestrator.Start, error)
	// List lists orchestrations, as catalog.Catalog does; nil means Runtime.List, which reads all their rounds.
	List func(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error)
	// Metrics serves scrapes, and Health serves probes; the path of one that is nil does not exist.
	Metrics *metrics.Metrics
	Health  *health.Checks
	// Pollers are the pollers of databases; without them, their paths do not exist. PollerCounts, if it is set,
	// returns the counts of this process, by poller.
	Pollers      *admin.Admin
	PollerCounts func() map[string]poller.Counters
	// Consumers are the consumers of the engines' rotated credentials, by engine; nil leaves their path out.
	Consumers map[string]*consumers.Consumers
	// Credentials lists the engines' expiring credentials, by engine, cached for some minutes; nil leaves its path
	// out.
	Credentials func(ctx context.Context) (map[string][]engine.Credential, error)
	// Engines are the engines of the app, at least one. Lists of history and dead letters also show engines that
	// were registered with the storage account before.
	Engines []string
	// Descriptions describe the engines of the app.
	Descriptions []engine.Description
	// Timeout bounds one request; 0 means DefaultTimeout.
	Timeout time.Duration
	// Now is the clock of the envelopes; nil means time.Now.
	Now func() time.Time
	// Log gets one record for every answer of 500 and above; nil means no log.
	Log *slog.Logger
}

// Validate returns all errors of the configuration, joined into one.
func (c Config) Validate() error {
	errs := []error{c.Door.Validate()}
	if c.History == nil || c.DeadLetters == nil {
		errs = append(errs, errors.New("both tables are needed"))
	}
	if (c.Outbox == nil) != (c.Snapshot == nil) {
		errs = append(errs, errors.New("the outbox and its snapshot are needed together"))
	}
	if c.Operations == nil && (c.Outbox != nil || c.Retrier != nil || c.Runtime != nil) {
		errs = append(errs, errors.New("the outbox, the retrier and the runtime need operations"))
	}
	if len(c.Engines) == 0 || slices.Contains(c.Engines, "") {
		errs = append(errs, errors.New("name at least one engine, and none without a name"))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %v: it must not be negative", c.Timeout))
	}
	return errors.Join(errs...)
}

// api is the shared state of the endpoints.
type api struct {
	history *engine.History
	letters *engine.DeadLetters
	retrier *engine.Retrier
	outbox  *outbox.Admin
	bulk    *bulk.Operations
	measure func(context.Context) (outbox.Snapshot, error)
	backlog func(ctx context.Context, tenant string) (outbox.Backlog, error)
	metrics *metrics.Metrics
	health  *health.Checks
	runtime *orchestrator.Runtime
	admit   func(ctx context.Context, s orchestrator.Start) (orchestrator.Start, error)
	list    func(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error)
	engines []string
	// consumers are the consumers of the engines that rotate credentials.
	consumers map[string]*consumers.Consumers
	// keeps lists the engines' expiring credentials.
	keeps func(ctx context.Context) (map[string][]engine.Credential, error)
	// descriptions are those of the app's engines.
	descriptions []engine.Description

	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger

	timelines *timeline.Reader
	owners    Owners
	tasks     *tasks.Service
	registry  *registry.Registry
	placement *engine.Placement
	schedules *schedule.Scheduler
	nodes     func(ctx context.Context) ([]nodes.Info, error)
	pollers   *pollers
	result    func(ctx context.Context, engine string, m engine.Message) (engine.Result, error)
	door      access.Door
}

// endpoint answers one method of one resource: with a reply, or an error that failureOf understands.
type endpoint func(ctx context.Context, r *request) (reply, error)

// part is a part of the API that a Config can leave out.
type part int

const (
	engines part = iota // this part always exists
	retries
	operations
	listedOperations // parts that also need the runtime
	outboxes
	backlogs
	circuits
	humanTasks
	credentials
	expiries
	scheduled
	fleet
	orchestrations
	instances
	instanceRuns // parts that also need the list of orchestrations
	databases
	scrapes
	probes
)

// parts returns the parts that the configuration has.
func (c Config) parts() map[part]bool {
	return map[part]bool{engines: true, retries: c.Retrier != nil, operations: c.Operations != nil, listedOperations: c.Operations != nil && c.Runtime != nil, outboxes: c.Outbox != nil, backlogs: c.Backlog != nil, circuits: c.Outbox != nil && c.Nodes != nil, humanTasks: c.Tasks != nil, scheduled: c.Schedules != nil, fleet: c.Nodes != nil, credentials: c.Consumers != nil, expiries: c.Credentials != nil,
		orchestrations: c.Runtime != nil, instances: c.Registry != nil, instanceRuns: c.Registry != nil && c.Runtime != nil, databases: c.Pollers != nil, scrapes: c.Metrics != nil, probes: c.Health != nil}
}

// Register mounts the API on e, which answers everything below /api from then on, and puts paths below /api into
// their canonical form before e routes them. If c.Validate returns an error, Register returns it and registers
// nothing.
func Register(e *echo.Echo, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("register the API: %w", err)
	}
	a := &api{
		history: c.History,
		letters: c.DeadLetters,
		retrier: c.Retrier,
		outbox:  c.Outbox,
		bulk:    c.Operations,
		measure: c.Snapshot,
		backlog: c.Backlog,
		metrics: c.Metrics,
		health:  c.Health,
		runtime: c.Runtime,
		admit:   c.Admit,
		list:    c.List,

		consumers: c.Consumers,
		keeps:     c.Credentials,
		engines:   slices.Compact(slices.Sorted(slices.Values(c.Engines))),
		timeout:   cmp.Or(c.Timeout, DefaultTimeout),
		now:       c.Now,
		log:       cmp.Or(c.Log, slog.New(slog.DiscardHandler)),

		descriptions: append([]engine.Description{}, c.Descriptions...),
		owners:       Owners{Registry: c.Registry, Engine: c.Owner},
		tasks:        c.Tasks,
		registry:     c.Registry,
		placement:    c.Placement,
		schedules:    c.Schedules,
		nodes:        c.Nodes,
		pollers:      newPollers(c),
		result:       c.Result,
		door:         c.Door,
	}
	if err := a.check(); err != nil {
		return fmt.Errorf("register the API: %w", err)
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.list == nil && a.runtime != nil {
		a.list = a.runtime.List
	}
	a.timelines = c.timelines(a)
	parts := c.parts()
	resources := slices.DeleteFunc(a.resources(), func(r resource) bool { return !parts[r.part] })
	e.Pre(canonicalPaths(resources))
	// RouteNotFound is echo's registration for any method; a route of one method would leave the others to a
	// parameter route of the same server, like that of the host's invocations.
	for _, r := range resources {
		e.RouteNotFound(r.path, a.serve(r))
	}
	nowhere := a.serve(resource{})
	e.RouteNotFound("/api", nowhere)
	e.RouteNotFound("/api/*", nowhere)
	return nil
}
