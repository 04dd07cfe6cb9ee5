package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/traceparent"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Fate is the result of a delivery.
type Fate string

// The fates. Deliveries of all fates but Failed are acknowledged.
const (
	Succeeded    Fate = "succeeded"     // the run is in the history
	Duplicate    Fate = "duplicate"     // the work was done before, or is a dead letter already
	Failed       Fate = "failed"        // the message is redelivered
	DeadLettered Fate = "dead-lettered" // the message needs an operator
	Terminated   Fate = "terminated"    // an operator terminated or canceled the run, which is in the history
	Parked       Fate = "parked"        // requeued, or waiting for a signal
	Elsewhere    Fate = "elsewhere"     // requeued: another process runs the orchestration
	Conflicting  Fate = "conflicting"   // requeued: another run works on the instance
	Stalled      Fate = "stalled"       // a dead letter reports it; when the code is fixed, the run continues by itself
)

// Fates returns all fates, in the order of their documentation.
func Fates() []Fate {
	return []Fate{Succeeded, Duplicate, Failed, DeadLettered, Terminated, Parked, Elsewhere, Conflicting, Stalled}
}

// Final reports whether a message with this fate is settled for good: its run is over, or an operator decides.
func (f Fate) Final() bool { return slices.Contains([]Fate{Succeeded, DeadLettered, Terminated}, f) }

// Settled is a delivery whose fate is known, for metrics and traces.
type Settled struct {
	Engine, Queue string
	// MessageID is the sender's message id, Attempt the number of the attempt, and DequeueCount that of the delivery;
	// 0 without a delivery, because a signal ended the run.
	MessageID             string
	Attempt, DequeueCount int
	CorrelationID         string
	// OrchestrationID is the id of the message's run, even if no run exists; Trace is the traceparent of the message.
	OrchestrationID, Trace string
	// Fate is the outcome, and Cause the reason why it did not succeed, nil for success.
	Fate  Fate
	Cause error
	// Began is the start of the handling.
	Began time.Time
	// Took is the duration of the handling of this delivery; for a run that a signal ended, it is the time to write
	// history and dead letters.
	Took time.Duration
	// SinceSent is the time since the sender sent the message, requeues and waits included; 0 when unknown. For the
	// retry of a dead letter it counts from the retry.
	SinceSent time.Duration
}

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

// report counts the fate, notifies Observe, and logs one line.
func (a *attempt) report(ctx context.Context) {
	a.counts.mu.Lock()
	if a.counts.byFate == nil {
		a.counts.byFate = map[Fate]int{}
	}
	a.counts.byFate[a.fate]++
	a.counts.mu.Unlock()
	took := a.config.Now().Sub(a.began)
	a.observe(ctx, took)

	level, attrs := slog.LevelInfo, append(a.ids(),
		slog.String("messageId", a.header.MessageID),
		slog.Int("attempt", a.number),
		slog.String("fate", string(a.fate)),
		slog.Int64("durationMs", took.Milliseconds()))
	if a.cause != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", Redact(a.cause.Error())))
	}
	a.logDelivery(ctx, level, attrs...)
}

// ids returns the log fields that identify the message.
func (a *attempt) ids() []slog.Attr {
	ids := []slog.Attr{slog.String("engine", a.def.Name), slog.String("operation", a.def.operationOf(a.message))}
	trace := a.message.TraceParent
	if a.decodeErr == nil {
		run := orchestrator.Start{ID: a.orchestrationID(), CorrelationID: a.message.CorrelationID, Trace: trace}
		ids, trace = append(ids, slog.String("orchestrationId", run.ID)), a.config.Runtime.TraceOf(run)
	}
	for _, id := range [...]slog.Attr{slog.String("correlationId", a.message.CorrelationID), slog.String("tenantId", a.message.TenantID),
		slog.String("trace_id", traceparent.TraceID(trace))} {
		if id.Value.String() != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// observe calls Config.Observe. The message's time comes from storage, so a local clock behind it counts as no time.
func (a *attempt) observe(ctx context.Context, took time.Duration) {
	if a.config.Observe == nil {
		return
	}
	s := Settled{Engine: a.def.Name, Queue: a.def.Queue, MessageID: a.header.MessageID, Attempt: a.number, DequeueCount: a.number - a.header.Attempts,
		CorrelationID: a.message.CorrelationID, OrchestrationID: a.orchestrationID(), Trace: a.message.TraceParent, Fate: a.fate, Cause: a.cause,
		Began: a.began, Took: took}
	if sent := a.header.InsertedAt; !sent.IsZero() {
		s.SinceSent = max(0, a.config.Now().Sub(sent))
	}
	a.config.Observe(ctx, s)
}
