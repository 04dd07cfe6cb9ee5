package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
)

// The values of the parameter assignee that are no ids.
const (
	assigneeMe     = "me"
	assigneeNobody = "nobody"
)

// noteItem is a note on a dead letter.
type noteItem struct {
	At   time.Time `json:"atUtc"`
	By   string    `json:"by,omitempty"`
	Text string    `json:"text"`
}

func notesOf(d engine.DeadLetter) (items []noteItem) {
	for _, n := range d.Notes {
		items = append(items, noteItem{n.At, n.By, n.Text})
	}
	return items
}

// newNote is the body of a note.
type newNote struct {
	Text string `json:"text"`
}

// noteDeadLetter adds a note to a dead letter, once for an Idempotency-Key.
func (a *api) noteDeadLetter(ctx context.Context, r *request) (reply, error) {
	var body newNote
	return a.changeLetter(ctx, r, "note", &body, func(q *query) {
		q.values.Set("text", body.Text)
		if q.text("text", engine.MaxNoteText) == "" {
			q.problem("text", "Say what is to be noted.")
		}
	}, func(engineName, rowKey string, key string) (engine.DeadLetter, error) {
		id := uuid.NewString()
		if key != "" {
			id = uuid.NewSHA1(uuid.NameSpaceOID, []byte("note\n"+r.principal().ID()+"\n"+key)).String()
		}
		return a.letters.AddNote(ctx, engineName, rowKey, engine.Note{ID: id, At: a.now(), By: r.by(), Text: body.Text}, ifMatch(r.http.Header))
	})
}

// letterAssignment is the body of an assignment.
type letterAssignment struct {
	Assignee     string `json:"assignee"`
	AssigneeName string `json:"assigneeName"`
}

// assignDeadLetter assigns a dead letter to a person, regardless of its assignee.
func (a *api) assignDeadLetter(ctx context.Context, r *request) (reply, error) {
	var body letterAssignment
	return a.changeLetter(ctx, r, "assign", &body, func(q *query) {
		q.values.Set("assignee", body.Assignee)
		q.values.Set("assigneeName", body.AssigneeName)
		q.text("assigneeName", engine.MaxIdentity)
		if to := q.text("assignee", engine.MaxIdentity); to == "" || to == assigneeMe || to == assigneeNobody {
			q.problem("assignee", "Give the id of a person; /claim is for yourself, /release for nobody.")
		}
	}, func(engineName, rowKey, _ string) (engine.DeadLetter, error) {
		return a.letters.Assign(ctx, engineName, rowKey, engine.Assignment{To: body.Assignee, Name: body.AssigneeName, At: a.now(), IfMatch: ifMatch(r.http.Header)})
	})
}

// claimDeadLetter assigns an unassigned dead letter to the caller.
func (a *api) claimDeadLetter(ctx context.Context, r *request) (reply, error) {
	return a.changeLetter(ctx, r, "claim", &struct{}{}, nil, func(engineName, rowKey, _ string) (engine.DeadLetter, error) {
		p := r.principal()
		return a.letters.Assign(ctx, engineName, rowKey, engine.Assignment{To: p.ID(), Name: p.Name, At: a.now(), Claim: true, IfMatch: ifMatch(r.http.Header)})
	})
}

// releaseDeadLetter removes the assignee of a dead letter.
func (a *api) releaseDeadLetter(ctx context.Context, r *request) (reply, error) {
	return a.changeLetter(ctx, r, "release", &struct{}{}, nil, func(engineName, rowKey, _ string) (engine.DeadLetter, error) {
		return a.letters.Assign(ctx, engineName, rowKey, engine.Assignment{At: a.now(), IfMatch: ifMatch(r.http.Header)})
	})
}

// changeLetter handles a change that keeps the status of a dead letter: its body, the errors in it, the audit log,
// the change.
func (a *api) changeLetter(ctx context.Context, r *request, action string, body any, check func(q *query), change func(engineName, rowKey, key string) (engine.DeadLetter, error)) (reply, error) {
	engineName, rowKey, err := a.row(ctx, r)
	if err == nil {
		err = r.decode(body)
	}
	if err != nil {
		return reply{}, err
	}
	q := &query{values: url.Values{}}
	key := cmp.Or(q.idempotencyKey(r), RequestKey(r.http.Header))
	if check != nil {
		check(q)
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	d, err := a.letter(ctx, r, engineName, rowKey)
	if err != nil {
		return reply{}, err
	}
	if to, ok := body.(*letterAssignment); ok {
		if err := r.assignable(to.Assignee, d.TenantID); err != nil {
			return reply{}, err
		}
	}
	c := letterChange(action, d, nil)
	c.Before = heldBy(d)
	if err := r.call.Begin(ctx, c); err != nil {
		return reply{}, err
	}
	if d, err = change(engineName, rowKey, key); err != nil {
		return reply{}, a.deadLetterFailure(engineName, err)
	}
	r.after = heldBy(d)
	return reply{data: deadLetterDetailOf(d), etag: d.ETag}, nil
}

// heldBy returns the state of a dead letter for the audit log, without its notes.
func heldBy(d engine.DeadLetter) string {
	text := string(d.Status)
	if d.Assignee != "" {
		text += ", " + d.Assignee
	}
	if n := len(d.Notes); n > 0 {
		text += fmt.Sprintf(", %d notes", n)
	}
	return text
}

// assignee reads the parameter for the assignee.
func (q *query) assignee(r *request, f *engine.DeadLetterFilter) {
	switch who := q.text("assignee", engine.MaxIdentity); who {
	case assigneeMe:
		f.Assignee = r.principal().ID()
	case assigneeNobody:
		f.Unassigned = true
	default:
		f.Assignee = who
	}
}

// noteFailure returns the answer to errors about notes and assignments, nil for others.
func noteFailure(err error) *failure {
	var held *engine.HeldError
	switch {
	case errors.As(err, &held):
		return &failure{status: http.StatusConflict, problem: problem{Code: codeLetterHeld,
			Message: fmt.Sprintf("%s has it since %s. Assign it, if it is to be yours all the same.", cmp.Or(held.Name, held.By), held.At.UTC().Format(time.RFC3339))}}
	case errors.Is(err, engine.ErrTooManyNotes):
		return &failure{status: http.StatusConflict, problem: problem{Code: codeTooManyNotes, Message: fmt.Sprintf("A dead letter has %d notes at most.", engine.MaxNotes)}}
	default:
		return nil
	}
}
