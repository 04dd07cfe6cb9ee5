package tracing

import (
	"cmp"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/vibedata/roundhouse/orchestrator"
)

// run builds the spans of one execution from its rounds.
type run struct {
	tell    func(span)
	x       orchestrator.TracedExecution
	starter trace.SpanContext // the creator of the execution
	own     trace.SpanContext // the execution
	begin   time.Time
	attempt int
	calls   []call              // by number, from 1
	open    int                 // calls before this index have ended
	links   []trace.SpanContext // events that it received
	unread  map[string]int      // events that came before a wait, by name
	untold  []span              // spans of loaded rounds, not yet exported
	loading bool
	ended   bool
}

// call is a call whose span is made when it ends.
type call struct {
	kind    string // of the event that decided it
	name    string
	child   string
	local   bool
	begin   time.Time
	attempt time.Time // start of the current attempt
	failed  int       // number of failed attempts
	done    bool
}

func newRun(tell func(span), x orchestrator.TracedExecution, starter trace.SpanContext) *run {
	return &run{tell: tell, x: x, starter: starter, unread: map[string]int{}, own: within(starter, orchestrator.ExecutionSpan(x.Orchestration, x.Execution))}
}

// Loaded processes a round that another process may have exported.
func (r *run) Loaded(round orchestrator.Round) {
	r.loading = true
	r.take(round)
	r.loading = false
}

// Committed processes a round, and exports the spans that it ends.
func (r *run) Committed(round orchestrator.Round) { r.take(round) }

// Resumed exports an execution again that has ended; a running one is exported at its end.
func (r *run) Resumed() {
	if r.ended {
		r.tellLoaded()
	}
}

// tellLoaded exports the spans of loaded rounds.
func (r *run) tellLoaded() {
	for _, s := range r.untold {
		r.tell(s)
	}
	r.untold = nil
}

// take processes the events of a round in the order of their times, in which they happened.
func (r *run) take(round orchestrator.Round) {
	learned, decided := round.Learned, round.Decided
	for len(learned)+len(decided) > 0 {
		if len(decided) == 0 || len(learned) > 0 && learned[0].At.Before(decided[0].At) {
			r.learn(learned[0])
			learned = learned[1:]
			continue
		}
		r.decide(decided[0])
		decided = decided[1:]
	}
}

// add exports a span, or keeps it until the end if another process may have exported it.
func (r *run) add(s span) {
	s.attributes = append(s.attributes, attribute.String("durabletask.task.instance_id", r.x.Orchestration),
		attribute.String("durabletask.task.execution_id", strconv.Itoa(r.x.Execution)))
	if r.x.CorrelationID != "" {
		s.attributes = append(s.attributes, attribute.String("roundhouse.correlation_id", r.x.CorrelationID))
	}
	if r.loading {
		r.untold = append(r.untold, s)
		return
	}
	r.tell(s)
}

func (r *run) learn(e orchestrator.RoundEvent) {
	switch e.Kind {
	case "ExecutionStarted":
		r.begin, r.attempt = e.At, max(e.Attempt, 1)
		r.create()
	case "EventRaised":
		r.event(e)
	case "AttemptFailed":
		if c := r.call(e); c != nil {
			r.attempted(e, c)
			c.failed, c.attempt = e.Attempt, e.Due
		}
	case "ActivityCompleted", "ActivityFailed":
		if c := r.call(e); c != nil {
			r.attempted(e, c)
			r.end(e, c, statusOf(e))
		}
	case "OrchestrationCompleted", "OrchestrationFailed", "TimerFired", "TaskCompleted":
		if c := r.call(e); c != nil {
			r.end(e, c, statusOf(e))
		}
	}
}

