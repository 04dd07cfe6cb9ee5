package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/handler/api/health"
	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/handler/metricpush"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

const (
	// lookAge is the maximum age of values that cost a request for each queue or engine.
	lookAge = time.Minute
	// idleAge is the maximum age of the count of idle orchestrations: each run costs a read, and the count changes
	// slowly.
	idleAge = time.Hour
	// expiryAge is how old may be what costs the vault a request a credential.
	expiryAge = 15 * time.Minute
	// maxOverdue bounds the count of overdue orchestrations.
	maxOverdue = 1000
	// vaultProbe is the name of a missing secret.
	vaultProbe = "roundhouse-health"
)

// observed holds values of storage and the vault for metrics and health.
type observed struct {
	snapshot    func(context.Context) (outbox.Snapshot, error)
	credentials func(context.Context) (map[string][]engine.Credential, error)
	probes      *health.Checks
}

// doors counts the invocations of the program's current functions.
func (p *parts) doors(out *program) func(ctx context.Context, o trigger.Observed) {
	triggers := map[string]string{}
	for name := range out.Queues {
		triggers[name] = "queue"
	}
	for name := range out.Timers {
		triggers[name] = "timer"
	}
	count := p.counted.Doors(triggers)
	return func(ctx context.Context, o trigger.Observed) { count(ctx, o.Function, o.Outcome, o.Direct, o.Took) }
}

// counting counts the answers of HTTP functions, without invocations of queue and timer functions, and the host's
// probe.
func counting(count func(ctx context.Context, method, route string, code int, took time.Duration)) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if route := c.Path(); count == nil || route == "/" || route == trigger.Route {
				return next(c)
			}
			began := time.Now()
			err := next(c)
			code := c.Response().Status
			if answered := (*echo.HTTPError)(nil); errors.As(err, &answered) {
				code = answered.Code
			} else if err != nil {
				code = http.StatusInternalServerError
			}
			count(c.Request().Context(), c.Request().Method, c.Path(), code, time.Since(began))
			return err
		}
	}
}

// observe exports the program's counters and the values of storage to metrics and health. queues are the program's
// queues.
func (p *parts) observe(queues []string) (o observed, err error) {
	o.credentials = metrics.Cached(p.credentials, expiryAge, nil)
	o.snapshot = metrics.Cached(outbox.NewMonitor(p.events.outbox).Snapshot, 0, nil)
	census, lag, late := states(p.list), metrics.Cached(p.list.RepairLag, 0, nil), metrics.Cached(p.schedules.Lateness, 0, nil)
	fleet := metrics.Cached(p.listNodes, lookAge, nil)
	heads := metrics.Cached((&queueprobe.Heads{Queues: p.platform.Queues, Names: queues}).Look, lookAge, nil)
	c := health.Config{Tables: p.platform.Tables, Table: outbox.DefaultTable, Queues: p.platform.Queues, Queue: outbox.DefaultQueue,
		Blobs: p.platform.Blobs, Container: orchestrator.DefaultContainer, Outbox: o.snapshot, Stalled: stalled(census), Damaged: damaged(p.runtime), ListLag: lag, Schedules: late,
		Listening: p.probe.State, Heads: heads, Nodes: fleet, Drained: drain.Store{Tables: p.platform.Tables}.Flag, Instances: p.instancesCheck(), Prepared: p.preparation.Err,
		Thresholds: p.settings.Health.Thresholds, Timeout: p.settings.Health.Timeout, Log: p.log}
	if age := cmp.Or(p.settings.Health.RunAge, health.DefaultRunAge); age > 0 {
		c.Idle = metrics.Cached(func(ctx context.Context) (catalog.StatusCount, error) {
			return p.list.CountIdle(ctx, time.Now().Add(-age), time.Now())
		}, idleAge, nil)
		p.counted.Idle(c.Idle)
	}
	c.Unusable = func() []string { return p.useless }
	if p.platform.VaultURL != "" {
		c.Vault = p.askVault
	}
	if o.probes, err = health.New(c); err != nil {
		return o, err
	}
	m := p.counted
	m.Build(builtFrom())
	m.Clock(metrics.Cached(func(ctx context.Context) (time.Duration, error) {
		return health.ClockSkew(ctx, p.platform.Tables, outbox.DefaultTable, nil)
	}, lookAge, nil))
	m.Collect(&collector{locks: p.locks, log: p.log, now: time.Now})
	m.Events(o.snapshot)
	m.Orchestrations(census, p.orchestrators)
	m.Damaged(damaged(p.runtime))
	m.Overdue(metrics.Cached(p.overdue, 0, nil))
	m.Tasks(metrics.Cached(p.runtime.Tasks().Count, lookAge, nil))
	m.ListRepair(lag)
	m.Schedules(late)
	m.DeadLetters(metrics.Cached(p.countDeadLetters, lookAge, nil), time.Now)
	m.Queues(heads)
	m.InstanceLocks(metrics.Cached(p.platform.Registry.CountLocks, lookAge, nil))
	m.HostLocks(metrics.Cached(p.locks.List, lookAge, nil), p.jobs(), time.Now)
	m.Fleet(fleet, time.Now)
	if rotating := p.consumers(); len(rotating) > 0 {
		m.Waiting(func(ctx context.Context) (map[string]int, error) {
			return consumers.CountWaiting(ctx, p.platform.Tables, time.Now())
		}, slices.Sorted(maps.Keys(rotating)))
	}
	m.Expiring(o.credentials, time.Now)
	return o, errors.Join(m.Runtime(p.runtime.Counts), m.Pollers(p.pollers.counters), m.Nodes(p.node.Counts))
}

