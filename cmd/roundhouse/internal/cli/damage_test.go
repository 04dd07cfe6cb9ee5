package cli

import (
	"testing"

	"github.com/vibedata/roundhouse/tables"
)

// A damaged orchestration is listed, and is purged by force after a confirmation, with a reason.
func TestPurgeByForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "a1", "")
	w.begin(t, "b1", "")
	must(t, w.tables.Apply(t.Context(), "orchestrations", tables.Delete(tables.Key{Partition: "a1", Row: "r-00000001-00000001"}, "")))
	w.want(t, exitFailed, []string{"OrchestrationDamaged", "force=true"}, "orchestration", "show", "a1")
	w.want(t, exitFailed, []string{"OrchestrationDamaged"}, "orchestration", "restart", "a1")
	w.want(t, exitFailed, []string{"warn  orchestrations:damaged", "1 orchestrations", "docs/recovery.md"}, "doctor", "--storage", "what")

	w.want(t, exitUsage, []string{"--reason"}, "orchestration", "purge", "a1", "--force")
	w.want(t, exitUsage, []string{"--reason"}, "orchestration", "purge", "a1", "--reason", "why")
	w.want(t, exitUsage, []string{"--force"}, "orchestration", "purge", "--all", "--older-than-days", "1", "--force", "--reason", "why")
	purge := func(id string, more ...string) []string {
		return append([]string{"orchestration", "purge", id, "--force", "--reason", "no backup"}, more...)
	}
	w.want(t, exitRefused, []string{"before: damaged", "add --yes"}, purge("a1")...)
	w.want(t, exitOK, []string{"Dry run"}, purge("a1", "--dry-run")...)
	w.want(t, exitFailed, []string{"OrchestrationDamaged"}, "orchestration", "show", "a1")
	w.want(t, exitRefused, []string{"it can be read, so it has to have ended", "409"}, purge("b1", "--yes")...)
	w.want(t, exitNotFound, nil, purge("nobody", "--yes")...)
	w.want(t, exitOK, []string{"before: damaged", "a1"}, purge("a1", "--yes")...)
	w.want(t, exitNotFound, nil, "orchestration", "show", "a1")
	if found, _, err := w.runtime.Damages(t.Context(), 10); err != nil || len(found) != 0 { // the report itself may be seconds old
		t.Errorf("%+v, %v", found, err)
	}
}

// An ended orchestration cannot be terminated, and no guard suggests otherwise.
func TestTerminateOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "done", "fail")
	for _, more := range [][]string{nil, {"--yes"}, {"--dry-run"}} {
		w.want(t, exitRefused, []string{"has ended already", "Failed"}, append([]string{"orchestration", "terminate", "done"}, more...)...)
	}
	if changes := w.changes(); len(changes) != 0 {
		t.Errorf("%v", changes)
	}
}
