package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/api/fresh"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// preparedCheck fails while storage is not prepared.
	preparedCheck = "storage:prepared"
	blobsCheck    = "blobs:responseTime"
	vaultCheck    = "vault:responseTime"
)

// The defaults of Config.
const (
	DefaultTimeout = 3 * time.Second
	DefaultMaxAge  = 5 * time.Second
	// DefaultRunAge is the age at which an orchestration that does not continue counts for Config.Idle.
	DefaultRunAge = 90 * 24 * time.Hour
)

// Config configures the checks.
type Config struct {
	// Tables and Queues are the stores, and Table and Queue the ones to read. All are required.
	Tables tables.Store
	Table  string
	Queues queues.Store
	Queue  string
	// Blobs is the blob store, and Container the one to read; nil leaves it out.
	Blobs     blobs.Store
	Container string
	// Vault calls the key vault; nil leaves it out.
	Vault func(ctx context.Context) error
	// Outbox measures the outbox; required.
	Outbox     func(ctx context.Context) (outbox.Snapshot, error)
	Thresholds Thresholds
	// Stalled counts stalled orchestrations; nil leaves them out.
	Stalled func(ctx context.Context) (catalog.StatusCount, error)
	// Damaged counts unreadable orchestrations; nil leaves them out.
	Damaged func(ctx context.Context) (int, error)
	// Idle counts the orchestrations that have neither ended nor continued for a long time; nil skips the check.
	Idle func(ctx context.Context) (catalog.StatusCount, error)
	// Unusable returns the settings that can never work, each with the reason; nil skips the check.
	Unusable func() []string
	// ListLag is how long something can have been wrong in the list of orchestrations; nil leaves it out.
	ListLag func(ctx context.Context) (time.Duration, error)
	// Schedules returns the delay of schedules; nil leaves it out.
	Schedules func(ctx context.Context) (schedule.Lateness, error)
	// Listening returns the state of the queue probe; nil leaves it out.
	Listening func(ctx context.Context) (queueprobe.State, error)
	// Heads returns the waiting messages of the queues; nil leaves it out.
	Heads func(ctx context.Context) ([]queueprobe.Head, error)
	// Nodes returns the processes of the app; nil leaves it out.
	Nodes func(ctx context.Context) ([]nodes.Info, error)
	// Drained returns whether the app is drained; nil leaves it out.
	Drained func(ctx context.Context) (drain.Flag, error)
	// Instances reports whether engines have an instance to work on; nil leaves it out.
	Instances func(ctx context.Context) (bool, error)
	// Prepared returns the reason why the program cannot work yet, nil if it can; nil means always prepared.
	Prepared func() error
	// Timeout bounds each check; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxAge is the maximum age of a report; 0 means DefaultMaxAge.
	MaxAge time.Duration
	// ReleaseID is the version of the program, if known.
	ReleaseID string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log logs the errors of failed checks; nil means no log.
	Log *slog.Logger
}

// Validate returns all errors of the configuration, joined into one.
func (c Config) Validate() error {
	errs := []error{c.Thresholds.Validate()}
	if c.Tables == nil || c.Queues == nil || c.Outbox == nil || c.Table == "" || c.Queue == "" {
		errs = append(errs, errors.New("tables and a table, queues and a queue, and the outbox are required"))
	}
	if c.Timeout < 0 || c.MaxAge < 0 {
		errs = append(errs, fmt.Errorf("timeout %v and maximum age %v: they must not be negative", c.Timeout, c.MaxAge))
	}
	return errors.Join(errs...)
}

// Checks are the probes. It is safe for concurrent use.
type Checks struct {
	config  Config
	started time.Time
	storage *fresh.Value[map[string]Measurement]
	work    *fresh.Value[map[string]Measurement]
}

