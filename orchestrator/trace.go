package orchestrator

import (
	"context"
	"fmt"
)

// Tracer makes traces of what orchestrations do. It is told of nothing but what is durable: a replay traces nothing, and what
// a process that died has committed is told by the one that goes on. A trace context is a text that the Tracer alone
// understands; rounds, signals and publications carry it, also where there is no Tracer. The methods are called on the goroutine
// that drives an orchestration, so they must not block.
type Tracer interface {
	// Begin returns the trace context of an orchestration that was started without one; it is the same each time.
	Begin(orchestration, correlationID string) (trace string)
	// Current returns the trace context in which a caller of the Runtime works, "" for none.
	Current(ctx context.Context) (trace string)
	// Within returns the trace context of a span of the trace: CallSpan, EventSpan and PublicationSpan name spans.
	Within(trace, span string) string
	// Run returns what takes the rounds of an execution, nil when its trace is not recorded.
	Run(x TracedExecution) RunTracer
}

// RunTracer takes the rounds of one execution, in order.
type RunTracer interface {
	// Loaded takes a round that was committed before. What it tells may have been told or not.
	Loaded(r Round)
	// Committed takes a round that has just become durable.
	Committed(r Round)
	// Resumed says that whoever committed the last of the rounds that were loaded may have died over it.
	Resumed()
}

// TracedExecution says whose rounds a RunTracer takes.
type TracedExecution struct {
	Orchestration string
	Execution     int
	Orchestrator  string
	Version       string
	CorrelationID string
	TenantID      string
	// Parent is the id of the calling orchestration, "" for none.
	Parent string
	// Trace is the trace context of whoever started it.
	Trace string
	// First is the number of the execution that was started from outside: this one, or an earlier one that continued as new or
	// failed.
	First int
}

// ExecutionSpan names the span of an execution.
func ExecutionSpan(orchestration string, execution int) string {
	return fmt.Sprintf("%s/%d", orchestration, execution)
}

// CallSpan names the span of an attempt at a call; attempt 0 is that of the call with all of its attempts.
func CallSpan(orchestration string, execution, call, attempt int) string {
	return fmt.Sprintf("%s/%d/%d/%d", orchestration, execution, call, attempt)
}

// EventSpan names the span of an event that was raised, by the id of its signal.
func EventSpan(orchestration, signal string) string { return orchestration + "/event/" + signal }

// PublicationSpan names the span of an event that an orchestration published, by its key.
func PublicationSpan(orchestration, key string) string { return orchestration + "/publication/" + key }

// TraceOf is the trace context with which an orchestration is started: its starter's, or else the one that Config.Tracer begins for it;
// "" for none.
func (r *Runtime) TraceOf(s Start) string {
	if s.Trace != "" || r.config.Tracer == nil {
		return s.Trace
	}
	return r.config.Tracer.Begin(s.ID, s.CorrelationID)
}

// spanContext returns the trace context of a span of the driver's trace, which is that of the whole if it is not recorded: names
// of spans are made for what is recorded only.
func (d *driver) spanContext(name func() string) string {
	if d.tracer == nil {
		return d.start.Trace
	}
	return d.rt.config.Tracer.Within(d.start.Trace, name())
}

// callTrace is the trace context of an attempt at a call; attempt 0 is the call.
func (c *executor) callTrace(t *task, attempt int) string {
	if c.driver == nil { // which runs none
		return c.start.Trace
	}
	return c.driver.spanContext(func() string { return CallSpan(c.start.ID, c.execution.number, t.number, attempt) })
}

// ownTrace is the trace context of the driver's execution itself.
func (d *driver) ownTrace() string {
	return d.spanContext(func() string { return ExecutionSpan(d.start.ID, d.execution.number) })
}

// traceLoaded makes the tracer of the execution that was loaded, and gives it the rounds.
func (d *driver) traceLoaded() {
	d.traceBegun()
	if d.tracer == nil {
		return
	}
	for _, r := range d.rounds {
		d.tracer.Loaded(r.shown(d.execution.number, 0))
	}
}

// traceBegun makes the tracer of the execution.
func (d *driver) traceBegun() {
	d.tracer = nil
	started := d.rounds[0].Learned[0]
	s := started.start()
	if s.Trace == "" || d.rt.config.Tracer == nil {
		return
	}
	d.tracer = d.rt.config.Tracer.Run(TracedExecution{Orchestration: d.start.ID, Execution: d.execution.number, Orchestrator: started.Name, Version: s.Version,
		CorrelationID: s.CorrelationID, TenantID: s.Tenant, Parent: s.Parent, Trace: s.Trace, First: max(s.First, 1)})
}

// traceCommitted tells the tracer of a round that has become durable.
func (d *driver) traceCommitted(r round) {
	if len(d.rounds) == 1 {
		d.traceBegun()
	}
	if d.tracer != nil {
		d.tracer.Committed(r.shown(d.execution.number, len(d.rounds)))
	}
}
