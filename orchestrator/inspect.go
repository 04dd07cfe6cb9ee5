package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// Snapshot is the whole status row of an orchestration (persistence document, sections 3 and 4).
type Snapshot struct {
	Summary
	// Round is the number of the last round, of its execution.
	Round int
	// Node is the process that committed it, LastSignal the id of the last signal that brought something.
	Node       string
	LastSignal string
	// RuntimeInstanceID and ResumePointer say where the runtime stands, SchemaVersion in which version of the columns.
	RuntimeInstanceID string
	ResumePointer     json.RawMessage
	SchemaVersion     int
	// Reference is what the business calls what the orchestration works on, or nil.
	Reference *Reference
	// LastError is the last failure that it had or learned of, or nil.
	LastError *Failure
	// State is the part for people and other programs.
	State json.RawMessage
}

// Inspection is all that is known of an orchestration.
type Inspection struct {
	Snapshot
	// Outcome is what its rounds tell, and Rounds are those of its latest execution, with payloads out of blobs in place.
	Outcome Outcome
	Rounds  []Round
}

// Inspect reads an orchestration whole: one query, as long as it has fewer than 1,000 rows. The errors are those of Get.
func (r *Runtime) Inspect(ctx context.Context, id string) (Inspection, error) {
	if !validID(id) {
		return Inspection{}, fmt.Errorf("orchestration %.400q: %w", id, ErrNotFound)
	}
	all, status, err := r.journal.loadWith(ctx, id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("orchestration %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return Inspection{}, err
	}
	summary, err := summaryOf(status)
	if err != nil {
		return Inspection{}, fmt.Errorf("orchestration %s: %w", id, err)
	}
	in := Inspection{Snapshot: snapshotOf(status, summary), Outcome: outcomeOf(id, all)}
	latest := all[len(all)-1]
	for i, r := range latest.rounds {
		in.Rounds = append(in.Rounds, r.shown(latest.number, latest.numbers[i]))
	}
	return in, nil
}

func snapshotOf(e tables.Entity, s Summary) Snapshot {
	shot := Snapshot{Summary: s, Round: int(e.Int("Round")), Node: e.String("LastExecutedBy"), LastSignal: e.String("LastSignalId"),
		RuntimeInstanceID: e.String("RuntimeInstanceId"), SchemaVersion: int(e.Int("SnapshotSchemaVersion")),
		ResumePointer: documentOf(e.String("ResumePointerJson")), State: documentOf(e.String("StateJson"))}
	// What cannot be read is left out: the rounds are what counts.
	if text := documentOf(e.String("BusinessReference")); text != nil {
		_ = json.Unmarshal(text, &shot.Reference)
	}
	if text := documentOf(e.String("LastErrorJson")); text != nil {
		_ = json.Unmarshal(text, &shot.LastError)
	}
	return shot
}

// documentOf is a column that holds JSON, nil where it does not.
func documentOf(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}
