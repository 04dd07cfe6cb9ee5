package orchestrator

import (
	"context"
	"fmt"
)

// Tracer records traces of orchestrations. It receives only durable events: a replay traces nothing, and the process
// that takes over from a dead one reports the dead process's commits. A trace context is a text that only the Tracer
// understands. Rounds, signals and publications carry it, even without a Tracer. The methods are called on the
// goroutine that drives an orchestration, so they must not block.
type Tracer interface {
	// Begin returns the trace context of an orchestration that was started without one; it is the same each time.
	Begin(orchestration, correlationID string) (trace string)
	// Current returns the trace context of a caller of the Runtime, "" for none.
	Current(ctx context.Context) (trace string)
	// Within returns the trace context of a span of the trace: CallSpan, EventSpan and PublicationSpan name spans.
	Within(trace, span string) string
	// Run returns the RunTracer for the rounds of an execution, nil when its trace is not recorded.
	Run(x TracedExecution) RunTracer
}

// RunTracer receives the rounds of one execution, in order.
type RunTracer interface {
	// Loaded receives a round that was committed before. Its events may have been traced already.
	Loaded(r Round)
	// Committed receives a round that has just become durable.
	Committed(r Round)
	// Resumed reports that the process that committed the last loaded round may have died before it finished.
	Resumed()
}

// TracedExecution identifies the execution of a RunTracer.
type TracedExecution struct {
	Orchestration string
	Execution     int
	Orchestrator  string
	Version       string
	CorrelationID string
	TenantID      string
	// Parent is the id of the calling orchestration, "" for none.
	Parent string
	// Trace is the starter's trace context.
	Trace string
	// First is the number of the execution that was started from outside: this one, or an earlier one that continued
	// as new or failed.
	First int
}

// ExecutionSpan names the span of an execution.
func ExecutionSpan(orchestration string, execution int) string {
	return fmt.Sprintf("%s/%d", orchestration, execution)
}

// CallSpan names the span of an attempt at a call; attempt 0 is the call with all of its attempts.
func CallSpan(orchestration string, execution, call, attempt int) string {
	return fmt.Sprintf("%s/%d/%d/%d", orchestration, execution, call, attempt)
}

// EventSpan names the span of a raised event, by the id of its signal.
func EventSpan(orchestration, signal string) string { return orchestration + "/event/" + signal }

// PublicationSpan names the span of a published event, by its key.
func PublicationSpan(orchestration, key string) string { return orchestration + "/publication/" + key }

// TraceOf returns the trace context with which an orchestration is started: its starter's, or else the one that
// Config.Tracer begins for it; "" for none.
func (r *Runtime) TraceOf(s Start) string {
	if s.Trace != "" || r.config.Tracer == nil {
		return s.Trace
	}
	return r.config.Tracer.Begin(s.ID, s.CorrelationID)
}

// spanContext returns the trace context of a span of the driver's trace. If the trace is not recorded, it returns the
// context of the whole trace and does not build the span's name.
func (d *driver) spanContext(name func() string) string {
	if d.tracer == nil {
		return d.start.Trace
	}
	return d.rt.config.Tracer.Within(d.start.Trace, name())
}

// callTrace returns the trace context of an attempt at a call; attempt 0 is the call.
func (c *executor) callTrace(t *task, attempt int) string {
	if c.driver == nil { // this executor runs no attempts
		return c.start.Trace
	}
	return c.driver.spanContext(func() string { return CallSpan(c.start.ID, c.execution.number, t.number, attempt) })
}

// ownTrace returns the trace context of the driver's execution itself.
func (d *driver) ownTrace() string {
	return d.spanContext(func() string { return ExecutionSpan(d.start.ID, d.execution.number) })
}

// traceLoaded makes the tracer of the loaded execution, and passes the rounds to it.
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

// traceCommitted passes a round that has become durable to the tracer.
func (d *driver) traceCommitted(r round) {
	if len(d.rounds) == 1 {
		d.traceBegun()
	}
	if d.tracer != nil {
		d.tracer.Committed(r.shown(d.execution.number, len(d.rounds)))
	}
}
