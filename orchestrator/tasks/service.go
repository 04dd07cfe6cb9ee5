package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/tables"
)

// Config configures a Service. All fields but Now are required.
type Config struct {
	Tables tables.Store
	// Table is the table of the orchestrations, Index that of the index.
	Table, Index string
	// Guard schedules a later check of the orchestration, in case Wake fails. Wake notifies the orchestration that
	// the task was completed. Both get the same time.
	Guard, Wake func(ctx context.Context, r Ref, at time.Time) error
	// Now is the clock; the default is time.Now.
	Now func() time.Time
}

// Service finds, claims and completes human tasks. It is safe for concurrent use.
type Service struct{ config Config }

// NewService makes a Service. It does not validate c.
func NewService(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{c}
}

func (s *Service) now() time.Time { return s.config.Now().UTC().Truncate(time.Microsecond) }

// Get reads a task with its events. The error is ErrNotFound, or one of storage. It costs one transaction.
func (s *Service) Get(ctx context.Context, r Ref) (Task, error) {
	if !r.valid() {
		return Task{}, fmt.Errorf("task %.100q of %.100q: %w", r.ID, r.Orchestration, ErrNotFound)
	}
	var t Task
	from := r.key("").Row
	q := tables.Query{Partition: r.key("").Partition, From: from, To: tables.PrefixEnd(from + "-")}
	for e, err := range tables.All(ctx, s.config.Tables, s.config.Table, q) {
		switch {
		case err != nil:
			return Task{}, fmt.Errorf("task %s: %w", r, err)
		case e.Row == from:
			t = taskOf(r, e)
		case e.Row == r.key(endSuffix).Row:
			t.End = endOf(e)
		default:
			t.Events = append(t.Events, eventOf(e))
		}
	}
	if t.Name == "" {
		return Task{}, fmt.Errorf("task %s: %w", r, ErrNotFound)
	}
	if t.End != nil {
		t.Status = t.End.Status
		t.Events = append(t.Events, t.End.event(t))
	}
	return t, nil
}

// Of returns the human tasks of an orchestration with their events, in the order of their ids; those that retention
// has deleted are left out. It reads at most limit rows, in a transaction for every 1,000 of them; more reports
// whether others exist.
func (s *Service) Of(ctx context.Context, orchestration string, limit int) (all []Task, more bool, err error) {
	if !(Ref{orchestration, "1-1"}).valid() {
		return nil, false, nil
	}
	q := tables.Query{Partition: tables.EscapeKey(orchestration), From: rowPrefix, To: tables.PrefixEnd(rowPrefix)}
	byID := map[string]*Task{}
	for rows := 0; ; {
		q.Limit = min(limit-rows, 1000)
		page, err := s.config.Tables.Query(ctx, s.config.Table, q)
		if err != nil {
			return nil, false, fmt.Errorf("tasks of orchestration %s: %w", orchestration, err)
		}
		for _, e := range page.Entities {
			addRow(byID, orchestration, e)
		}
		rows += len(page.Entities)
		if q.Continuation = page.Next; page.Next == "" || rows >= limit {
			break
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		t := byID[id]
		if t.Name == "" {
			continue
		}
		if t.End != nil {
			t.Status = t.End.Status
			t.Events = append(t.Events, t.End.event(*t))
		}
		all = append(all, *t)
	}
	return all, q.Continuation != "", nil
}

// addRow adds a row to the task that it is one of.
func addRow(byID map[string]*Task, orchestration string, e tables.Entity) {
	parts := strings.SplitN(strings.TrimPrefix(e.Row, rowPrefix), "-", 3)
	if len(parts) < 2 {
		return
	}
	r := Ref{orchestration, parts[0] + "-" + parts[1]}
	t := byID[r.ID]
	if t == nil {
		t = &Task{Ref: r}
		byID[r.ID] = t
	}
	switch {
	case len(parts) == 2:
		end, events := t.End, t.Events
		*t = taskOf(r, e)
		t.End, t.Events = end, events
	case EndsTask(e.Key):
		t.End = endOf(e)
	default:
		t.Events = append(t.Events, eventOf(e))
	}
}

// validID matches waiting tokens.
var validID = regexp.MustCompile(`^[0-9]{1,9}-[0-9]{1,9}$`)

const maxPartition = 512

// valid reports whether such a task can exist.
func (r Ref) valid() bool {
	return validID.MatchString(r.ID) && r.Orchestration != "" && utf8.ValidString(r.Orchestration) && len(tables.EscapeKey(r.Orchestration)) <= maxPartition
}

// Ended returns the end of a task, nil for an open one. It costs one transaction.
func (s *Service) Ended(ctx context.Context, r Ref) (*End, error) {
	e, err := s.config.Tables.Get(ctx, s.config.Table, r.key(endSuffix))
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("end of task %s: %w", r, err)
	}
	return endOf(e), nil
}

