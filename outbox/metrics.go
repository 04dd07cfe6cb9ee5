package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Snapshot is the state of the outbox in numbers (outbox document, "Observability / Metrics", which has the first
// five). Dead and skipped messages are not part of the backlog, because waiting does not change them.
type Snapshot struct {
	// BacklogSize counts the pending messages.
	BacklogSize int `json:"backlogSize"`
	// FailedPending counts the messages that a list of StatusFailed shows: those that have failed before or wait for
	// configuration.
	FailedPending int `json:"failedPending"`
	// OldestAgeSeconds is the age of the oldest pending message; 0 without one.
	OldestAgeSeconds float64 `json:"oldestAgeSeconds"`
	// OverdueSeconds is how long the most overdue unclaimed message has been due; 0 without one. It is for alerts: a
	// message that waits for its next attempt is old and not overdue.
	OverdueSeconds float64 `json:"-"`
	// Throughput is the number of messages per second that this process has processed, over Options.MetricsWindow.
	Throughput float64 `json:"throughput"`
	// FailureRatio is the share of this process's attempts that failed, 0 to 1, over the same time.
	FailureRatio float64 `json:"failureRatio"`
	// Dead counts the dead messages. Each has a pending dead letter.
	Dead int `json:"dead"`
	// Died counts the messages that have died in this process, over Options.MetricsWindow.
	Died int `json:"died"`
	// Misconfigured counts the pending messages that wait for configuration, and Reported those of them that have a
	// pending dead letter.
	Misconfigured int `json:"misconfigured"`
	Reported      int `json:"reported"`
	// Misconfigurations are the missing settings that some of these messages report, each once, MaxMisconfigurations at
	// most.
	Misconfigurations []string `json:"misconfigurations,omitempty"`
}

// MaxMisconfigurations bounds Snapshot.Misconfigurations.
const MaxMisconfigurations = 5

// maxSamples is the number of messages whose missing settings are read.
const maxSamples = 20

// Monitor measures an outbox. It is safe for concurrent use.
type Monitor struct {
	o *Outbox
}

// NewMonitor returns a Monitor.
func NewMonitor(o *Outbox) *Monitor { return &Monitor{o} }

// Snapshot counts the pending and the dead messages of all tenants. The cost is three queries for each tenant, and one
// for each thousand messages.
func (m *Monitor) Snapshot(ctx context.Context) (Snapshot, error) {
	now := m.o.now()
	var s Snapshot
	oldest, due := now, now
	for from, more := "", true; more; more = from != "" {
		list, next, err := m.o.listTenants(ctx, from, sweepWidth)
		if err != nil {
			return Snapshot{}, fmt.Errorf("measure the outbox: %w", err)
		}
		for _, t := range list {
			if err := m.count(ctx, t.id, &s, &oldest, &due); err != nil {
				return Snapshot{}, fmt.Errorf("measure the outbox: tenant %s: %w", partition(t.id), err)
			}
		}
		from = next
	}
	s.OldestAgeSeconds, s.OverdueSeconds = now.Sub(oldest).Seconds(), now.Sub(due).Seconds()
	s.Throughput, s.FailureRatio = m.o.window.rates(now)
	s.Died = m.o.window.deaths(now)
	return s, nil
}

func (m *Monitor) count(ctx context.Context, tenant string, s *Snapshot, oldest, due *time.Time) error {
	dead := tables.Query{Partition: partition(tenant), From: deadPrefix, To: endOf(deadPrefix), Select: []string{"Id"}}
	for _, err := range tables.All(ctx, m.o.tables, m.o.table, dead) {
		if err != nil {
			return err
		}
		s.Dead++
	}
	for _, prefix := range []string{pendingPrefix, waitingPrefix} {
		q := tables.Query{
			Partition: partition(tenant), From: prefix, To: endOf(prefix), Select: []string{"CreatedAt", "RetryCount", "WaitsSince", "ReportedAt"},
		}
		for e, err := range tables.All(ctx, m.o.tables, m.o.table, q) {
			if err != nil {
				return err
			}
			s.BacklogSize++
			if e.Int("RetryCount") > 0 || !e.Time("WaitsSince").IsZero() { // message.hasFailed
				s.FailedPending++
			}
			if err := m.countMisconfigured(ctx, e, s); err != nil {
				return err
			}
			if at := e.Time("CreatedAt"); at.Before(*oldest) {
				*oldest = at
			}
			if at, ok := dueOf(e.Row); ok && at.Before(*due) {
				*due = at
			}
		}
	}
	return nil
}

// countMisconfigured counts a pending message if it waits for configuration, and adds its missing setting. That is read
// separately, because it is encrypted where payloads are.
func (m *Monitor) countMisconfigured(ctx context.Context, row tables.Entity, s *Snapshot) error {
	if row.Time("WaitsSince").IsZero() {
		return nil
	}
	s.Misconfigured++
	if !row.Time("ReportedAt").IsZero() {
		s.Reported++
	}
	if s.Misconfigured > maxSamples || len(s.Misconfigurations) == MaxMisconfigurations {
		return nil
	}
	e, err := m.o.tables.Get(ctx, m.o.table, row.Key)
	if errors.Is(err, tables.ErrNotFound) {
		return nil // a claim has moved it
	}
	if err != nil {
		return err
	}
	if text := clip(e.String("Error"), maxAttemptError); !slices.Contains(s.Misconfigurations, text) {
		s.Misconfigurations = append(s.Misconfigurations, text)
	}
	return nil
}
