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
func (v *visit) report(ctx context.Context) {
	v.counts.mu.Lock()
	if v.counts.byFate == nil {
		v.counts.byFate = map[Fate]int{}
	}
	v.counts.byFate[v.fate]++
	v.counts.mu.Unlock()

	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("engine", v.def.Name),
		slog.String("correlationId", v.message.CorrelationID),
		slog.String("messageId", v.journey.MessageID),
		slog.String("operation", v.def.operationOf(v.message)),
		slog.Int("attempt", v.attempt),
		slog.String("fate", string(v.fate)),
		slog.Int64("durationMs", v.config.Now().Sub(v.began).Milliseconds()),
	}
	if v.cause != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("reason", Redact(v.cause.Error())))
	}
	v.config.Log.LogAttrs(ctx, level, "delivery", attrs...)
}
