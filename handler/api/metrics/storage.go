package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// Events exports, in the process that has the lease, storage's values of the outbox.
func (m *Metrics) Events(snapshot func(ctx context.Context) (outbox.Snapshot, error)) {
	share(m, snapshot, func(r *prometheus.Registry, s outbox.Snapshot) {
		gauge(r, "outbox_pending", "Messages that are not delivered yet.", float64(s.BacklogSize))
		gauge(r, "outbox_failed_pending", "Messages that are not delivered yet and have failed before or wait for configuration.", float64(s.FailedPending))
		gauge(r, "outbox_dead", "Messages that were given up; each has a pending dead letter.", float64(s.Dead))
		gauge(r, "outbox_misconfigured", "Messages that wait for a signing key, a route or the like, and are not delivered yet.", float64(s.Misconfigured))
		gauge(r, "outbox_misconfigured_reported", "Those of them that have a pending dead letter.", float64(s.Reported))
		gauge(r, "outbox_oldest_pending_age_seconds", "Age of the oldest message that is not delivered yet; 0 without one.", s.OldestAgeSeconds)
		gauge(r, "outbox_overdue_seconds", "For how long that message has been due, and nobody has claimed it, that is furthest behind; 0 without one.", s.OverdueSeconds)
	})
}

// DeadLetters are the counts of one engine.
type DeadLetters struct {
	engine.DeadLetterCounts
	// Oldest is the last failure of the longest waiting pending one; zero when none is pending.
	Oldest time.Time
}

// DeadLetters exports, in the process that has the lease, the numbers of dead letters by status and engine. These
// counts are exact.
func (m *Metrics) DeadLetters(list func(ctx context.Context) ([]DeadLetters, error), now func() time.Time) {
	share(m, list, func(r *prometheus.Registry, all []DeadLetters) {
		counts := gauges(r, "dead_letters", "Dead letters by status: Pending ones wait for a decision.", "engine", "status")
		oldest := gauges(r, "dead_letters_oldest_pending_age_seconds", "How long ago that pending dead letter failed last that waits for longest; 0 without one.", "engine")
		for _, of := range all {
			for status, n := range map[engine.DeadLetterStatus]int64{engine.StatusPending: of.Pending, engine.StatusResolved: of.Resolved, engine.StatusExpired: of.Expired} {
				counts.WithLabelValues(of.Engine, string(status)).Set(float64(n))
			}
			age := 0.0
			if !of.Oldest.IsZero() {
				age = max(0, now().Sub(of.Oldest).Seconds())
			}
			oldest.WithLabelValues(of.Engine).Set(age)
		}
	})
}

// Queues exports, in the process that has the lease, the waiting messages of the queues.
func (m *Metrics) Queues(look func(ctx context.Context) ([]queueprobe.Head, error)) {
	share(m, look, func(r *prometheus.Registry, all []queueprobe.Head) {
		messages := gauges(r, "queue_messages", "Approximate number of messages of a queue, those that are being worked on or are due later included.", "queue")
		age := gauges(r, "queue_oldest_message_age_seconds", "Age of the message that is next to be received, its delay included; 0 when none can be received.", "queue")
		stuck := gauges(r, "queue_stuck_seconds", "For how long one message has been seen as the next to be received: nobody receives it; 0 without one.", "queue")
		for _, q := range all {
			messages.WithLabelValues(q.Queue).Set(float64(q.Messages))
			age.WithLabelValues(q.Queue).Set(q.Age.Seconds())
			stuck.WithLabelValues(q.Queue).Set(q.Stuck.Seconds())
		}
	})
}

// InstanceLocks exports, in the process that has the lease, the locks of instances.
func (m *Metrics) InstanceLocks(count func(ctx context.Context) (registry.Locks, error)) {
	share(m, count, func(r *prometheus.Registry, l registry.Locks) {
		gauge(r, "instance_locks_held", "Instances whose lock a run holds, up to 10,000 instances.", float64(l.Held))
		gauge(r, "instance_locks_expired", "Instances whose lock has expired and was not released, up to 10,000 instances.", float64(l.Expired))
		gauge(r, "instance_lock_oldest_expired_seconds", "For how long that lock of them has been expired that expired first; 0 without one.", l.LongestExpired.Seconds())
	})
}

// HostLocks exports, in the process that has the lease, the durations of jobs that one process runs for all. Other
// jobs count as other, with the longest of them.
func (m *Metrics) HostLocks(list func(ctx context.Context) ([]hostlock.Held, error), jobs []string, now func() time.Time) {
	share(m, list, func(r *prometheus.Registry, held []hostlock.Held) {
		age := gauges(r, "host_lock_age_seconds", "For how long the lock of a job has been held, 0 when it is free.", "job")
		longest := map[string]float64{other: 0}
		for _, job := range jobs {
			longest[job] = 0
		}
		for _, lock := range held {
			job := lock.Job
			if _, named := longest[job]; !named {
				job = other
			}
			longest[job] = max(longest[job], now().Sub(lock.AcquiredAt).Seconds())
		}
		for job, seconds := range longest {
			age.WithLabelValues(job).Set(seconds)
		}
	})
}

// Fleet exports, in the process that has the lease, the processes of the app that have worked within the last hour.
func (m *Metrics) Fleet(list func(ctx context.Context) ([]nodes.Info, error), now func() time.Time) {
	share(m, list, func(r *prometheus.Registry, all []nodes.Info) {
		alive, versions := 0, map[string]bool{}
		for _, n := range all {
			if n.State == nodes.StateAlive && now().Sub(n.Seen) < time.Hour {
				alive++
				versions[n.Version] = true
			}
		}
		gauge(r, "nodes_alive", "Processes of the app that have worked within the last hour and have not left.", float64(alive))
		gauge(r, "nodes_versions", "How many versions of the program they are of.", float64(len(versions)))
	})
}
