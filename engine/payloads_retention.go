package engine

import (
	"context"
	"time"
)

// SweepPayloads is orchestrator.Runtime.SweepBlobs for a program with dead letters. It checks one page of the
// container and deletes unreferenced payloads of orchestrations that were written before a time; next continues
// behind the page and is "" after the last one.
//
// A payload that a message may name is kept while the runtime's queues of signals and of activities, or their poison
// queues, hold any message, hidden ones included, and for as long as a dead letter of these queues is about its
// orchestration. Messages of timers have no payloads.
func (p *Pipeline) SweepPayloads(ctx context.Context, before time.Time, from string) (removed int, next string, err error) {
	rt, idle := p.config.Runtime, (*bool)(nil)
	return rt.SweepBlobs(ctx, before, from, func(ctx context.Context, orchestration string) (bool, error) {
		if idle == nil {
			quiet, err := p.runtimeQueuesEmpty(ctx)
			if err != nil {
				return false, err
			}
			idle = &quiet
		}
		if !*idle {
			return true, nil
		}
		return p.hasDeadLetter(ctx, orchestration)
	})
}

// runtimeQueuesEmpty reports whether no message of the runtime can name a payload.
func (p *Pipeline) runtimeQueuesEmpty(ctx context.Context) (bool, error) {
	for _, queue := range []string{p.config.Runtime.SignalQueue(), p.config.Runtime.ActivityQueue()} {
		empty, err := p.queueEmpty(ctx, queue)
		if err != nil {
			return false, err
		}
		if !empty {
			p.config.Log.InfoContext(ctx, "payloads of messages to orchestrations are kept: a queue is not empty", "queue", queue)
			return false, nil
		}
	}
	return true, nil
}

// hasDeadLetter reports whether a dead letter can name a payload of the orchestration. An orchestration id that is
// too long for a correlation id is not in the dead letter, so then any dead letter may name it.
func (p *Pipeline) hasDeadLetter(ctx context.Context, orchestration string) (bool, error) {
	f := DeadLetterFilter{Engines: []string{SignalEngine}, Limit: 1}
	if checkID("correlation id", orchestration) == nil {
		f.CorrelationID = orchestration
	}
	dead, err := p.config.DeadLetters.List(ctx, f)
	return err != nil || len(dead.DeadLetters) > 0, err
}