// New checks the configuration. It does not access storage.
func New(c Config) (*Checks, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("health checks: %w", err)
	}
	c.Thresholds = c.Thresholds.withDefaults()
	c.Timeout, c.MaxAge = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.MaxAge, DefaultMaxAge)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	h := &Checks{config: c, started: c.Now()}
	storage := []check{{"tables:responseTime", "datastore", h.readTables}, {"queues:responseTime", "datastore", h.readQueues}}
	if c.Blobs != nil {
		storage = append(storage, check{blobsCheck, "datastore", h.readBlobs})
	}
	h.storage = h.shared(storage...)
	work := []check{{"outbox:backlog", "component", h.measureOutbox}}
	if c.Stalled != nil {
		work = append(work, check{stalledCheck, "component", h.countStalled})
	}
	if c.Damaged != nil {
		work = append(work, check{damagedCheck, "component", h.countDamaged})
	}
	if c.Idle != nil {
		work = append(work, check{idleCheck, "component", h.countIdle})
	}
	if c.Unusable != nil {
		work = append(work, check{unusableCheck, "component", h.listUnusable})
	}
	if c.ListLag != nil {
		work = append(work, check{listLagCheck, "component", h.measureListLag})
	}
	if c.Schedules != nil {
		work = append(work, check{schedulesCheck, "component", h.measureSchedules})
	}
	if c.Listening != nil {
		work = append(work, check{listeningCheck, "component", h.measureListening})
	}
	if c.Heads != nil {
		work = append(work, check{stuckCheck, "component", h.findStuck})
	}
	if c.Nodes != nil {
		work = append(work, check{versionsCheck, "component", h.compareVersions})
	}
	if c.Vault != nil {
		work = append(work, check{vaultCheck, "datastore", h.askVault})
	}
	if c.Drained != nil {
		work = append(work, check{drainedCheck, "component", h.readDrained})
	}
	if c.Instances != nil {
		work = append(work, check{instancesCheck, "component", h.countInstances})
	}
	h.work = h.shared(work...)
	return h, nil
}

// Live reports that the process answers.
func (h *Checks) Live() Report {
	return Report{Status: Pass, ReleaseID: h.config.ReleaseID}
}

// Ready reports whether storage is prepared and answers; its Output names the failing part, and the kind of failure.
// A report is always complete; the end of ctx shows as failed checks.
func (h *Checks) Ready(ctx context.Context) Report {
	r := h.report(ctx, h.storage)
	if r.Status == Fail && r.Output == "" {
		r.Output = "Storage cannot be used."
		for _, name := range slices.Sorted(maps.Keys(r.Checks)) {
			if m := r.Checks[name][0]; m.Status == Fail {
				part, _, _ := strings.Cut(name, ":")
				r.Output += " " + strings.ToUpper(part[:1]) + part[1:] + ": " + m.Output
			}
		}
	}
	return r
}

// Full reports Ready, the outbox and the orchestrations.
func (h *Checks) Full(ctx context.Context) Report { return h.report(ctx, h.storage, h.work) }

// report runs all checks, or none before storage is prepared: until then, the preparation has the better error.
func (h *Checks) report(ctx context.Context, values ...*fresh.Value[map[string]Measurement]) Report {
	if h.config.Prepared != nil {
		if err := h.config.Prepared(); err != nil {
			return h.unprepared(err)
		}
	}
	return h.ask(ctx, values...)
}

// unprepared returns the report of a program that cannot work yet.
func (h *Checks) unprepared(err error) Report {
	output := "Storage is not prepared yet. " + trouble(err)
	return Report{Status: Fail, ReleaseID: h.config.ReleaseID, Output: output, Checks: map[string][]Measurement{
		preparedCheck: {{ComponentType: "datastore", Status: Fail, Time: h.config.Now().UTC(), Output: output}}}}
}

// ask runs the checks in parallel.
func (h *Checks) ask(ctx context.Context, values ...*fresh.Value[map[string]Measurement]) Report {
	found := make([]map[string]Measurement, len(values))
	var all sync.WaitGroup
	for i, v := range values {
		all.Go(func() {
			var err error
			if found[i], err = v.Get(ctx); err != nil {
				found[i] = map[string]Measurement{"checks:wait": {ComponentType: "system", Status: Fail, Time: h.config.Now().UTC(), Output: trouble(err)}}
			}
		})
	}
	all.Wait()
	r := Report{Status: Pass, ReleaseID: h.config.ReleaseID, Checks: map[string][]Measurement{}}
	for _, measurements := range found {
		for name, m := range measurements {
			r.Checks[name] = []Measurement{m}
			r.Status = worse(r.Status, m.Status)
		}
	}
	return r
}
