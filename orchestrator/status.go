package orchestrator

import (
	"fmt"
	"time"
)

// snapshotSchema is the version of the status columns.
const snapshotSchema = 1

// status gives the columns of the status row as they are after the round that is about to be committed (persistence
// document, section 3). StateVersion counts the rounds of all executions.
func (d *driver) status(now time.Time) map[string]any {
	x := d.execution
	columns := map[string]any{
		"Name":                  x.orchestrator.name,
		"CorrelationId":         x.correlationID,
		"RuntimeProvider":       "roundhouse",
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
	if kind, until := x.waitingFor(); kind != "" {
		columns["WaitingKind"] = kind
		columns["WaitingToken"] = fmt.Sprintf("%d-%d", x.number, x.waiting.number)
		if until != 0 {
			columns["WaitingUntilUtc"] = fromMicros(until)
		}
	}
	if x.ended {
		end := x.decided[len(x.decided)-1]
		columns["RuntimeStatus"] = string(Completed)
		columns["CompletedAtUtc"] = fromMicros(end.At)
		if end.Failure != nil {
			columns["RuntimeStatus"] = string(Failed)
			columns["LastErrorCode"] = end.Failure.Code
			if text, err := marshal(end.Failure); err == nil && len(text) <= 32<<10 {
				columns["LastErrorJson"] = string(text)
			}
		}
	}
	return columns
}

// waitingFor says what kind of wait the orchestrator is in, and until when, in microseconds; 0 is open.
func (x *execution) waitingFor() (kind string, until int64) {
	switch {
	case x.ended || x.waiting == nil:
		return "", 0
	case x.waiting.due != 0:
		return "Retry", x.waiting.due
	default:
		return "Activity", 0
	}
}
