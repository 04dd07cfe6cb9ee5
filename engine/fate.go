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

// Fates are all fates, in the order in which they are explained.
func Fates() []Fate {
	return []Fate{Succeeded, Duplicate, Failed, DeadLettered, Terminated, Parked, Elsewhere, Conflicting, Stalled}
}

// Final says whether nothing more becomes of a message with this fate by itself: its run is over, or a person decides.
func (f Fate) Final() bool { return slices.Contains([]Fate{Succeeded, DeadLettered, Terminated}, f) }

// Settled is a delivery whose fate is known, for those who count and trace them.
type Settled struct {
	Engine, Queue string
	// MessageID is that of the sender's message, Attempt the number of the attempt, and DequeueCount that of the delivery; 0 where
	// there was none, because a signal has led the run to its end.
	MessageID             string
	Attempt, DequeueCount int
	CorrelationID         string
	// OrchestrationID is the id that a run of the message has, also when there is none; Trace is the traceparent of the message.
	OrchestrationID, Trace string
	// Fate is what became of it, and Cause why it did not succeed, nil when it did.
	Fate  Fate
	Cause error
	// Began is when its handling began.
	Began time.Time
	// Took is how long the handling of this delivery took; for the end of a run to which a signal has led, that is the writing of
	// history and dead letters.
	Took time.Duration
	// SinceSent is the time since the sender has sent the message, put-backs and waits included; 0 when that is not known. For
	// the retry of a dead letter it counts from the retry.
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

// report counts the fate, tells who wants to know, and logs one line.
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

// ids are the fields that say whose the message is, those that it has.
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

// observe tells whoever counts deliveries. Storage dates a message, so a clock that is behind it counts as no time.
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
