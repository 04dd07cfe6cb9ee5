package orchestrator

import (
	"maps"
	"strconv"
	"time"
)

// provider names this runtime in snapshots and signals.
const provider = "roundhouse"

// snapshotSchema is the version of the status columns.
const snapshotSchema = 1

const columnCreated = "CreatedAtUtc"

// constant are the columns that no round of an execution changes. They are made once: a round is what everything waits for.
func (d *driver) constant() map[string]any {
	x := d.execution
	if created, ok := x.columns[columnCreated].(time.Time); !ok || !created.Equal(d.createdAt) { // somebody else may have begun it
		x.columns = map[string]any{
			"Name":                  x.name,
			"CorrelationId":         x.correlationID,
			"RuntimeProvider":       provider,
			"RuntimeInstanceId":     x.id + "/" + strconv.Itoa(x.number),
			"Execution":             int64(x.number),
			"SnapshotSchemaVersion": int64(snapshotSchema),
			columnCreated:           d.createdAt,
			"LastExecutedBy":        d.rt.config.Node,
		}
	}
	return x.columns
}

// status gives the columns of the status row as they are after the round that is about to be committed (persistence
// document, section 3). StateVersion counts the rounds of all executions. What an execution waits for, its code alone
// knows: without that, the row does not say.
func (d *driver) status(now time.Time) map[string]any {
	x := d.execution
	round := len(d.rounds) + 1
	status, failure := x.currentStatus()
	columns := make(map[string]any, 24)
	maps.Copy(columns, d.constant())
	d.describe(columns, status)
	columns["RuntimeStatus"] = string(status)
	columns["Round"] = int64(round)
	columns["StateVersion"] = int64(d.version + 1)
	columns["ResumePointerJson"] = `{"execution":` + strconv.Itoa(x.number) + `,"round":` + strconv.Itoa(round) + `}`
	columns["LastExecutedOnUtc"] = now
	setText(columns, "LastSignalId", x.received.last)
	if failure != nil {
		setText(columns, "LastErrorCode", failure.Code)
		setText(columns, "LastErrorJson", failure.text())
	}
	return columns
}

// describe adds the columns that tell what the execution is and waits for.
func (d *driver) describe(columns map[string]any, status Status) {
	x := d.execution
	setText(columns, "CustomStatus", x.customStatus)
	setText(columns, "Version", x.version)
	setText(columns, "ParentId", d.start.Parent)
	setText(columns, "BusinessReference", x.reference.text())
	wait, token := x.waitingFor(), ""
	if wait != nil {
		token = x.token(wait)
		columns["WaitingKind"], columns["WaitingToken"] = wait.waitingKind(), token
	}
	if t := x.activeTask(); t != nil {
		columns["ActiveTaskId"] = x.token(t)
	}
	columns["StateJson"] = x.state(status, wait, token)
	if due := x.waitingUntil(); due != 0 {
		columns["WaitingUntilUtc"] = fromMicros(due)
	}
	if x.sentCount > 0 {
		columns["WaitingWithin"] = true // for activities in other processes
	}
	if x.openCount > 0 && !x.ended || x.partial {
		columns["Busy"] = true
	}
	if x.runningCount > 0 && !x.ended && !x.suspended {
		columns["Running"] = true
	}
	if x.ended && status.Ended() {
		columns["CompletedAtUtc"] = fromMicros(x.end.At)
	}
}

// setText sets a column, if there is something to say.
func setText(columns map[string]any, name, value string) {
	if value != "" {
		columns[name] = value
	}
}

// currentStatus is the status of the execution as its events tell it, and its end's failure or the last that it learned of.
func (x *execution) currentStatus() (Status, *Failure) {
	switch {
	case x.ended && !x.partial:
		return endStatus(x.end), firstOf(x.end.Failure, x.failure)
	case x.stalled:
		return Stalled, x.failure
	case x.suspended:
		return Suspended, x.failure
	case x.held:
		return Pending, x.failure
	default:
		return Running, x.failure
	}
}

// endStatus is the status that the decision which ends an execution gives the orchestration.
func endStatus(end event) Status {
	switch end.Kind {
	case executionCompleted:
		return Completed
	case executionFailed:
		if end.Retrying {
			return Retrying
		}
		return Failed
	case executionStopped:
		if end.Failure.Code == codeCanceled {
			return Canceled
		}
		return Terminated
	default: // it continues as new
		return Running
	}
}

func firstOf(a, b *Failure) *Failure {
	if a != nil {
		return a
	}
	return b
}

// text is the failure as JSON that fits a column; without its stack and detail if need be, and "" if it does not fit.
func (f *Failure) text() string {
	const most = 30 << 10
	for _, g := range []*Failure{f, {Message: f.Message, Code: f.Code, Permanent: f.Permanent, Type: f.Type}} {
		if text, err := marshal(g); err == nil && len(text) <= most {
			return string(text)
		}
	}
	return ""
}

// waitingFor is the call that the execution waits for; of several, the first of its first coroutine that waits for one.
// nil when it waits for none.
func (x *execution) waitingFor() *task {
	if x.ended {
		return nil
	}
	for _, f := range x.coroutines {
		for _, t := range f.waiting {
			if !f.ended && t.open() {
				return t
			}
		}
	}
	return nil
}

// waitingUntil is when the first time comes that the execution waits for, in microseconds; 0 for none.
func (x *execution) waitingUntil() int64 {
	if x.ended {
		return 0
	}
	until := x.deadline
	for _, f := range x.coroutines {
		for _, t := range f.waiting {
			if !f.ended && t.open() && t.due != 0 && (until == 0 || t.due < until) {
				until = t.due
			}
		}
	}
	return until
}

// token names a wait.
func (x *execution) token(t *task) string {
	return token(x.number, t.number)
}

func token(execution, number int) string { return strconv.Itoa(execution) + "-" + strconv.Itoa(number) }

// waitingForPerson is the document's word for a wait for a human task.
const waitingForPerson = "TaskCompletion"

// waitingKind names what a wait is for (persistence document, section 3).
func (t *task) waitingKind() string {
	if t.attempts > 0 {
		return "Retry"
	}
	if t.kind == humanTask {
		return waitingForPerson
	}
	return string(t.kind.call())
}