func (r *run) decide(e orchestrator.RoundEvent) {
	switch e.Kind {
	case "ActivityScheduled", "OrchestrationScheduled", "TimerScheduled", "EventAwaited", "TaskCreated":
		r.calls = append(r.calls, call{kind: e.Kind, name: e.Name, child: e.Child, local: e.Local, begin: e.At, attempt: e.At})
		if e.Kind == "EventAwaited" && e.Call == len(r.calls) {
			r.awaited(e)
		}
	case "CallCanceled":
		if c := r.call(e); c != nil {
			r.end(e, c, "Canceled")
		}
	case "EventSent":
		r.add(span{name: "orchestration_event:" + e.Name, kind: trace.SpanKindProducer, context: within(r.starter, orchestrator.EventSpan(e.Child, e.Signal)),
			parent: r.own.SpanID(), begin: e.At, end: e.At, attributes: []attribute.KeyValue{attribute.String("durabletask.type", "event"),
				attribute.String("durabletask.event.name", e.Name), attribute.String("durabletask.event.target_instance_id", e.Child)}})
	case "EventPublished":
		r.add(span{name: "publish " + e.Name, kind: trace.SpanKindProducer, context: within(r.starter, orchestrator.PublicationSpan(r.x.Orchestration, e.Child)),
			parent: r.own.SpanID(), begin: e.At, end: e.At, attributes: []attribute.KeyValue{attribute.String("messaging.system", "roundhouse_outbox"),
				attribute.String("messaging.operation.type", "send"), attribute.String("messaging.destination.name", e.Name)}})
	case "ExecutionCompleted", "ExecutionFailed", "ExecutionStopped", "ExecutionContinuedAsNew":
		r.finish(e)
	}
}

// call returns the open call that an event is about; nil for none. A result that an earlier execution left belongs to
// that one's trace.
func (r *run) call(e orchestrator.RoundEvent) *call {
	if e.Call < 1 || e.Call > len(r.calls) || r.calls[e.Call-1].done {
		return nil
	}
	c := &r.calls[e.Call-1]
	if e.Reused {
		c.done = true
		return nil
	}
	return c
}

// create makes the creation span of an execution that was started from outside, not called.
func (r *run) create() {
	if r.x.Parent != "" || r.x.First != r.x.Execution {
		return
	}
	own := within(r.starter, createSpan(r.x.Orchestration))
	s := span{name: "create_orchestration:" + r.named(), kind: trace.SpanKindProducer, context: own, begin: r.begin, end: r.begin, attributes: r.attributes("orchestration", r.x.Orchestrator)}
	if r.starter.SpanID() != own.SpanID() {
		s.parent = r.starter.SpanID()
	}
	r.add(s)
}

// parent returns the parent span of the execution.
func (r *run) parent() trace.SpanID {
	if r.x.Parent != "" {
		return r.starter.SpanID()
	}
	return spanID(r.starter.TraceID(), createSpan(r.x.Orchestration))
}

// event links the execution to an event. An event from outside an orchestration gets its span here.
func (r *run) event(e orchestrator.RoundEvent) {
	name := orchestrator.EventSpan(r.x.Orchestration, e.Signal)
	from, traced := Parse(e.Trace)
	defer r.received(e)
	if traced && from.SpanID() == spanID(from.TraceID(), name) {
		r.links = append(r.links, from)
		return
	}
	s := span{name: "orchestration_event:" + e.Name, kind: trace.SpanKindProducer, context: within(r.starter, name), parent: r.own.SpanID(), begin: e.At, end: e.At,
		attributes: []attribute.KeyValue{attribute.String("durabletask.type", "event"), attribute.String("durabletask.event.name", e.Name),
			attribute.String("durabletask.event.target_instance_id", r.x.Orchestration)}}
	if traced {
		s.links = []trace.SpanContext{from}
	}
	r.add(s)
	r.links = append(r.links, s.context)
}

// received ends the first wait for an event of this name, as the runtime does, or keeps the event for the next wait.
func (r *run) received(e orchestrator.RoundEvent) {
	for ; r.open < len(r.calls) && r.calls[r.open].done; r.open++ {
	}
	for i := r.open; i < len(r.calls); i++ {
		if c := &r.calls[i]; c.kind == "EventAwaited" && !c.done && c.name == e.Name {
			e.Call = i + 1
			r.end(e, c, "Completed")
			return
		}
	}
	r.unread[e.Name]++
}

// awaited ends a wait immediately if an event was kept for it.
func (r *run) awaited(e orchestrator.RoundEvent) {
	if r.unread[e.Name] > 0 {
		r.unread[e.Name]--
		r.end(e, &r.calls[e.Call-1], "Completed")
	}
}

