package engine

import (
	"context"
	"log/slog"
	"sync"
)

// Fate is what became of a delivery.
type Fate string

// The fates. All but Failed are acknowledged.
const (
	Succeeded    Fate = "succeeded"     // the run is in the history
	Duplicate    Fate = "duplicate"     // its work was done, or is a dead letter, already
	Failed       Fate = "failed"        // to be delivered again
	DeadLettered Fate = "dead-lettered" // for a person
	Terminated   Fate = "terminated"    // or canceled, by a person, who knows of it; the run is in the history
	Parked       Fate = "parked"        // put back until something can be done
	Elsewhere    Fate = "elsewhere"     // put back: another process has it
	Conflicting  Fate = "conflicting"   // put back: another run has its instance
	Stalled      Fate = "stalled"       // a dead letter tells of it; its run goes on by itself when the code is mended
)

// counts counts deliveries by fate.
type counts struct {
	mu     sync.Mutex
	byFate map[Fate]int
}

// Count says how many deliveries this pipeline has brought to a fate.
func (p *Pipeline) Count(f Fate) int {
	p.counts.mu.Lock()
	defer p.counts.mu.Unlock()
	return p.counts.byFate[f]
}

// report counts the visit and logs its one line.
func (a *attempt) report(ctx context.Context) {
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
