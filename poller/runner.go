package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
)

// Options are the numeric settings of a poller. A field that is zero has its default.
type Options struct {
	// LeaseTTL is how long a lease lasts without a heartbeat, 10 s to an hour; the default is 2 min. A heartbeat is
	// sent every third of it. The owner stops a margin before the end: half of LeaseTTL, but at most 5 s.
	LeaseTTL time.Duration
	// Budget is the duration of a tick; the default is 4 min. A started batch is finished.
	Budget time.Duration
	// BatchSize is the size of the first batch, by default 100. The size moves between MinBatch, by default 1, and
	// MaxBatch, by default 5,000, so that the handler takes no longer than HandlerTarget, by default a third of LeaseTTL.
	BatchSize, MinBatch, MaxBatch int
	HandlerTarget                 time.Duration
	// MaxBytes bounds the data of a batch, its first row excepted; the default is 4 MiB.
	MaxBytes int
	// MaxAttempts is the number of failures of a batch before the bad row is searched; the default is 5.
	MaxAttempts int
	// RetryDelay is the delay after the first failure, by default 30 s. It doubles up to MaxRetryDelay, by default 15
	// min.
	RetryDelay, MaxRetryDelay time.Duration
	// QuarantineShare is the share of rows that may go to quarantine, by default 0.05, out of the last QuarantineWindow
	// rows, by default 1,000. QuarantineFree rows may go there in any case, by default 5.
	QuarantineShare                  float64
	QuarantineWindow, QuarantineFree int
	// IdleHeartbeat is the interval at which a poller without rows records that it is running; the default is 15 min.
	IdleHeartbeat time.Duration
	// Backfill gives the poller an end: the end of the source at its first run. RowsPerSecond limits the rate of any
	// poller; 0 does not.
	Backfill      bool
	RowsPerSecond int
}

// WithDefaults returns the options with defaults for the fields that are zero.
func (o Options) WithDefaults() Options {
	o.LeaseTTL = cmp.Or(o.LeaseTTL, 2*time.Minute)
	o.Budget = cmp.Or(o.Budget, 4*time.Minute)
	o.BatchSize, o.MinBatch, o.MaxBatch = cmp.Or(o.BatchSize, 100), cmp.Or(o.MinBatch, 1), cmp.Or(o.MaxBatch, 5000)
	o.HandlerTarget = cmp.Or(o.HandlerTarget, o.LeaseTTL/3)
	o.MaxBytes = cmp.Or(o.MaxBytes, 4<<20)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 5)
	o.RetryDelay, o.MaxRetryDelay = cmp.Or(o.RetryDelay, 30*time.Second), cmp.Or(o.MaxRetryDelay, 15*time.Minute)
	o.QuarantineShare = cmp.Or(o.QuarantineShare, 0.05)
	o.QuarantineWindow, o.QuarantineFree = cmp.Or(o.QuarantineWindow, 1000), cmp.Or(o.QuarantineFree, 5)
	o.IdleHeartbeat = cmp.Or(o.IdleHeartbeat, 15*time.Minute)
	return o
}

// Validate returns an error for invalid options, with defaults applied. The errors are ErrInvalid.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
		}
	}
	need(o.LeaseTTL >= 10*time.Second && o.LeaseTTL <= time.Hour, "the lease lasts %v: set 10s to 1h", o.LeaseTTL)
	need(o.Budget > 0, "the budget is %v: set more than 0", o.Budget)
	need(o.MinBatch >= 1 && o.MinBatch <= o.BatchSize && o.BatchSize <= o.MaxBatch && o.MaxBatch <= 100_000,
		"batches of %d, %d to %d: set 1 <= least <= first <= most <= 100000", o.BatchSize, o.MinBatch, o.MaxBatch)
	need(o.HandlerTarget > 0, "the handler's target is %v: set more than 0", o.HandlerTarget)
	need(o.MaxBytes > 0, "a batch of %d bytes: set more than 0", o.MaxBytes)
	need(o.MaxAttempts >= 1, "%d attempts: set 1 or more", o.MaxAttempts)
	need(o.RetryDelay > 0 && o.RetryDelay <= o.MaxRetryDelay, "retries after %v to %v: set 0 < first <= most", o.RetryDelay, o.MaxRetryDelay)
	need(o.QuarantineShare > 0 && o.QuarantineShare <= 1, "a quarantine share of %v: set more than 0, up to 1", o.QuarantineShare)
	need(o.QuarantineWindow >= 1 && o.QuarantineFree >= 0, "a quarantine window of %d rows with %d free: set 1 or more, and 0 or more", o.QuarantineWindow, o.QuarantineFree)
	need(o.IdleHeartbeat > 0, "an idle heartbeat every %v: set more than 0", o.IdleHeartbeat)
	need(o.RowsPerSecond >= 0, "%d rows a second: set 0, for no limit, or more", o.RowsPerSecond)
	return errors.Join(errs...)
}

// RunnerConfig configures a Runner.
type RunnerConfig struct {
	// Name is the name of the poller, see CheckName. Source, Store and Handler are required.
	Name    string
	Source  Source
	Store   Store
	Handler Handler
	// Quarantine receives rows that the handler rejects, possibly more than once. If it is nil, such a row is retried
	// forever, and no later row is delivered.
	Quarantine func(ctx context.Context, q Quarantined) error
	Options    Options
	// Owner names this process; the default is Node and a random part. Concurrent runners must have different owners,
	// because a runner takes the lease of the same owner without waiting.
	Owner string
	// Node is the node of this process, when other nodes can take it over; the default is named after host and process id.
	Node Node
	// Now is a clock of which only differences are used; the default is time.Now.
	Now func() time.Time
	// Log is the log, which contains no secrets; the default is none.
	Log *slog.Logger
}

