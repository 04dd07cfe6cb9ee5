package handler

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/handler/trigger"
)

// onQueues adds the functions of the engines' and of the runtime's queues.
func (p *parts) onQueues(out *program) {
	for name, q := range map[string]struct {
		queue          string
		handle, poison trigger.QueueHandler
	}{
		"orchestration-signal":   {p.runtime.SignalQueue(), p.probe.Listen(p.pipeline.HandleSignal), p.probe.Poison(p.pipeline.HandleSignalPoison)},
		"orchestration-schedule": {p.runtime.ScheduleQueue(), p.pipeline.HandleSignal, p.pipeline.HandleSignalPoison},
		"orchestration-activity": {p.runtime.ActivityQueue(), p.pipeline.HandleActivities, p.pipeline.HandleActivitiesPoison},
	} {
		p.onQueue(out, name+"-trigger", q.queue, q.handle)
		p.onQueue(out, name+engine.PoisonSuffix+"-trigger", q.queue+engine.PoisonSuffix, q.poison)
	}
	for _, d := range p.definitions {
		p.onQueue(out, d.QueueFunction(), d.Queue, p.pipeline.Handle)
		p.onQueue(out, d.PoisonFunction(), d.Queue+engine.PoisonSuffix, p.pipeline.HandlePoison)
	}
}

// onQueue adds a function whose messages have the pipeline's header when they are put back.
func (p *parts) onQueue(out *program, name, queue string, handle trigger.QueueHandler) {
	out.onQueue(name, queue, handle)
	q := out.Queues[name]
	q.PutBack = p.sealed.again(queue)
	out.Queues[name] = q
}

// onTimers adds the functions of what is done on schedule.
func (p *parts) onTimers(out *program) {
	s := p.settings
	sweeps := sweeper{runtime: p.runtime, list: p.list, probe: p.probe, node: p.node, locks: p.locks, log: p.log}
	ended := &purger{runtime: p.runtime, locks: p.locks, log: p.log, now: time.Now, keep: s.Retention}
	blobs := &blobSweeps{keep: s.BlobAge, now: time.Now, sweeps: []blobSweep{p.pipeline.SweepClaims, p.pipeline.SweepPayloads, p.events.admin.SweepPayloads, p.events.sweepData}}
	out.onTimer("orchestration-sweep-timer", "0 */5 * * * *", sweeps.handle)
	out.onTimer(purgeTimer, "0 37 * * * *", ended.handle)
	p.onRetention(out, "dlq-retention-timer", "0 20 3 * * *", rows(p.rules, p.letters.Retention))
	p.onRetention(out, "task-retention-timer", "0 23 3 * * *", func(ctx context.Context) (int, bool, error) {
		return p.runtime.Tasks().Retention(ctx, time.Now().Add(-s.Tasks.Retention), retentionSlice)
	})
	p.onRetention(out, "audit-retention-timer", "0 27 3 * * *", func(ctx context.Context) (int, bool, error) {
		return p.audit.Retention(ctx, time.Now().Add(-s.Access.AuditKeep), retentionSlice)
	})
	p.onRetention(out, "history-retention-timer", "0 40 3 * * *", rows(p.rules, p.history.Retention))
	p.onRetention(out, "blob-retention-timer", "0 50 3 * * *", blobs.slice)
	out.Functions = append(out.Functions, function.Unmonitored(schedulesTimer, "0 * * * * *"))
	out.Timers[schedulesTimer] = trigger.Timer{Parameter: function.TimerParameter, Handle: p.onSchedules, Ungated: true} // it would ask every minute, and what it sends waits
	out.Slot = p.sendSlot
}

// onRetention adds a timer function that deletes what was kept long enough, slice by slice.
func (p *parts) onRetention(out *program, name, schedule string, slice func(context.Context) (int, bool, error)) {
	out.onTimer(name, schedule, retention{job: name, slice: slice, locks: p.locks, log: p.log}.handle)
}
