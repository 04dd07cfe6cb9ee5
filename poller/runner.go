package poller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Options are the numbers of a poller. What is zero has the default that is named.
type Options struct {
	// LeaseTTL is how long a lease lasts without a heartbeat, 10 s to an hour; default 2 min. Heartbeats come three times
	// as often, and the owner stops a margin of a half of it, 5 s at most, before it ends.
	LeaseTTL time.Duration
	// Budget is how long a tick goes on; default 4 min. The batch that is at work then is finished.
	Budget time.Duration
	// BatchSize is what a batch begins with, default 100; it moves between MinBatch, default 1, and MaxBatch, default
	// 5,000, so that the handler takes no longer than HandlerTarget, default a third of LeaseTTL.
	BatchSize, MinBatch, MaxBatch int
	HandlerTarget                 time.Duration
	// MaxBytes bounds the data of a batch but for its first row; default 4 MiB.
	MaxBytes int
	// MaxAttempts is how often a batch may fail before the row at fault is looked for; default 5.
	MaxAttempts int
	// RetryDelay is the pause after the first failure, default 30 s; it doubles up to MaxRetryDelay, default 15 min.
	RetryDelay, MaxRetryDelay time.Duration
	// QuarantineShare is which share of rows may go to quarantine, default 0.05, out of the last QuarantineWindow rows,
	// default 1,000; QuarantineFree of them may in any case, default 5.
	QuarantineShare                  float64
	QuarantineWindow, QuarantineFree int
	// IdleHeartbeat is how often a poller without rows writes that it is there; default 15 min.
	IdleHeartbeat time.Duration
	// Backfill gives the poller an end: where the source ends when the poller first runs. RowsPerSecond throttles it, or
	// any poller; 0 does not.
	Backfill      bool
	RowsPerSecond int
}

// WithDefaults is the options with a number for each that is zero.
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

// Validate reports options that cannot be used, after defaults. The errors are ErrInvalid.
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

// RunnerConfig is what a Runner needs.
type RunnerConfig struct {
	// Name is the poller's, see CheckName. Source, Store and Handler are required.
	Name    string
	Source  Source
	Store   Store
	Handler Handler
	// Quarantine takes rows that the handler does not take, and may get one again; nil: such a row is tried for ever, and
	// nothing behind it is delivered.
	Quarantine func(ctx context.Context, q Quarantined) error
	Options    Options
	// Owner names this process; default host name, process id and a random part. Runners that live at the same time must
	// differ in it: one takes the lease of another of the same name without waiting.
	Owner string
	// Now is a clock of which only differences count; default time.Now.
	Now func() time.Time
	// Redact takes secrets out of the text of errors, before it is stored or logged; default none.
	Redact func(string) string
	// Log defaults to none.
	Log *slog.Logger
}

// Runner runs one poller, a tick at a time. It is safe for concurrent use.
type Runner struct {
	config      RunnerConfig
	options     Options
	fingerprint string
	definition  json.RawMessage
	leases      *leaseManager
	counters    counters

	// running is held by a tick, which alone uses what follows.
	running  sync.Mutex
	observed observedVersion
	size     batchSize
	checked  bool // the source has said that it can be read
}

// NewRunner makes a Runner. It sends nothing yet.
func NewRunner(c RunnerConfig) (*Runner, error) {
	c.Options = c.Options.WithDefaults()
	errs := []error{CheckName(c.Name), c.Options.Validate()}
	if c.Source == nil || c.Store == nil || c.Handler == nil {
		errs = append(errs, fmt.Errorf("%w: a source, a store and a handler are required", ErrInvalid))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, wrap(c.Name, "configure", err)
	}
	fingerprint, text, err := Fingerprint(c.Source.Definition())
	if err != nil {
		return nil, wrap(c.Name, "configure", err)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	if c.Owner == "" {
		host, _ := os.Hostname() // without one, the random part has to do
		c.Owner = fmt.Sprintf("%s/%d/%s", host, os.Getpid(), uuid.NewString()[:8])
	}
	o := c.Options
	r := &Runner{config: c, options: o, fingerprint: fingerprint, definition: text,
		leases: &leaseManager{store: c.Store, poller: c.Name, owner: c.Owner, ttl: o.LeaseTTL, margin: min(o.LeaseTTL/2, 5*time.Second), clock: &clock{now: c.Now}},
		size:   batchSize{least: o.MinBatch, most: o.MaxBatch, step: o.BatchSize, target: o.HandlerTarget, size: o.BatchSize}}
	r.counters.c.Lag = -1
	return r, nil
}

// Name is the poller's name.
func (r *Runner) Name() string { return r.config.Name }

// Counters is what the runner has done so far.
func (r *Runner) Counters() Counters {
	return r.counters.snapshot()
}

// Result says what a tick did.
type Result struct {
	// Rows and Batches were delivered and committed; Quarantined of the rows went to quarantine.
	Rows, Batches, Quarantined int
	// Drained: there were no more rows at the end. HeldBack says why rows that are there were not given.
	Drained  bool
	HeldBack string
	// Done: the backfill has reached its end, and there is nothing left to do.
	Done bool
	// Skipped says why nothing was tried, "" when it was: another process has the lease (ErrHeld), the failed batch is not
	// due (ErrWaiting), or the poller is retired (ErrRetired).
	Skipped error
}

// Tick delivers what there is, batch by batch, until there is no more or the budget is used up. Without rows it reads the
// state and writes nothing, unless the idle heartbeat is due. The error names the poller: what was not committed comes
// again with the next tick. It is not an error when the work is left to another process; Result says so.
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

func (r *Runner) skipped(why error) Result {
	r.counters.add(func(c *Counters) { c.Ticks++; c.Skipped++ })
	return Result{Skipped: wrap(r.config.Name, "tick", why)}
}

// errorText is an error as it is stored and logged.
func (r *Runner) errorText(err error) string {
	return clip(r.config.Redact(err.Error()), maxErrorText)
}

// report logs a tick that did something.
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
		attrs = append(attrs, slog.String("reason", r.errorText(err)))
	}
	r.config.Log.LogAttrs(ctx, level, "poller tick", attrs...)
}