// Runner runs one poller, one tick at a time. It is safe for concurrent use.
type Runner struct {
	config   RunnerConfig
	options  Options
	leases   *leaseManager
	counters counters
	failures *TickFailures

	// running is held by a tick, which alone uses the fields below.
	running  sync.Mutex
	observed observedVersion
	size     batchSize
	checked  bool   // the source has been checked
	advised  string // the source's last advice, which is logged once
}

// NewRunner returns a Runner. It sends no request yet.
func NewRunner(c RunnerConfig) (*Runner, error) {
	c.Options = c.Options.WithDefaults()
	errs := []error{CheckName(c.Name), c.Options.Validate()}
	if c.Source == nil || c.Store == nil || c.Handler == nil {
		errs = append(errs, fmt.Errorf("%w: a source, a store and a handler are required", ErrInvalid))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, wrap(c.Name, "configure", err)
	}
	if _, _, err := Fingerprint(c.Source.Definition()); err != nil {
		return nil, wrap(c.Name, "configure", err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = redact.Logger(c.Log)
	if c.Node == nil {
		c.Node = process{}
	}
	o := c.Options
	r := &Runner{config: c, options: o,
		leases:   &leaseManager{store: c.Store, poller: c.Name, node: c.Node, owner: ownerOf(c), ttl: o.LeaseTTL, margin: min(o.LeaseTTL/2, 5*time.Second), clock: &clock{now: c.Now}},
		failures: &TickFailures{Store: c.Store, Poller: c.Name, Now: c.Now},
		size:     batchSize{least: o.MinBatch, most: o.MaxBatch, step: o.BatchSize, target: o.HandlerTarget, size: o.BatchSize}}
	r.counters.c.Lag = -1
	return r, nil
}

// Name returns the poller's name.
func (r *Runner) Name() string { return r.config.Name }

// Counters returns the runner's counts so far.
func (r *Runner) Counters() Counters {
	return r.counters.snapshot()
}

// Result is the result of a tick.
type Result struct {
	// Rows and Batches were delivered and committed; Quarantined of the rows went to quarantine.
	Rows, Batches, Quarantined int
	// Drained means that no rows were left at the end. HeldBack is the reason why existing rows were not read.
	Drained  bool
	HeldBack string
	// Done means that the backfill has reached its end.
	Done bool
	// Skipped is the reason why nothing was tried, nil otherwise: another process has the lease (ErrHeld), the failed
	// batch is not due (ErrWaiting), or the poller is retired (ErrRetired).
	Skipped error
}

// Tick delivers rows, batch by batch, until none are left or the budget is used up. Without rows it reads the state and
// writes nothing, unless the idle heartbeat is due. An error names the poller; the next tick delivers uncommitted rows
// again. Leaving the work to another process is not an error; Result reports it.
func (r *Runner) Tick(ctx context.Context) (Result, error) {
	if !r.running.TryLock() {
		return r.skipped(fmt.Errorf("%w: the tick before is at work", ErrHeld)), nil
	}
	defer r.running.Unlock()
	t := &tick{Runner: r, began: r.config.Now()}
	err := t.run(ctx)
	if errors.Is(err, ErrHeld) || errors.Is(err, ErrRetired) || errors.Is(err, ErrWaiting) {
		return r.skipped(err), nil
	}
	err = r.record(ctx, t.doc, err)
	r.counters.add(func(c *Counters) {
		c.Ticks++
		c.BatchSize, c.HeldBack = r.size.size, t.result.HeldBack
		if err != nil {
			c.Failures++
		}
		if errors.Is(err, ErrLost) {
			c.LeasesLost++
		}
		if t.result.Drained && err == nil {
			c.LastSuccess = r.leases.clock.time()
			if t.result.HeldBack == "" {
				c.Lag = 0
			}
			if t.result.Rows == 0 {
				c.Idle++
			}
		}
	})
	r.report(ctx, t.result, err)
	return t.result, wrap(r.config.Name, "tick", err)
}

// record stores in the state whether ticks fail, for readers without the log, and returns the error of the tick. doc is
// the state as left by the tick, nil when it was not read. An unreadable state needs no record, and a lost lease leaves
// the work to the next tick.
func (r *Runner) record(ctx context.Context, doc *Document, err error) error {
	var recordErr error
	switch {
	case errors.Is(err, ErrLost) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion):
	case err != nil && !errors.Is(err, ErrBatch) && !errors.Is(err, ErrBreaker): // Failure has these two
		recordErr = r.failures.Add(ctx, err)
	case doc != nil:
		recordErr = r.failures.Clear(ctx, doc.TickFailure)
	}
	if recordErr != nil && err != nil {
		return fmt.Errorf("%w; and %w", err, recordErr)
	}
	return errors.Join(err, recordErr)
}

func (r *Runner) skipped(why error) Result {
	r.counters.add(func(c *Counters) { c.Ticks++; c.Skipped++ })
	return Result{Skipped: wrap(r.config.Name, "tick", why)}
}

// errorText returns an error text for storing and logging, without secrets.
func (r *Runner) errorText(err error) string {
	return clip(redact.Text(err.Error()), maxErrorText)
}

// report logs a tick.
func (r *Runner) report(ctx context.Context, result Result, err error) {
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
	} else if result.Rows == 0 {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("poller", r.config.Name), slog.Int("rows", result.Rows), slog.Int("batches", result.Batches),
		slog.Int("quarantined", result.Quarantined), slog.Bool("drained", result.Drained), slog.Int("batchSize", r.size.size)}
	if result.HeldBack != "" {
		attrs = append(attrs, slog.String("heldBack", result.HeldBack))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", r.errorText(err)))
	}
	r.config.Log.LogAttrs(ctx, level, "poller tick", attrs...)
}
