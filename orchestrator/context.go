package orchestrator

import (
	"context"
	"log/slog"
	"time"
)

// Context is an orchestrator's only access to the outside world. Only the coroutine that runs the orchestrator may use
// it, and only while the orchestrator runs.
type Context struct {
	execution *execution
	shielded  bool   // from cancellation
	scope     *scope // nil for that of the orchestration
}

// ID returns the orchestration's id.
func (c *Context) ID() string { return c.execution.id }

// Execution returns the generation of the orchestration, from 1.
func (c *Context) Execution() int { return c.execution.number }

// CorrelationID returns the correlation id with which the orchestration was started.
func (c *Context) CorrelationID() string { return c.execution.correlationID }

// TenantID returns the tenant that the orchestration belongs to, "" for the platform.
func (c *Context) TenantID() string { return c.execution.tenant }

// Now returns the time (UTC, microseconds) at which the orchestration learned its latest event. It is the same in
// every replay. It goes back only if the clock of a process was ahead of the others by more than 15 minutes.
func (c *Context) Now() time.Time { return c.execution.clock }

// Replaying reports whether the code is being replayed: it has run here before.
func (c *Context) Replaying() bool { return c.execution.replaying }

// HistoryLength returns how many events the execution has learned and decided by now, the same in every replay. The
// time for a replay grows with the history: an orchestration that runs for ever should continue as new (ContinueAsNew)
// before it has some 10,000 events.
func (c *Context) HistoryLength() int { return c.execution.learnedCount + c.execution.decisions }

// Parking reports whether the orchestration is leaving memory. Deferred functions run then, although the orchestration
// has not ended: the process that takes it over runs them again. Their calls have no effect.
func (c *Context) Parking() bool { return c.execution.closing }

// Logger returns a logger with the orchestration's id and execution, and its correlation id, tenant and trace if it
// has them. It logs nothing during a replay or while parking.
func (c *Context) Logger() *slog.Logger {
	x := c.execution
	if x.codeLog == nil {
		x.codeLog = slog.New(replayHandler{x.ownLog().Handler(), x}).With("execution", x.number)
	}
	return x.codeLog
}

// replayHandler drops the log of an execution while it replays or parks.
type replayHandler struct {
	slog.Handler
	execution *execution
}

func (h replayHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.execution.replaying && !h.execution.closing && h.Handler.Enabled(ctx, level)
}

func (h replayHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return replayHandler{h.Handler.WithAttrs(attrs), h.execution}
}

func (h replayHandler) WithGroup(name string) slog.Handler {
	return replayHandler{h.Handler.WithGroup(name), h.execution}
}
