package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
)

// atEveryCall runs a change of a dead letter with every immediate fault at each of its calls, which are at most four.
func atEveryCall(t *testing.T, run func(t *testing.T, store *watchedStore, letters, failing *DeadLetters)) {
	t.Helper()
	for _, fault := range faults.Faults() {
		if fault == faults.Slow {
			continue
		}
		for at := 1; at <= 4; at++ {
			t.Run(fmt.Sprintf("%s-%d", fault, at), func(t *testing.T) {
				t.Parallel()
				store, _, letters := newTables(t)
				plan := &faults.Plan{At: at, Fault: fault}
				run(t, store, letters, NewDeadLetters(faults.Tables(store, plan.Intercept), ""))
			})
		}
	}
}

// A note is added once, with any fault at any call and any number of repeats, and a decision keeps it.
func TestNoteAtEveryCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T, store *watchedStore, letters, failing *DeadLetters) {
		addLetter(t, letters, pendingLetter())
		n := Note{ID: "n1", At: noon(), By: "me", Text: "token=abc " + strings.Repeat("é", 900)}
		if _, err := failing.AddNote(t.Context(), "hmac", pendingRow, n, ""); errors.Is(err, ErrChanged) {
			t.Errorf("its own write is taken for another's: %v", err)
		}
		if _, err := letters.AddNote(t.Context(), "hmac", pendingRow, n, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := letters.Decide(t.Context(), "hmac", pendingRow, Decision{Status: StatusExpired, At: noon()}); err != nil {
			t.Fatal(err)
		}
		l, err := letters.AddNote(t.Context(), "hmac", pendingRow, Note{ID: "n2", At: noon(), Text: "later"}, "")
		n.Text = strings.Replace(n.Text, "abc", "[redacted]", 1)
		if diff := cmp.Diff([]Note{n, {ID: "n2", At: noon(), Text: "later"}}, l.Notes); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		checkRows(t, store, letters, "hmac")
	})
}

