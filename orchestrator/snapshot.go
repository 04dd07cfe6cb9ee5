package orchestrator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Reference is a business reference: the business name of an orchestration's subject (persistence document, section
// 4).
type Reference struct {
	Key   string            `json:"key"`
	Parts map[string]string `json:"parts,omitempty"`
}

// maxReference bounds a Reference, in bytes of JSON.
const maxReference = 4 << 10

func (r *Reference) validate() error {
	if r == nil {
		return nil
	}
	if n := len(r.text()); r.Key == "" || n > maxReference {
		return fmt.Errorf("a business reference has a key and at most %d bytes of JSON, not %d", maxReference, n)
	}
	return nil
}

func (r *Reference) text() string {
	if r == nil {
		return ""
	}
	text, _ := marshal(r) // strings always marshal
	return string(text)
}

// engineSchema is the version of the JSON of appendState.
const engineSchema = 1

// shownInState bounds the length of each list in the state.
const shownInState = 20

// resumePointer is the point at which an execution resumes (persistence document, section 3).
type resumePointer struct {
	execution, round, steps int   // committed rounds, and steps of the code
	wait                    *task // the wait of the execution; nil for none
	by                      *coroutine
}

// entryPoint returns the event that resumes the code: its start, the answer of a person, or another result.
func (p resumePointer) entryPoint() string {
	switch {
	case p.steps == 0:
		return "OrchestratorStart"
	case p.wait != nil && p.wait.kind == humanTask:
		return "TaskOnComplete"
	default:
		return "OrchestratorResume"
	}
}

// append appends the pointer as JSON. The branch is the coroutine, unless that is the first.
func (p resumePointer) append(b []byte) []byte {
	b = append(b, `{"execution":`...)
	b = strconv.AppendInt(b, int64(p.execution), 10)
	b = append(b, `,"round":`...)
	b = strconv.AppendInt(b, int64(p.round), 10)
	b = append(append(b, `,"entryPointKind":"`...), p.entryPoint()...)
	b = append(b, `","taskName":`...)
	name := ""
	if p.wait != nil {
		name = p.wait.name
	}
	b = append(appendText(b, clipName(name)), `,"branchPath":[`...)
	if p.by != nil && p.by.number > 1 {
		b = strconv.AppendInt(b, int64(p.by.number), 10)
	}
	b = append(b, `],"nextStepIndex":`...)
	return append(strconv.AppendInt(b, int64(p.steps), 10), '}')
}

// appendState appends the snapshot for people and other programs (persistence document, section 4), with the resume
// pointer in b[from:to], which is empty once the orchestration has ended. The runtime itself resumes from the rounds.
// until is the earliest time of the waits, in microseconds; 0 for none. The JSON is written by hand because every
// round writes it.
func (x *execution) appendState(b []byte, status Status, p resumePointer, until int64, token []byte) (state []byte, from, to int) {
	b = append(b, `{"engineSchemaVersion":`...)
	b = strconv.AppendInt(b, engineSchema, 10)
	b = append(b, `,"workflowState":`...)
	b = appendOr(b, x.customStatus, "{}")
	b = append(b, `,"businessReference":`...)
	b = appendOr(b, x.reference.text(), "null")
	b = append(b, `,"status":"`...)
	if status == Running {
		b = append(b, "Open"...)
	} else {
		b = append(b, status...)
	}
	b = append(b, `","waiting":`...)
	if p.wait == nil {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, `{"kind":"`...), p.wait.waitingKind()...), `","token":"`...)
		b = append(append(b, token...), `","untilUtc":`...)
		if until == 0 {
			b = append(b, "null}"...)
		} else {
			b = fromMicros(until).AppendFormat(b, `"2006-01-02T15:04:05.999999Z"}`)
		}
	}
	b = append(b, `,"resume":`...)
	from = len(b)
	to = from
	if status.Ended() {
		b = append(b, "null"...)
	} else {
		b = p.append(b)
		to = len(b)
	}
	b = append(b, `,"subWorkflowFrames":[`...)
	for i, t := range x.shownChildren() {
		b = appendText(comma(b, i), clipName(t.child))
	}
	b = append(b, `],"continuationBuffer":[`...)
	for i, e := range x.unread.list(shownInState) {
		b = appendText(comma(b, i), clipName(e.Name))
	}
	return append(b, "]}"...), from, to
}

// shownChildren returns the calls of sub-orchestrations in the state. If all of them fit, it leaves out those that
// wait for their next attempt, because the end of the last attempt is known.
func (x *execution) shownChildren() []*task {
	if len(x.openChildren) > shownInState {
		return x.openChildren[:shownInState]
	}
	waits := func(t *task) bool { return t.due > x.last && t.isWaitedFor() }
	if !slices.ContainsFunc(x.openChildren, waits) {
		return x.openChildren
	}
	return slices.DeleteFunc(slices.Clone(x.openChildren), waits)
}

// clipName shortens a name for the state, so that all names fit a column even with every byte escaped.
func clipName(name string) string {
	const most = 100
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// appendOr appends JSON, or none when the text is empty.
func appendOr(b []byte, text, none string) []byte {
	if text == "" {
		text = none
	}
	return append(b, text...)
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // strings always marshal
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
