package orchestrator

import (
	"fmt"
	"time"
)

// provider names this runtime in snapshots and signals.
const provider = "roundhouse"

// snapshotSchema is the version of the status columns.
const snapshotSchema = 1

// status gives the columns of the status row as they are after the round that is about to be committed (persistence
// document, section 3). StateVersion counts the rounds of all executions.
func (d *driver) status(now time.Time) map[string]any {
	x := d.execution
	columns := map[string]any{
		"Name":                  x.orchestrator.Name(),
		"CorrelationId":         x.correlationID,
		"RuntimeProvider":       provider,
		"RuntimeInstanceId":     fmt.Sprintf("%s/%d", x.id, x.number),
		"RuntimeStatus":         string(Running),
		"Execution":             int64(x.number),
		"Round":                 int64(len(d.rounds) + 1),
		"StateVersion":          int64(d.version + 1),
		"SnapshotSchemaVersion": int64(snapshotSchema),
		"ResumePointerJson":     fmt.Sprintf(`{"execution":%d,"round":%d}`, x.number, len(d.rounds)+1),
		"CreatedAtUtc":          d.createdAt,
		"LastExecutedBy":        d.rt.config.Node,
		"LastExecutedOnUtc":     now,
	}
	if x.customStatus != "" {
		columns["CustomStatus"] = x.customStatus
	}
	if t := x.waitingFor(); t != nil {
		columns["WaitingKind"] = t.waitingKind()
		columns["WaitingToken"] = fmt.Sprintf("%d-%d", x.number, t.number)
		if t.due != 0 {
			columns["WaitingUntilUtc"] = fromMicros(t.due)
		}
	}
	if x.suspended {
		columns["RuntimeStatus"] = string(Suspended)
	}
	if n := len(x.signals); n > 0 {
		columns["LastSignalId"] = x.signals[n-1]
	}
	if x.ended {
		end := x.decided[len(x.decided)-1]
		if end.Kind == executionContinued {
			columns["RuntimeStatus"] = string(Running)
		}
		if end.Kind == executionCompleted {
			columns["RuntimeStatus"] = string(Completed)
			columns["CompletedAtUtc"] = fromMicros(end.At)
		}
		if end.Failure != nil {
			columns["RuntimeStatus"] = string(Failed)
			if end.Kind == executionStopped {
				columns["RuntimeStatus"] = string(Terminated)
			}
			columns["CompletedAtUtc"] = fromMicros(end.At)
			columns["LastErrorCode"] = end.Failure.Code
			if text, err := marshal(end.Failure); err == nil && len(text) <= 32<<10 {
				columns["LastErrorJson"] = string(text)
			}
		}
	}
	return columns
}

// waitingFor is the task that the orchestrator function waits for; of several, the first. nil when it waits for none.
func (x *execution) waitingFor() *task {
	if x.ended || len(x.fibers) == 0 {
		return nil
	}
	for _, t := range x.fibers[0].waiting {
		if !t.done && t.number > 0 {
			return t
		}
	}
	return nil
}

// waitingKind names what a wait is for (persistence document, section 3).
func (t *task) waitingKind() string {
	if t.attempts > 0 {
		return "Retry"
	}
	return string(t.kind.call())
}