// attempted makes the span of an attempt at an activity.
func (r *run) attempted(e orchestrator.RoundEvent, c *call) {
	number := c.failed + 1
	s := span{name: "activity:" + c.name, kind: trace.SpanKindServer, context: r.callContext(e.Call, number), parent: r.callContext(e.Call, 0).SpanID(),
		begin: c.attempt, end: e.At, failure: failureOf(e), attributes: r.attributes("activity", c.name)}
	s.attributes = append(s.attributes, attribute.Int("durabletask.task.task_id", e.Call), attribute.Int("roundhouse.attempt", number))
	r.add(s)
}

// end makes the span of a call that has ended.
func (r *run) end(e orchestrator.RoundEvent, c *call, status string) {
	c.done = true
	kind, name, does := shapeOf(c, r.x.Orchestrator)
	s := span{name: name, kind: kind, context: r.callContext(e.Call, 0), parent: r.own.SpanID(), begin: c.begin, end: e.At, failure: failureOf(e),
		attributes: r.attributes(does, c.name)}
	s.attributes = append(s.attributes, attribute.Int("durabletask.task.task_id", e.Call), attribute.String("durabletask.task.status", status))
	if c.local {
		s.attributes = append(s.attributes, attribute.Bool("roundhouse.local", true))
	}
	if c.child != "" {
		s.attributes = append(s.attributes, attribute.String("roundhouse.child_id", c.child))
	}
	if c.kind == "TimerScheduled" {
		s.attributes = append(s.attributes, attribute.String("durabletask.fire_at", e.At.UTC().Format(time.RFC3339Nano)))
	}
	r.add(s)
}

// shapeOf returns the kind and the name of the span of a call, and its durabletask.type.
func shapeOf(c *call, orchestrator string) (kind trace.SpanKind, name, does string) {
	switch c.kind {
	case "OrchestrationScheduled":
		return trace.SpanKindClient, "orchestration:" + c.name, "orchestration"
	case "TimerScheduled":
		return trace.SpanKindInternal, "orchestration:" + orchestrator + ":timer", "timer"
	case "EventAwaited":
		return trace.SpanKindConsumer, "orchestration_event:" + c.name, "event"
	case "TaskCreated":
		return trace.SpanKindInternal, "task:" + c.name, "task"
	default:
		return trace.SpanKindClient, "activity:" + c.name, "activity"
	}
}

// finish exports the execution, calls without a wait, and all loaded spans. Later events change nothing.
func (r *run) finish(e orchestrator.RoundEvent) {
	if r.ended {
		return
	}
	r.ended = true
	status := map[string]string{"ExecutionCompleted": "Completed", "ExecutionFailed": "Failed", "ExecutionStopped": "Terminated", "ExecutionContinuedAsNew": "ContinuedAsNew"}[e.Kind]
	for i := range r.calls {
		if c := &r.calls[i]; !c.done {
			r.end(orchestrator.RoundEvent{Call: i + 1, At: e.At}, c, "Canceled")
		}
	}
	s := span{name: "orchestration:" + r.named(), kind: trace.SpanKindServer, context: r.own, parent: r.parent(), links: r.links, begin: r.begin, end: e.At, failure: failureOf(e),
		attributes: append(r.attributes("orchestration", r.x.Orchestrator), attribute.String("durabletask.task.status", status), attribute.Int("roundhouse.attempt", r.attempt))}
	if r.add(s); !r.loading {
		r.tellLoaded()
	}
}

// named returns the orchestrator with its version.
func (r *run) named() string {
	if r.x.Version == "" {
		return r.x.Orchestrator
	}
	return r.x.Orchestrator + "@(" + r.x.Version + ")"
}

func (r *run) attributes(does, name string) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("durabletask.type", does), attribute.String("durabletask.task.name", name)}
	if r.x.Version != "" && does == "orchestration" {
		all = append(all, attribute.String("durabletask.task.version", r.x.Version))
	}
	return all
}

func (r *run) callContext(number, attempt int) trace.SpanContext {
	return within(r.starter, orchestrator.CallSpan(r.x.Orchestration, r.x.Execution, number, attempt))
}

func statusOf(e orchestrator.RoundEvent) string {
	if e.Failure != nil {
		return "Failed"
	}
	return "Completed"
}

// failureOf returns the error text of a span, "" for none.
func failureOf(e orchestrator.RoundEvent) string {
	if e.Failure == nil {
		return ""
	}
	return failureText(cmp.Or(e.Failure.Message, e.Failure.Code, "failed"))
}
