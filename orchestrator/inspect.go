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
	// Round is the number of the latest round within its execution.
	Round int
	// Node is the process that committed the round. LastSignal is the id of the last signal that changed the
	// orchestration or woke it.
	Node       string
	LastSignal string
	// RuntimeInstanceID and ResumePointer are the runtime's position. SchemaVersion is the version of the columns.
	RuntimeInstanceID string
	ResumePointer     json.RawMessage
	SchemaVersion     int
	// Reference is the business reference, or nil.
	Reference *Reference
	// LastError is its last failure, its own or a learned one, or nil.
	LastError *Failure
	// State is the snapshot for people and other programs, as JSON.
	State json.RawMessage
}

// Inspection is the complete stored state of an orchestration.
type Inspection struct {
	Snapshot
	// Outcome is derived from the rounds. Rounds are those of the latest execution, with payloads loaded from blobs.
	Outcome Outcome
	Rounds  []Round
}

// Inspect reads a whole orchestration. It costs one query for fewer than 1,000 rows. The errors are those of Get.
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
	// A column that cannot be decoded is left out, because it only repeats data of the rounds.
	if text := documentOf(e.String("BusinessReference")); text != nil {
		_ = json.Unmarshal(text, &shot.Reference)
	}
	if text := documentOf(e.String("LastErrorJson")); text != nil {
		_ = json.Unmarshal(text, &shot.LastError)
	}
	return shot
}

// documentOf returns the JSON in a column, nil when it is not JSON.
func documentOf(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}