func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	_, _, letters := newTables(t)
	addLetter(t, letters, pendingLetter())
	for n := range MaxNotes {
		if _, err := letters.AddNote(t.Context(), "hmac", pendingRow, Note{ID: fmt.Sprint(n), At: noon(), Text: strings.Repeat("\"", MaxNoteText)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	l, err := letters.Get(t.Context(), "hmac", pendingRow)
	if err != nil || len(l.Notes) != MaxNotes {
		t.Fatalf("%d notes, %v", len(l.Notes), err)
	}
	for name, test := range map[string]struct {
		row   string
		note  Note
		match string
		want  error
	}{
		"one more":  {pendingRow, Note{ID: "more", At: noon(), Text: "x"}, "", ErrTooManyNotes},
		"no text":   {pendingRow, Note{ID: "x", At: noon()}, "", ErrFilter},
		"no id":     {pendingRow, Note{At: noon(), Text: "x"}, "", ErrFilter},
		"no time":   {pendingRow, Note{ID: "x", Text: "x"}, "", ErrFilter},
		"too long":  {pendingRow, Note{ID: "x", At: noon(), Text: strings.Repeat("x", MaxNoteText+1)}, "", ErrFilter},
		"stale":     {pendingRow, Note{ID: "x", At: noon(), Text: "x"}, "old", ErrChanged},
		"no row":    {"msg-20261121T110000.000000Z", Note{ID: "x", At: noon(), Text: "x"}, "", ErrNotFound},
		"again, it": {pendingRow, Note{ID: "3", At: noon(), Text: "x"}, "old", nil},
	} {
		if _, err := letters.AddNote(t.Context(), "hmac", test.row, test.note, test.match); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The assignee of a dead letter is in every list, with any fault at any call of the assignment.
func TestAssignAtEveryCall(t *testing.T) {
	t.Parallel()
	atEveryCall(t, func(t *testing.T, store *watchedStore, letters, failing *DeadLetters) {
		other := pendingLetter()
		other.MessageID = "other"
		for _, l := range []DeadLetter{pendingLetter(), other} {
			addLetter(t, letters, l)
		}
		old, err := letters.Get(t.Context(), "hmac", pendingRow)
		if err != nil {
			t.Fatal(err)
		}
		a := Assignment{To: "t/ann", Name: "Ann", At: noon(), Claim: true, IfMatch: old.ETag}
		if _, err := failing.Assign(t.Context(), "hmac", pendingRow, a); errors.Is(err, ErrChanged) || errors.Is(err, ErrHeld) {
			t.Errorf("its own write is taken for another's: %v", err)
		}
		l, err := letters.Assign(t.Context(), "hmac", pendingRow, a)
		if err != nil || l.Assignee != "t/ann" || l.AssigneeName != "Ann" || !l.AssignedAtUtc.Equal(noon()) {
			t.Errorf("%+v, %v", l, err)
		}
		lists(t, letters, "t/ann", pendingRow, 1)
		checkRows(t, store, letters, "hmac")
	})
}

// lists checks the lists of an assignee, and of unassigned dead letters.
func lists(t *testing.T, letters *DeadLetters, assignee, row string, unassigned int) {
	t.Helper()
	for _, f := range []DeadLetterFilter{{}, {Status: StatusPending}, {CorrelationID: pendingLetter().CorrelationID}, {InstanceID: pendingLetter().InstanceID}, {TenantID: pendingLetter().TenantID}} {
		f.Engines, f.Assignee = []string{"hmac"}, assignee
		page, err := letters.List(t.Context(), f)
		if err != nil || len(page.DeadLetters) != 1 || page.DeadLetters[0].RowKey != row || page.DeadLetters[0].Assignee != assignee {
			t.Errorf("%+v: %+v, %v", f, page.DeadLetters, err)
		}
		f.Assignee, f.Unassigned = "", true
		page, err = letters.List(t.Context(), f)
		if err != nil || len(page.DeadLetters) != unassigned {
			t.Errorf("%+v: %+v, %v", f, page.DeadLetters, err)
		}
	}
}

func TestAssign(t *testing.T) {
	t.Parallel()
	store, _, letters := newTables(t)
	addLetter(t, letters, pendingLetter())
	assign := func(a Assignment) (DeadLetter, error) {
		a.At = noon()
		return letters.Assign(t.Context(), "hmac", pendingRow, a)
	}
	if _, err := assign(Assignment{To: "ann", Claim: true}); err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := assign(Assignment{To: "bob", Claim: true}); !errors.As(err, &held) || !errors.Is(err, ErrHeld) || held.By != "ann" {
		t.Errorf("claimed twice: %v", err)
	}
	if l, err := assign(Assignment{To: "bob"}); err != nil || l.Assignee != "bob" {
		t.Errorf("given to another: %+v, %v", l, err)
	}
	lists(t, letters, "bob", pendingRow, 0)
	if _, err := assign(Assignment{To: "ann", IfMatch: "old"}); !errors.Is(err, ErrChanged) {
		t.Errorf("stale: %v", err)
	}
	for name, a := range map[string]Assignment{"long": {To: strings.Repeat("x", MaxIdentity+1)}, "name of nobody": {Name: "x"}, "claim for nobody": {Claim: true}} {
		if _, err := assign(a); !errors.Is(err, ErrFilter) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, err := assign(Assignment{}); err != nil || l.Assignee != "" || l.AssigneeName != "" || !l.AssignedAtUtc.IsZero() {
		t.Errorf("released: %+v, %v", l, err)
	}
	if _, err := assign(Assignment{To: "ann"}); err != nil {
		t.Fatal(err)
	}
	if l, err := letters.Decide(t.Context(), "hmac", pendingRow, Decision{Status: StatusResolved, At: noon().Add(time.Hour)}); err != nil || l.Assignee != "ann" {
		t.Errorf("decided: %+v, %v", l, err)
	}
	if _, err := assign(Assignment{}); !errors.Is(err, ErrState) {
		t.Errorf("released when it was resolved: %v", err)
	}
	checkRows(t, store, letters, "hmac")
}
