package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// DefaultTable is the default of Config.Table.
const DefaultTable = "orchestrationsList"

const (
	// maxPending bounds the orchestrations that wait to be written. The repair finds the dropped ones.
	maxPending = 10_000
	// maxOps bounds the operations of a transaction.
	maxOps = 100
	// writeTimeout bounds one flush.
	writeTimeout = 30 * time.Second
)

// Config configures a Catalog. Tables and Runtime are required.
type Config struct {
	Tables tables.Store
	// Table is the index; default DefaultTable.
	Table string
	// Runtime returns the runtime of the orchestrations. It is a function because the configuration of the runtime
	// refers to the Catalog.
	Runtime func() *orchestrator.Runtime
	// Linger is the time for which a change waits for others, so that they are written together; the default is 2 s.
	Linger time.Duration
	// RepairEvery is the pause between the end of one repair and the beginning of the next; the default is 1 h.
	RepairEvery time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log logs failed writes; nil means no log.
	Log *slog.Logger
}

// Catalog is the index of orchestrations. It is safe for concurrent use.
type Catalog struct {
	config Config

	mu      sync.Mutex
	pending map[string]change // by id
	timer   *time.Timer       // nil when nothing is pending
	closed  bool
	dropped int // number of dropped changes
	writing sync.WaitGroup

	idleUntil time.Time // the repair has nothing to do before
}

// change is a change that has to be written.
type change struct {
	entry
	previous []orchestrator.Status // earlier statuses, whose rows have to be deleted
}

// New makes a Catalog. It returns every error of the configuration.
func New(c Config) (*Catalog, error) {
	if c.Tables == nil || c.Runtime == nil || c.Linger < 0 || c.RepairEvery < 0 {
		return nil, errors.New("catalog of orchestrations: tables and a runtime are required, and times that are not negative")
	}
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if c.Linger == 0 {
		c.Linger = 2 * time.Second
	}
	if c.RepairEvery == 0 {
		c.RepairEvery = time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Catalog{config: c, pending: map[string]change{}}, nil
}

// Prepare creates the table if it is missing.
func (c *Catalog) Prepare(ctx context.Context) error {
	return c.config.Tables.CreateTable(ctx, c.config.Table)
}

// Record adds a change of a status, as orchestrator.Config.StatusChanged reports it. It does not wait for storage.
func (c *Catalog) Record(n orchestrator.StatusChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, waits := c.pending[n.ID]
	if c.closed || !waits && len(c.pending) >= maxPending {
		c.dropped++
		return
	}
	next := change{entry: entry{n.ID, n.Orchestrator, n.Tag, n.TenantID, n.CorrelationID, n.Status, n.CreatedAt}, previous: known.previous}
	if n.Was != "" && (!waits || known.status != n.Was) {
		next.previous = append(next.previous, n.Was) // the pending status has no rows yet
	}
	c.pending[n.ID] = next
	if c.timer == nil {
		c.scheduleFlush(c.config.Linger)
	}
}

// scheduleFlush flushes after a while. The caller holds c.mu.
func (c *Catalog) scheduleFlush(after time.Duration) {
	c.writing.Add(1)
	c.timer = time.AfterFunc(after, func() {
		defer c.writing.Done()
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		defer cancel()
		if err := c.Flush(ctx); err != nil {
			c.config.Log.Warn("the list of orchestrations could not be written, and is written again later", "error", err.Error())
		}
	})
}

// cancelFlush undoes scheduleFlush, unless the flush has begun. The caller holds c.mu.
func (c *Catalog) cancelFlush() {
	if c.timer != nil && c.timer.Stop() {
		c.writing.Done()
	}
	c.timer = nil
}

// Close flushes pending changes. Later changes are dropped.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true
	c.cancelFlush()
	c.mu.Unlock()
	c.writing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout/3)
	defer cancel()
	if err := c.Flush(ctx); err != nil {
		c.config.Log.Warn("the list of orchestrations misses what ended last, until it is repaired", "error", err.Error())
	}
}

// Flush writes the pending changes now. Changes that cannot be written stay pending.
func (c *Catalog) Flush(ctx context.Context) error {
	c.mu.Lock()
	work, lost := c.pending, c.dropped
	c.cancelFlush()
	c.pending, c.dropped = map[string]change{}, 0
	c.mu.Unlock()
	if lost > 0 {
		c.config.Log.WarnContext(ctx, "the list of orchestrations misses some, until it is repaired", "orchestrations", lost)
	}
	var batch []change
	size := 0
	var errs []error
	write := func() {
		if err := c.write(ctx, batch); err != nil {
			errs = append(errs, err)
			c.requeue(batch)
		}
		batch, size = nil, 0
	}
	for _, one := range work {
		n := len(one.upserts()) + len(one.deletions())
		if size+n > maxOps {
			write()
		}
		batch, size = append(batch, one), size+n
	}
	if len(batch) > 0 {
		write()
	}
	return errors.Join(errs...)
}

// requeue makes unwritten changes pending again. Later changes of the same orchestration take precedence.
func (c *Catalog) requeue(batch []change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range batch {
		if since, ok := c.pending[one.id]; ok {
			since.previous = append(one.previous, since.previous...)
			one = since
		}
		c.pending[one.id] = one
	}
	if c.timer == nil && !c.closed {
		c.scheduleFlush(max(c.config.Linger, writeTimeout))
	}
}

// upserts returns operations for all rows of the orchestration, including rows that do not depend on the status,
// because the process that was to write them may have died. That costs operations, but no transaction.
func (n change) upserts() []tables.Op {
	names := n.all()
	ops := make([]tables.Op, len(names))
	for i, name := range names {
		ops[i] = tables.Upsert(n.row(name))
	}
	return ops
}

// deletions returns operations that delete the rows of earlier statuses.
func (n change) deletions() []tables.Op {
	var ops []tables.Op
	var gone []orchestrator.Status
	for _, status := range n.previous {
		if status == n.status || slices.Contains(gone, status) {
			continue
		}
		gone = append(gone, status)
		before := n.entry
		before.status = status
		ops = append(ops, deletions(before.statusRows())...)
	}
	return ops
}

func deletions(rows []string) []tables.Op {
	ops := make([]tables.Op, len(rows))
	for i, row := range rows {
		ops[i] = tables.Delete(key(row), "")
	}
	return ops
}

// write writes changes in one transaction. Deleting a row that does not exist makes the transaction fail; the rows are
// then deleted one by one.
func (c *Catalog) write(ctx context.Context, batch []change) error {
	var upserts, gone []tables.Op
	for _, one := range batch {
		upserts, gone = append(upserts, one.upserts()...), append(gone, one.deletions()...)
	}
	err := c.config.Tables.Apply(ctx, c.config.Table, append(slices.Clip(upserts), gone...)...)
	if errors.Is(err, tables.ErrNotFound) && len(gone) > 0 {
		if err = c.config.Tables.Apply(ctx, c.config.Table, upserts...); err == nil {
			err = c.remove(ctx, gone)
		}
	}
	if err != nil {
		return fmt.Errorf("list of orchestrations: %w", err)
	}
	return nil
}

// remove deletes rows one by one. Some may be deleted already, or have been written again.
func (c *Catalog) remove(ctx context.Context, gone []tables.Op) error {
	for _, op := range gone {
		err := c.config.Tables.Apply(ctx, c.config.Table, op)
		if err != nil && !errors.Is(err, tables.ErrNotFound) && !errors.Is(err, tables.ErrPrecondition) {
			return err
		}
	}
	return nil
}
