package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Snapshot is the state of the outbox in five numbers (outbox document, "Observability / Metrics"). Dead and skipped
// messages do not belong to the backlog.
type Snapshot struct {
	// BacklogSize counts the pending messages.
	BacklogSize int `json:"backlogSize"`
	// FailedPending counts those that have failed before.
	FailedPending int `json:"failedPending"`
	// OldestAgeSeconds is the age of the oldest pending message; 0 without one.
	OldestAgeSeconds float64 `json:"oldestAgeSeconds"`
	// Throughput is how many messages a second this process has processed, over Options.MetricsWindow.
	Throughput float64 `json:"throughput"`
	// FailureRatio is the share of this process's attempts that failed, 0 to 1, over the same time.
	FailureRatio float64 `json:"failureRatio"`
}

// Monitor measures an outbox. It is safe for concurrent use.
type Monitor struct {
	o *Outbox
}

// NewMonitor makes a Monitor.
func NewMonitor(o *Outbox) *Monitor { return &Monitor{o} }

// Snapshot counts the pending messages of all tenants. The cost is a page for each tenant, and one for each thousand
// pending messages.
func (m *Monitor) Snapshot(ctx context.Context) (Snapshot, error) {
	now := m.o.now()
	var s Snapshot
	oldest := now
	for from, more := "", true; more; more = from != "" {
		list, next, err := m.o.listTenants(ctx, from, sweepWidth)
		if err != nil {
			return Snapshot{}, fmt.Errorf("measure the outbox: %w", err)
		}
		for _, t := range list {
			if err := m.count(ctx, t.id, &s, &oldest); err != nil {
				return Snapshot{}, fmt.Errorf("measure the outbox: tenant %s: %w", partition(t.id), err)
			}
		}
		from = next
	}
	s.OldestAgeSeconds = now.Sub(oldest).Seconds()
	s.Throughput, s.FailureRatio = m.o.window.rates(now)
	return s, nil
}

func (m *Monitor) count(ctx context.Context, tenant string, s *Snapshot, oldest *time.Time) error {
	for _, prefix := range []string{pendingPrefix, waitingPrefix} {
		q := tables.Query{
			Partition: partition(tenant), From: prefix, To: endOf(prefix), Select: []string{"CreatedAt", "RetryCount"},
		}
		for e, err := range tables.All(ctx, m.o.tables, m.o.table, q) {
			if err != nil {
				return err
			}
			s.BacklogSize++
			if e.Int("RetryCount") > 0 {
				s.FailedPending++
			}
			if at := e.Time("CreatedAt"); at.Before(*oldest) {
				*oldest = at
			}
		}
	}
	return nil
}