// pusher returns the sender of metrics, if a destination is set.
func (p *parts) pusher() *metricpush.Pusher {
	c := p.settings.Push
	c.Version, c.Instance = builtFrom(), p.node.Name()
	return metricpush.New(c, p.counted, p.log)
}

// askVault requests a secret that may be missing. A refusal is an answer: a missing permission fails where it is
// needed, with its own error.
func (p *parts) askVault(ctx context.Context) error {
	_, err := p.platform.Secrets.Versions(ctx, vaultProbe)
	if errors.Is(err, secrets.ErrForbidden) {
		return nil
	}
	return err
}

// overdue counts the orchestrations for the sweeper.
func (p *parts) overdue(ctx context.Context) (o metrics.Overdue, err error) {
	o.Entries, o.Longest, err = p.runtime.Overdue(ctx, maxOverdue)
	return o, err
}

// countDeadLetters counts those of all engines, and finds the oldest pending one of each.
func (p *parts) countDeadLetters(ctx context.Context) ([]metrics.DeadLetters, error) {
	counts, err := p.letters.Counts(ctx, p.names)
	if err != nil {
		return nil, err
	}
	all := make([]metrics.DeadLetters, len(counts))
	for i, c := range counts {
		all[i].DeadLetterCounts = c
		if c.Pending > 0 {
			if all[i].Oldest, err = p.letters.OldestPending(ctx, c.Engine); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// jobs returns the jobs that one process runs for all.
func (p *parts) jobs() []string {
	jobs := []string{collectorJob, sweeperJob, purgeJob}
	for _, r := range p.retentions().nightly {
		jobs = append(jobs, r.job)
	}
	return jobs
}

// credentials returns the expiring credentials of engines. Errors of an engine are logged, and its credentials left
// out.
func (p *parts) credentials(ctx context.Context) (map[string][]engine.Credential, error) {
	all := map[string][]engine.Credential{}
	var errs []error
	for _, d := range p.definitions {
		if d.Credentials == nil {
			continue
		}
		found, err := d.Credentials(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("credentials of the engine %s: %w", d.Name, err))
		}
		if err == nil || slices.ContainsFunc(found, func(c engine.Credential) bool { return !c.ExpiresAt.IsZero() }) {
			all[d.Name] = found
		}
	}
	if err := errors.Join(errs...); err != nil {
		if len(all) == 0 {
			return nil, err
		}
		p.log.WarnContext(ctx, "not all credentials are known", "error", err.Error())
	}
	return all, nil
}

// functionQueues returns the queues that functions listen to, each once.
func (p *program) functionQueues() []string {
	var all []string
	for _, q := range p.Queues {
		all = append(all, q.Queue)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// leavePush stops sending metrics, for a program that closes without leaving.
func (p *parts) leavePush() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := p.push.Close(ctx); err != nil {
		p.log.Warn("the last metrics are not sent", "error", err.Error())
	}
}
