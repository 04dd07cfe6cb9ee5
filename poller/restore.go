package poller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
)

// ResetToCheckpoint sets a poller to the checkpoint in a file: a whole state document, the answer of the API or of
// `roundhouse poller show -o json` that has one, or only a checkpoint. A whole document must be of the same poller and
// definition, unless forced. The new fencing token is higher than that in the file and the current one. A missing state
// is created, and a damaged one is replaced when forced. A state without a definition gets that of the file.
func (o Operator) ResetToCheckpoint(ctx context.Context, poller string, file []byte, how ChangeOptions) (Change, error) {
	from, err := readCheckpoint(poller, file)
	if err != nil {
		return Change{}, wrap(poller, "reset to a checkpoint", err)
	}
	return o.write(ctx, poller, "reset to a checkpoint", how, func(doc *Document, state State) (*Document, error) {
		after := newDocument(poller)
		token := from.Lease.Token + 1
		if doc != nil {
			after = doc.clone()
			if from.Fingerprint != "" && doc.Fingerprint != "" && !how.Force {
				if err := checkFingerprint(from, doc.Fingerprint, doc.Definition); err != nil {
					return nil, fmt.Errorf("the file, whose checkpoint --force takes nevertheless: %w", err)
				}
			}
			token = max(token, doc.Lease.Token+1)
		} else {
			token = max(token, recoveredToken(state.Data)+1)
		}
		if from.PollerName != poller && !how.Force {
			return nil, fmt.Errorf("%w: the file is of poller %s: use clone-checkpoint, or force", ErrInvalid, from.PollerName)
		}
		if after.Fingerprint == "" { // the checkpoint belongs to the definition under which it was made
			after.Fingerprint, after.Definition = from.Fingerprint, from.Definition
		}
		after.Checkpoint = from.Checkpoint
		if after.Checkpoint.UpdatedAt.IsZero() {
			after.Checkpoint.UpdatedAt = state.Time
		}
		after.setBackfillDone(false)
		after.clearFailures()
		after.fence(token, state.Time)
		return after, nil
	})
}

// readCheckpoint decodes a file: a document, a wrapped document, or a checkpoint.
func readCheckpoint(poller string, file []byte) (*Document, error) {
	file = bytes.TrimPrefix(file, []byte(payload.ByteOrderMark))
	if err := payload.Check(file); err != nil {
		return nil, fmt.Errorf("%w: the file is %w", ErrInvalid, err)
	}
	var members fields
	if err := json.Unmarshal(file, &members); err != nil {
		return nil, fmt.Errorf("%w: the file is no JSON object, as `roundhouse poller show POLLER -o json` writes it: %w", ErrInvalid, payload.Explain(err))
	}
	for _, wrapper := range []string{"data", "document"} {
		var inner fields
		if members["version"] == nil && json.Unmarshal(members[wrapper], &inner) == nil && inner != nil {
			file, members = members[wrapper], inner
		}
	}
	if _, whole := members["version"]; whole {
		d, err := Decode(file)
		if err != nil {
			return nil, fmt.Errorf("the file: %w", err)
		}
		return d, checkCursor(d)
	}
	d := newDocument(poller)
	d.Checkpoint = &Checkpoint{}
	if err := json.Unmarshal(file, d.Checkpoint); err != nil {
		return nil, fmt.Errorf("%w: the file is neither a state document nor a checkpoint: %w", ErrInvalid, payload.Explain(err))
	}
	return d, checkCursor(d)
}

// checkCursor returns an error for a file without a cursor, such as the state of a poller that has delivered nothing.
func checkCursor(d *Document) error {
	if d.Checkpoint == nil {
		return fmt.Errorf("%w: the file has no checkpoint: use reset-to-beginning", ErrInvalid)
	}
	if err := d.Checkpoint.Cursor.check(); err != nil {
		return fmt.Errorf("the file: %w", err)
	}
	return nil
}

var tokenText = regexp.MustCompile(`"fencing_token"\s*:\s*(\d{1,18})\b`)

// recoveredToken returns the highest token in the text of a damaged document, 0 for none.
func recoveredToken(data []byte) int64 {
	var most int64
	for _, found := range tokenText.FindAllSubmatch(data, -1) {
		if n, err := strconv.ParseInt(string(found[1]), 10, 64); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// Clone gives a new poller the checkpoint and the definition of another one. Its lease is free. Its token is 0, or
// higher than that of a tombstone with its name. A state that only records failed ticks counts as none. The errors are
// those of the other operations, and ErrExists.
func (o Operator) Clone(ctx context.Context, from, to string, how ChangeOptions) (Change, error) {
	source, err := o.Show(ctx, from)
	if err == nil && source.Document.Retired {
		err = ErrRetired
	}
	if err == nil {
		err = CheckName(to)
	}
	if err != nil {
		return Change{}, wrap(from, "clone the checkpoint", err)
	}
	return o.write(ctx, to, "clone the checkpoint of "+from, how, func(doc *Document, state State) (*Document, error) {
		if doc != nil && !doc.Retired && !doc.untouched() || doc == nil && state.ETag != "" {
			return nil, ErrExists
		}
		after := source.Document.clone()
		after.PollerName, after.Lease, after.PolledAt = to, Lease{}, time.Time{}
		after.Backfill, after.Requests = nil, nil
		after.clearFailures()
		return after, nil
	})
}
