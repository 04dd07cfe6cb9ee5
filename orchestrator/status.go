package orchestrator

import (
	"cmp"
	"maps"
	"strconv"
	"time"
)

// provider is the name of this runtime in snapshots and signals.
const provider = "roundhouse"

// snapshotSchema is the version of the status columns.
const snapshotSchema = 1

const (
	columnCreated    = "CreatedAtUtc"
	columnExecutedOn = "LastExecutedOnUtc"
	// columnResponsible is the node that is responsible for the open calls. That is not the one that has executed last if that one
	// only brought a signal.
	columnResponsible = "ResponsibleNode"
)

// constant returns the columns that no round of an execution changes. They are made only once, because the commit of a
// round is what everything waits for.
func (d *driver) constant() map[string]any {
	x := d.execution
	if created, ok := x.columns[columnCreated].(time.Time); !ok || !created.Equal(d.createdAt) { // another process may have started the orchestration
		x.columns = map[string]any{
			"Name":                  x.name,
			"CorrelationId":         x.correlationID,
			"RuntimeProvider":       provider,
			"RuntimeInstanceId":     x.id + "/" + strconv.Itoa(x.number),
			"Execution":             int64(x.number),
			"SnapshotSchemaVersion": int64(snapshotSchema),
			columnCreated:           d.createdAt,
			"LastExecutedBy":        d.node,
		}
	}
	return x.columns
}

// status returns the columns of the status row after the round that is about to be committed (persistence document,
// section 3). StateVersion counts the rounds of all executions. Only the code knows what an execution waits for, so a
// row written without the code does not say that.
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
	columns[columnExecutedOn] = now
	columns[columnResponsible] = d.responsibleNode()
	setText(columns, "LastSignalId", cmp.Or(d.lastSignal, x.received.last))
	if failure != nil {
		setText(columns, "LastErrorCode", failure.Code)
		setText(columns, "LastErrorJson", failure.text())
	}
	return columns
}

// describe adds the columns that say what the execution is and what it waits for.
func (d *driver) describe(columns map[string]any, status Status) {
	x := d.execution
	setText(columns, "CustomStatus", x.customStatus)
	setText(columns, "Version", x.version)
	setText(columns, "ParentId", d.start.Parent)
	setText(columns, "TenantId", d.start.TenantID)
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

// setText sets a column, unless the value is empty.
func setText(columns map[string]any, name, value string) {
	if value != "" {
		columns[name] = value
	}
}

// currentStatus returns the status of the execution, and the failure with which it ended or the last one that it
// learned of.
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

// endStatus returns the status of the orchestration after the decision that ends an execution.
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

// text returns the failure as JSON that fits a column, without stack and detail if necessary; "" if it does not fit at
// all.
func (f *Failure) text() string {
	const most = 30 << 10
	for _, g := range []*Failure{f, {Message: f.Message, Code: f.Code, Permanent: f.Permanent, Type: f.Type}} {
		if text, err := marshal(g); err == nil && len(text) <= most {
			return string(text)
		}
	}
	return ""
}

// token returns the waiting token of a call.
func (x *execution) token(t *task) string {
	return token(x.number, t.number)
}

func token(execution, number int) string { return strconv.Itoa(execution) + "-" + strconv.Itoa(number) }

// waitingForPerson is the persistence document's name for a wait for a human task.
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