// openFor reads an open task for a person who is about to change it. etag is the version that the person has seen, ""
// for any.
func (s *Service) openFor(ctx context.Context, r Ref, by Person, etag string) (Task, error) {
	t, err := s.Get(ctx, r)
	switch {
	case err != nil:
		return t, err
	case !by.Sees(t):
		return Task{}, fmt.Errorf("task %s: %w", r, ErrNotFound)
	case by.ID == "":
		return t, fmt.Errorf("%w: change task %s: it is not known who does it", ErrForbidden, r)
	case t.End == nil && etag != "" && etag != t.ETag:
		return t, fmt.Errorf("task %s: %w", r, ErrChanged)
	}
	return t, errors.Join(validName(by.ID), validName(by.Name))
}

// Claim assigns a task to the caller, who has one of its roles. Repeating it changes nothing.
func (s *Service) Claim(ctx context.Context, r Ref, by Person, etag string) (Task, error) {
	t, err := s.openFor(ctx, r, by, etag)
	switch {
	case err != nil:
		return t, err
	case t.End == nil && by.Is(t.Assignee):
		return t, s.Sync(ctx, t)
	case !by.mayClaim(t):
		return t, fmt.Errorf("%w: claim task %s: it needs one of the roles %q", ErrForbidden, r, t.Roles)
	case t.End != nil || t.Assignee != "":
		return t, t.conflict()
	}
	return s.change(ctx, t, Event{Kind: EventAssigned, By: by.ID, ByName: by.Name, Assignee: by.ID, AssigneeName: by.Name, Roles: t.Roles})
}

// Release makes a task unassigned. Its assignee can release it, and a Person with All. Releasing an unassigned task
// changes nothing, for people who can claim it and for the person who released it.
func (s *Service) Release(ctx context.Context, r Ref, by Person, etag, note string) (Task, error) {
	t, err := s.openFor(ctx, r, by, etag)
	switch {
	case err != nil:
		return t, err
	case t.End != nil:
		return t, t.conflict()
	case t.Assignee == "" && !by.mayClaim(t) && !by.released(t):
		return t, fmt.Errorf("%w: release task %s: it is unassigned", ErrForbidden, r)
	case t.Assignee == "":
		return t, s.Sync(ctx, t)
	case !by.All && !by.Is(t.Assignee):
		return t, fmt.Errorf("%w: release task %s: it is %s's", ErrForbidden, r, t.Assignee)
	}
	return s.change(ctx, t, Event{Kind: EventReleased, By: by.ID, ByName: by.Name, Roles: t.Roles, Note: note})
}

// Assign assigns a task to another person, whose ID is required; the Name is shown until that person acts. People
// with permission to claim a task may assign it while it is unassigned, its assignee may while it is assigned, and a
// Person with All always.
func (s *Service) Assign(ctx context.Context, r Ref, by, to Person, etag, note string) (Task, error) {
	if to.ID == "" {
		return Task{}, fmt.Errorf("%w: assign task %s: to whom?", ErrInvalid, r)
	}
	t, err := s.openFor(ctx, r, by, etag)
	if err == nil {
		err = errors.Join(validName(to.ID), validName(to.Name))
	}
	e := Event{Kind: EventAssigned, By: by.ID, ByName: by.Name, Assignee: to.ID, AssigneeName: to.Name, Roles: t.Roles, Note: note}
	switch {
	case err != nil:
		return t, err
	case t.End != nil:
		return t, t.conflict()
	case to.Is(t.Assignee):
		return t, s.Sync(ctx, t)
	case t.Assignee == "" && !by.mayClaim(t), t.Assignee != "" && !by.All && !by.Is(t.Assignee):
		return t, fmt.Errorf("%w: assign task %s", ErrForbidden, r)
	case t.Assignee != "":
		e.Kind = EventReassigned
	}
	return s.change(ctx, t, e)
}

