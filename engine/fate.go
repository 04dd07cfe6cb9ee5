package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Fate is the result of a delivery.
type Fate string

// These are the fates. Deliveries of all fates but Failed are acknowledged.
const (
	Succeeded    Fate = "succeeded"     // the run is in the history
	Duplicate    Fate = "duplicate"     // the work was done before, or is a dead letter already
	Failed       Fate = "failed"        // the message is delivered again
	DeadLettered Fate = "dead-lettered" // the message needs a person
	Terminated   Fate = "terminated"    // a person terminated or canceled the run, which is in the history
	Parked       Fate = "parked"        // put back, or waiting for a signal
	Elsewhere    Fate = "elsewhere"     // put back: another process runs the orchestration
	Conflicting  Fate = "conflicting"   // put back: another run works on the instance
	Stalled      Fate = "stalled"       // a dead letter reports it; when the code is fixed, the run goes on by itself
)

// counts counts deliveries by fate.
type counts struct {
	mu     sync.Mutex
	byFate map[Fate]int
}

// Count returns how many deliveries of this pipeline had this fate.
func (p *Pipeline) Count(f Fate) int {
	p.counts.mu.Lock()
	defer p.counts.mu.Unlock()
	return p.counts.byFate[f]
}

// Settlement is how the handling of a delivery ended.
type Settlement struct {
	Engine, Queue, Operation string
	MessageID, CorrelationID string
	// OrchestrationID is the id that a run of the message has, also when there is none; Trace is what the message carries.
	OrchestrationID, Trace string
	// Attempt is the number of the attempt, DequeueCount that of the delivery.
	Attempt, DequeueCount int
	// InsertedAt is when the sender's message entered the queue, zero when that is not known. Began and Ended bound the handling.
	InsertedAt, Began, Ended time.Time
	Fate                     Fate
	// Cause is why it did not succeed, nil when it did.
	Cause error
}

// settlement is what Config.Settled is told.
func (a *attempt) settlement() Settlement {
	return Settlement{Engine: a.def.Name, Queue: a.def.Queue, Operation: a.def.operationOf(a.message), MessageID: a.header.MessageID,
		CorrelationID: a.message.CorrelationID, OrchestrationID: a.orchestrationID(), Trace: a.message.TraceParent, Attempt: a.number,
		DequeueCount: a.number - a.header.Attempts, InsertedAt: a.header.InsertedAt, Began: a.began, Ended: a.config.Now(), Fate: a.fate, Cause: a.cause}
}

// report counts the fate, tells who wants to know, and logs one line.
func (a *attempt) report(ctx context.Context) {
	if a.config.Settled != nil {
		a.config.Settled(a.settlement())
	}
	a.counts.mu.Lock()
	if a.counts.byFate == nil {
		a.counts.byFate = map[Fate]int{}
	}
	a.counts.byFate[a.fate]++
	a.counts.mu.Unlock()

	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("engine", a.def.Name),
		slog.String("correlationId", a.message.CorrelationID),
		slog.String("messageId", a.header.MessageID),
		slog.String("operation", a.def.operationOf(a.message)),
		slog.Int("attempt", a.number),
		slog.String("fate", string(a.fate)),
		slog.Int64("durationMs", a.config.Now().Sub(a.began).Milliseconds()),
	}
	if a.cause != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("reason", Redact(a.cause.Error())))
	}
	a.config.Log.LogAttrs(ctx, level, "delivery", attrs...)
}
