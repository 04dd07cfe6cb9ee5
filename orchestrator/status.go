package orchestrator

import (
	"cmp"
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
	columnExecutedBy = "LastExecutedBy"
	// columnResponsible is the node that is responsible for the open calls. It differs from the node that executed
	// last if that one only brought a signal.
	columnResponsible = "ResponsibleNode"
	// columnEffects is the StateVersion up to which effects are known to have been carried out. Only a process that
	// has repeated them writes it, and the next round removes it.
	columnEffects = "EffectsVersion"
)

// constant sets the columns that are the same in all rounds of an execution.
func (d *driver) constant() {
	x := d.execution
	if d.row.of == x && d.row.createdAt.Equal(d.createdAt) { // another process may have started the orchestration
		return
	}
	if d.buffers == nil {
		d.buffers = d.rt.journal.buffers.get()
	}
	d.row = statusColumns{of: x, createdAt: d.createdAt, columns: d.buffers.statusColumns()}
	c := d.row.columns
	c["CorrelationId"], c["RuntimeProvider"] = x.correlationID, provider
	c["RuntimeInstanceId"], c["Execution"] = x.id+"/"+strconv.Itoa(x.number), int64(x.number)
	c["SnapshotSchemaVersion"], c[columnCreated] = int64(snapshotSchema), d.createdAt
	d.row.name(d.rt.columnNames, "Name", x.name)
	d.row.name(d.rt.columnNames, columnExecutedBy, d.node)
	d.row.text("ParentId", d.start.Parent)
	d.row.text("TenantId", d.start.TenantID)
	d.row.text("BusinessReference", x.reference.text())
	d.row.text("Version", x.version)
}

// releaseBuffers returns the buffers for use by another driver.
func (d *driver) releaseBuffers() {
	d.rt.journal.buffers.put(d.buffers)
	d.buffers, d.row = nil, statusColumns{}
}

// setStatus sets the columns of the status row after the round that is about to be committed (persistence document,
// section 3). StateVersion counts the rounds of all executions. Only the code knows the waits of an execution, so a
// row that is written without the code omits them.
func (d *driver) setStatus(now time.Time) {
	d.constant()
	x, row := d.execution, &d.row
	round := len(d.rounds) + 1
	status, failure := x.currentStatus()
	d.describe(row, status)
	row.name(d.rt.columnNames, "RuntimeStatus", string(status))
	row.number("Round", int64(round))
	row.number("StateVersion", int64(d.version+1))
	row.columns[columnExecutedOn] = now
	row.name(d.rt.columnNames, columnResponsible, d.responsibleNode())
	row.text("LastSignalId", cmp.Or(d.lastSignal, x.received.last))
	code, text := "", ""
	if failure != nil {
		code, text = failure.Code, failure.text()
	}
	row.text("LastErrorCode", code)
	row.text("LastErrorJson", text)
}

// describe sets the columns for the state and the waits of the execution. Their longer texts are slices of one string.
func (d *driver) describe(row *statusColumns, status Status) {
	x := d.execution
	row.text("CustomStatus", x.customStatus)
	wait, by := x.waitingFor()
	kind := ""
	b := d.buffers.state[:0]
	if wait != nil {
		kind = wait.waitingKind()
		b = x.appendToken(b, wait)
	}
	toState := len(b)
	until := x.waitingUntil()
	pointer := resumePointer{x.number, len(d.rounds) + 1, len(x.tasks), wait, by}
	if x.ended { // the next execution resumes, if any
		pointer = resumePointer{execution: x.number + 1}
	}
	b, from, to := x.appendState(b, status, pointer, until, b)
	d.buffers.state = b
	all := string(b)
	row.name(d.rt.columnNames, "WaitingKind", kind)
	row.text("WaitingToken", all[:toState])
	row.text("StateJson", all[toState:])
	row.text("ResumePointerJson", all[from:to])
	switch active := x.activeTask(); active {
	case nil:
		row.text("ActiveTaskId", "")
	case wait:
		row.columns["ActiveTaskId"] = row.columns["WaitingToken"]
	default:
		row.text("ActiveTaskId", x.token(active))
	}
	row.time("WaitingUntilUtc", until)
	row.flag("WaitingWithin", x.sentCount > 0) // for activities in other processes
	row.flag("Busy", x.openCount > 0 && !x.ended || x.partial)
	row.flag("Running", x.runningCount > 0 && !x.ended && !x.suspended)
	var completed int64
	if x.ended && status.Ended() {
		completed = x.end.At
	}
	row.time("CompletedAtUtc", completed)
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

// text returns the failure as JSON that fits a column, without stack and detail if necessary; "" if it does not fit
// even so.
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

func token(execution, number int) string { return string(appendToken(nil, execution, number)) }

func (x *execution) appendToken(b []byte, t *task) []byte { return appendToken(b, x.number, t.number) }

func appendToken(b []byte, execution, number int) []byte {
	b = append(strconv.AppendInt(b, int64(execution), 10), '-')
	return strconv.AppendInt(b, int64(number), 10)
}

// waitingForPerson is the persistence document's name for a wait for a human task.
const waitingForPerson = "TaskCompletion"

// waitingKind names the kind of a wait (persistence document, section 3).
func (t *task) waitingKind() string {
	if t.attempts > 0 {
		return "Retry"
	}
	if t.kind == humanTask {
		return waitingForPerson
	}
	return string(t.kind.call())
}