// Escalate returns an open task other roles and another assignee, once, for its orchestration.
func (s *Service) Escalate(ctx context.Context, r Ref, roles []string, assignee string, at time.Time) error {
	for range changeTries {
		t, err := s.Get(ctx, r)
		if err != nil || t.End != nil {
			return err
		}
		if slices.ContainsFunc(t.Events, func(e Event) bool { return e.Kind == EventEscalated }) {
			return s.Sync(ctx, t)
		}
		if len(roles) == 0 {
			roles = t.Roles
		}
		_, err = s.change(ctx, t, Event{Kind: EventEscalated, At: at, Assignee: assignee, Roles: roles})
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("escalate task %s: %w", r, ErrChanged)
}

// changeTries bounds the retries of a change after concurrent changes.
const changeTries = 5

// change writes an event and the changed task, unless the task has changed since it was read.
func (s *Service) change(ctx context.Context, t Task, e Event) (Task, error) {
	if len(e.Note) > MaxNote {
		return t, fmt.Errorf("%w: a note has at most %d bytes, not %d", ErrInvalid, MaxNote, len(e.Note))
	}
	if e.Note = redact.Text(e.Note); e.At.IsZero() {
		e.At = s.now()
	}
	next := t
	next.Seq, next.ChangedAt, next.Assignee, next.AssigneeName, next.Roles = t.Seq+1, e.At, e.Assignee, e.AssigneeName, e.Roles
	if next.Status = Created; e.Assignee != "" {
		next.Status = Assigned
	}
	row := next.entity()
	row.ETag = t.ETag
	err := s.config.Tables.Apply(ctx, s.config.Table, tables.Replace(row), tables.Insert(e.entity(t.Ref, next.Seq)))
	if err := s.verify(ctx, t, err, func(now Task) bool { return now.Seq >= next.Seq && sameEvent(now.Events[next.Seq-1], e) }); err != nil {
		return t, fmt.Errorf("%s task %s: %w", e.Kind, t.Ref, err)
	}
	now, err := s.Get(ctx, t.Ref)
	if err != nil {
		return next, err
	}
	return now, s.Sync(ctx, now)
}

func sameEvent(a, b Event) bool {
	return a.Kind == b.Kind && a.By == b.By && a.At.Equal(b.At) && a.Assignee == b.Assignee
}

// verify determines the outcome of a transaction after an inconclusive answer. When the task has changed since it was
// read, the error is ErrChanged.
func (s *Service) verify(ctx context.Context, t Task, err error, applied func(Task) bool) error {
	unsure := errors.Is(err, tables.ErrOutcomeUnknown)
	if err == nil || !unsure && !errors.Is(err, tables.ErrPrecondition) && !errors.Is(err, tables.ErrExists) && !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	now, lookErr := s.Get(ctx, t.Ref)
	switch {
	case lookErr != nil:
		return errors.Join(err, lookErr)
	case applied(now):
		return nil
	case now.End != nil:
		return now.conflict()
	case unsure && now.ETag == t.ETag:
		return err
	}
	return ErrChanged
}

// Complete ends a task with an answer. Its assignee may complete it, people with permission to claim it if it is
// unassigned, and a Person with All. The first wins; the others get a *ConflictError. Repeating it by the same person
// with the same answer changes nothing, and notifies the orchestration again.
func (s *Service) Complete(ctx context.Context, r Ref, by Person, output json.RawMessage, etag, note string) (Task, error) {
	t, err := s.openFor(ctx, r, by, etag)
	if err != nil {
		return t, err
	}
	if t.End != nil {
		if t.End.Status == Completed && by.Is(t.End.By) && string(t.End.Output) == string(output) {
			return t, errors.Join(s.config.Wake(ctx, r, t.End.At), s.Sync(ctx, t))
		}
		return t, t.conflict()
	}
	switch {
	case t.Assignee != "" && !by.All && !by.Is(t.Assignee):
		if by.mayClaim(t) {
			return t, t.conflict()
		}
		return t, fmt.Errorf("%w: complete task %s: it is somebody else's", ErrForbidden, r)
	case t.Assignee == "" && !by.mayClaim(t):
		return t, fmt.Errorf("%w: complete task %s: it needs one of the roles %q", ErrForbidden, r, t.Roles)
	case len(note) > MaxNote:
		return t, fmt.Errorf("%w: a note has at most %d bytes, not %d", ErrInvalid, MaxNote, len(note))
	}
	if err := t.checkAnswer(output); err != nil {
		return t, fmt.Errorf("complete task %s: %w", r, err)
	}
	return s.complete(ctx, t, End{Status: Completed, By: by.ID, ByName: by.Name, At: s.now(), Note: redact.Text(note), Output: output})
}

// complete writes the end of the task, and then notifies the orchestration.
func (s *Service) complete(ctx context.Context, t Task, n End) (Task, error) {
	if err := s.config.Guard(ctx, t.Ref, n.At); err != nil {
		return t, fmt.Errorf("complete task %s: %w", t.Ref, err)
	}
	row := t.entity()
	row.ETag = t.ETag
	err := s.config.Tables.Apply(ctx, s.config.Table, tables.Replace(row), tables.Insert(n.entity(t.Ref)))
	err = s.verify(ctx, t, err, func(now Task) bool {
		return now.End != nil && now.End.By == n.By && now.End.At.Equal(n.At)
	})
	if err != nil {
		return t, fmt.Errorf("complete task %s: %w", t.Ref, err)
	}
	t.End, t.Status, t.ETag = &n, n.Status, ""
	t.Events = append(t.Events, n.event(t))
	if err := s.config.Wake(ctx, t.Ref, n.At); err != nil {
		return t, fmt.Errorf("complete task %s: it is completed, and its orchestration will hear of it later: %w", t.Ref, err)
	}
	return t, s.Sync(ctx, t)
}
