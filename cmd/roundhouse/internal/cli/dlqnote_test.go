package cli

import (
	"testing"
	"time"
)

// Notes and assignees of dead letters are set, shown and listed, through the API and on storage.
func TestNoteAndAssign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	row := w.deadLetter(t, "m1", "vault said no", time.Now())
	other := w.deadLetter(t, "m2", "disk is full", time.Now())
	w.want(t, exitOK, []string{"we wait"}, "dlq", "note", "hmac", row, "we wait")
	w.want(t, exitOK, []string{"assignee"}, "dlq", "assign", "hmac", row)
	w.want(t, exitOK, []string{row}, "dlq", "list", "--assignee", "me")
	w.want(t, exitOK, []string{other}, "dlq", "list", "--assignee", "nobody")
	w.want(t, exitOK, []string{"t/bo", "Bo", "we wait"}, "dlq", "assign", "hmac", row, "t/bo", "--name", "Bo")
	w.want(t, exitRefused, []string{"409 DeadLetterHeld", "Bo has it since"}, "dlq", "assign", "hmac", row)
	w.want(t, exitOK, []string{row}, "dlq", "list", "--assignee", "t/bo")
	w.want(t, exitOK, []string{"we wait"}, "dlq", "assign", "hmac", row, "--release")
	w.want(t, exitOK, []string{row, other}, "dlq", "list", "--assignee", "nobody")
	for _, args := range [][]string{{"--name", "Bo"}, {"t/bo", "--release"}, {"--release", "--name", "Bo"}} {
		w.want(t, exitUsage, []string{"--release with neither"}, append([]string{"dlq", "assign", "hmac", row}, args...)...)
	}
	w.want(t, exitUsage, nil, "dlq", "note", "hmac", row)
	w.want(t, exitNotFound, nil, "dlq", "note", "hmac", "nothing", "x")
}
