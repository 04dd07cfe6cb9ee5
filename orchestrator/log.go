package orchestrator

import (
	"log/slog"

	"github.com/vibedata/roundhouse/internal/traceparent"
)

// lineIDs returns the fields of every log line about an orchestration, as far as they are known.
func lineIDs(orchestration, correlationID, tenant, trace string) []slog.Attr {
	ids := []slog.Attr{slog.String("orchestrationId", orchestration)}
	for _, id := range [...]slog.Attr{slog.String("correlationId", correlationID), slog.String("tenantId", tenant), slog.String("trace_id", traceparent.TraceID(trace))} {
		if id.Value.String() != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// log returns the runtime's log, with the ids of the driver's orchestration.
func (d *driver) log() *slog.Logger {
	return slog.New(d.rt.config.Log.Handler().WithAttrs(lineIDs(d.start.ID, d.start.CorrelationID, d.start.TenantID, d.start.Trace)))
}

// ownLog returns the runtime's log, with the ids of the execution's orchestration.
func (x *execution) ownLog() *slog.Logger {
	return slog.New(x.log.Handler().WithAttrs(lineIDs(x.id, x.correlationID, x.tenant, x.trace)))
}

// LogAttrs returns the ids of the orchestration that the activity works for, with the field names of the runtime's own
// lines.
func (i ActivityInfo) LogAttrs() []slog.Attr {
	if i.Orchestration == "" {
		return nil
	}
	return append(lineIDs(i.Orchestration, i.CorrelationID, i.TenantID, i.Trace), slog.Int("execution", i.Execution), slog.Int("attempt", i.Attempt))
}
