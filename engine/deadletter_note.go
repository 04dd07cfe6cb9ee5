package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// MaxNotes bounds the number of notes of a dead letter, and MaxNoteText the text of a note, in bytes.
const (
	MaxNotes    = 50
	MaxNoteText = 2 << 10
)

var (
	// ErrTooManyNotes: a dead letter has MaxNotes notes.
	ErrTooManyNotes = errors.New("there are too many notes")
	// ErrHeld: the dead letter is assigned to another person, whom the error names.
	ErrHeld = errors.New("somebody else holds it")
)

// Note is a comment on a dead letter, without a decision.
type Note struct {
	// ID makes a repeated note the same note.
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	By   string    `json:"by,omitempty"`
	Text string    `json:"text"`
}

// Assignment assigns a dead letter to a person.
type Assignment struct {
	// To is the id of the assignee, "" for none, and Name the display name.
	To, Name string
	// At is the time of the assignment; required.
	At time.Time
	// Claim refuses, with ErrHeld, to take it from another assignee.
	Claim bool
	// IfMatch is the ETag that the row must have, "" for any.
	IfMatch string
}

// AddNote adds a note to a dead letter in any status, and returns the dead letter. Its text is redacted. The errors
// are ErrNotFound, ErrChanged for another ETag than ifMatch, which is "" for any, ErrTooManyNotes, ErrFilter for a
// note out of bounds, and those of the store.
func (d *DeadLetters) AddNote(ctx context.Context, engine, rowKey string, n Note, ifMatch string) (DeadLetter, error) {
	if n.ID == "" || len(n.ID) > MaxIDLength || n.At.IsZero() || n.Text == "" || len(n.Text) > MaxNoteText {
		return DeadLetter{}, fmt.Errorf("add a note to a dead letter: %w: a note has an id, a time, and a text of at most %d bytes", ErrFilter, MaxNoteText)
	}
	n.At, n.By, n.Text = truncateMicros(n.At).UTC(), clip(cleanText(n.By), MaxIdentity), cleanText(Redact(n.Text))
	_, err := d.change(ctx, engine, rowKey, func(l *DeadLetter) (bool, error) {
		switch {
		case slices.ContainsFunc(l.Notes, func(other Note) bool { return other.ID == n.ID }):
			return false, nil
		case ifMatch != "" && ifMatch != l.ETag:
			return false, ErrChanged
		case len(l.Notes) >= MaxNotes:
			return false, fmt.Errorf("%w: a dead letter has %d at most", ErrTooManyNotes, MaxNotes)
		}
		l.Notes = append(slices.Clip(l.Notes), n)
		return true, nil
	})
	if err != nil {
		return DeadLetter{}, fmt.Errorf("add a note to a dead letter: %w", err)
	}
	return d.Get(ctx, engine, rowKey)
}

// Assign assigns a pending dead letter to a person, or to nobody, and returns it. The errors are ErrNotFound,
// ErrChanged, ErrState when it is not pending, ErrHeld, ErrFilter for names out of bounds, and those of the store.
func (d *DeadLetters) Assign(ctx context.Context, engine, rowKey string, a Assignment) (DeadLetter, error) {
	if len(a.To) > MaxIdentity || len(a.Name) > MaxIdentity || a.At.IsZero() || a.To == "" && (a.Claim || a.Name != "") {
		return DeadLetter{}, fmt.Errorf("assign a dead letter: %w: an assignment has a time, and an id and a name of at most %d bytes", ErrFilter, MaxIdentity)
	}
	a.To, a.Name = cleanText(a.To), cleanText(a.Name)
	_, err := d.change(ctx, engine, rowKey, func(l *DeadLetter) (bool, error) {
		switch {
		case l.Assignee == a.To:
			return false, nil // already assigned so, or an earlier write was applied, and its answer was lost
		case a.IfMatch != "" && a.IfMatch != l.ETag:
			return false, ErrChanged
		case l.Status != StatusPending:
			return false, fmt.Errorf("%w: it is %s", ErrState, l.Status)
		case a.Claim && l.Assignee != "":
			return false, &HeldError{By: l.Assignee, Name: l.AssigneeName, At: l.AssignedAtUtc}
		}
		l.Assignee, l.AssigneeName, l.AssignedAtUtc = a.To, a.Name, truncateMicros(a.At)
		if a.To == "" {
			l.AssignedAtUtc = time.Time{}
		}
		return true, nil
	})
	if err != nil {
		return DeadLetter{}, fmt.Errorf("assign a dead letter: %w", err)
	}
	return d.Get(ctx, engine, rowKey)
}

// HeldError is ErrHeld, with the assignee and the time of the assignment.
type HeldError struct {
	By, Name string
	At       time.Time
}

// Error names the assignee.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%v: %.256s since %s", ErrHeld, e.By, e.At.Format(time.RFC3339))
}

// Unwrap is ErrHeld.
func (*HeldError) Unwrap() error { return ErrHeld }

const (
	notesColumn    = "Notes"
	assigneeColumn = "Assignee"
)

// heldColumns returns the columns of the assignee, which index rows have, too.
func heldColumns() []string { return []string{assigneeColumn, "AssigneeName", "AssignedAtUtc"} }

// putHeld sets the columns of notes and of the assignee. An empty one has no property.
func (d DeadLetter) putHeld(props map[string]any) {
	for _, name := range heldColumns() {
		delete(props, name)
	}
	if d.Assignee != "" {
		props[assigneeColumn], props["AssignedAtUtc"] = d.Assignee, d.AssignedAtUtc
	}
	if d.AssigneeName != "" {
		props["AssigneeName"] = d.AssigneeName
	}
	if len(d.Notes) == 0 {
		return // notes are never removed
	}
	if text, err := json.Marshal(d.Notes); err == nil {
		tables.PutText(props, notesColumn, string(text))
	}
}

// readHeld reads them.
func (d *DeadLetter) readHeld(e tables.Entity) error {
	d.Assignee, d.AssigneeName, d.AssignedAtUtc = e.String(assigneeColumn), e.String("AssigneeName"), e.Time("AssignedAtUtc")
	text := tables.Text(e, notesColumn)
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &d.Notes); err != nil {
		return fmt.Errorf("the notes of %s are damaged: %w", e.Key, err)
	}
	return nil
}
