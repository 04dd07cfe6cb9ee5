package handler

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/handler/poison"
	"github.com/vibedata/roundhouse/handler/trigger"
)

// onQueues adds the functions of the engines' and of the runtime's queues, and the handlers of their poison queues.
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
		out.onPoison(q.queue, q.poison, p.sealed.again)
	}
	for _, d := range p.definitions {
		p.onQueue(out, d.QueueFunction(), d.Queue, p.pipeline.Handle)
		out.onPoison(d.Queue, p.pipeline.HandlePoison, p.sealed.again)
	}
}

// onQueue adds a function whose requeued messages have the pipeline's header.
func (p *parts) onQueue(out *program, name, queue string, handle trigger.QueueHandler) {
	out.onQueue(name, queue, handle)
	q := out.Queues[name]
	q.PutBack = p.sealed.again(queue)
	out.Queues[name] = q
}

// onTimers adds the timer functions. Each costs its host two requests a minute, for a lease, so jobs that can wait
// for others share one.
func (p *parts) onTimers(out *program) {
	sweeps := sweeper{runtime: p.runtime, list: p.list, probe: p.probe, node: p.node, poison: p.poisonReceiver(out), locks: p.locks, log: p.log}
	out.onTimer("orchestration-sweep-timer", "0 */5 * * * *", sweeps.handle)
	out.onTimer(retentionTimer, "0 17 * * * *", p.retentions().handle)
	out.Functions = append(out.Functions, function.Unmonitored(schedulesTimer, "0 * * * * *"))
	out.Timers[schedulesTimer] = trigger.Timer{Parameter: function.TimerParameter, Handle: p.onSchedules, Ungated: true} // it would ask every minute, and its messages wait
	out.Slot = p.sendSlot
}

// poisonReceiver returns the receiver of the poison queues. Each message is handled like a delivery of the host.
func (p *parts) poisonReceiver(out *program) *poison.Receiver {
	run := trigger.NewDirect(trigger.Config{Budget: min(poisonTime, p.settings.Budget), Ready: p.preparation.Await, Gate: out.Gate, Log: p.log})
	c := poison.Config{Queues: p.sealed.queues}
	for _, q := range out.Poison {
		c.From = append(c.From, poison.Queue{Name: q.Queue, Handle: func(ctx context.Context, d engine.Delivery) error { return run.Run(ctx, q.Queue, q, d) }})
	}
	return poison.New(c)
}

// retentions returns the retention jobs. Jobs that scan whole containers are last: they may take all the available
// time.
func (p *parts) retentions() *retentions {
	s := p.settings
	ended := &purger{runtime: p.runtime, locks: p.locks, log: p.log, now: time.Now, keep: s.Retention}
	blobs := &blobSweeps{keep: s.BlobAge, now: time.Now, sweeps: []blobSweep{p.pipeline.SweepClaims, p.pipeline.SweepPayloads, p.events.admin.SweepPayloads, p.events.sweepData}}
	nightly := func(job string, slice func(context.Context) (int, bool, error)) retention {
		return retention{job: job, slice: slice, locks: p.locks, log: p.log}
	}
	return &retentions{tables: p.placement, now: time.Now, hourly: []trigger.TimerHandler{ended.handle, p.events.retain}, nightly: []retention{
		nightly("dlq-retention", rows(p.rules, p.letters.Retention)),
		nightly("task-retention", func(ctx context.Context) (int, bool, error) {
			return p.runtime.Tasks().Retention(ctx, time.Now().Add(-s.Tasks.Retention), retentionSlice)
		}),
		nightly("audit-retention", func(ctx context.Context) (int, bool, error) {
			return p.audit.Retention(ctx, time.Now().Add(-s.Access.AuditKeep), retentionSlice)
		}),
		nightly("history-retention", rows(p.rules, p.history.Retention)),
		nightly("blob-retention", blobs.slice),
	}}
}
