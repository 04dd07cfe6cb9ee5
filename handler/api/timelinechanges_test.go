package api

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// changes are those that the timeline of run-1 has, in words.
func (b *outboxBench) changes(t *testing.T) (told []string) {
	t.Helper()
	items := data[timelinePage](t, b.get(t, "/api/timeline/run-1")).Items
	if !slices.IsSortedFunc(items, func(a, b timelineItem) int { return a.At.Compare(b.At) }) {
		t.Errorf("not in order: %+v", items)
	}
	for _, item := range items {
		c := item.Change
		if (c != nil) != (item.Kind == "change") {
			t.Errorf("%+v", item)
		}
		if c == nil {
			continue
		}
		text := fmt.Sprintf("%d/%d %s", c.Execution, c.Attempt, c.What)
		if c.Reason != "" {
			text += ": " + c.Reason
		}
		if c.Error != nil {
			text += " (" + c.Error.Code + ")"
		}
		told = append(told, text)
	}
	return told
}

// A timeline has every stall and recovery, every attempt that failed and the one that followed, and what people did to the run.
func TestTimelineOfChanges(t *testing.T) {
	t.Parallel()
	const id, by = "hmac-run-1", " (by " + "function-key" + ")"
	const broken, undetermined = "error", "DeterminismError"
	for name, test := range map[string]struct {
		happens func(b *outboxBench)
		want    []string
	}{
		"nothing": {func(b *outboxBench) { b.attempt(t, id) }, nil},
		"a stall": {func(b *outboxBench) { b.stall(t, id) }, []string{"1/1 Stalled (" + undetermined + ")"}},
		"a recovery": {func(b *outboxBench) {
			b.stall(t, id)
			b.tell(t, id, "/events/other", "2") // which does not stall it once more
			b.changed.Store(false)
			b.tell(t, id, "/events/decision", "true")
		}, []string{"1/1 Stalled (" + undetermined + ")", "1/1 Recovered"}},
		"attempts": {func(b *outboxBench) {
			b.retrying(t, id)
			b.tell(t, id, "/events/other", "1") // after which the end stands in the rounds again
			b.attempt(t, id)
			b.mended.Store(true)
			b.attempt(t, id)
		}, []string{"1/1 AttemptFailed (" + broken + ")", "2/2 AttemptBegan", "2/2 AttemptFailed (" + broken + ")", "3/3 AttemptBegan"}},
		"a suspension": {func(b *outboxBench) {
			b.attempt(t, id)
			b.tell(t, id, "/suspend", `{"reason":"lunch"}`)
			b.tell(t, id, "/resume", `{"reason":"back"}`)
		}, []string{"1/1 Suspended: lunch" + by, "1/1 Resumed: back" + by}},
		"a takeover": {func(b *outboxBench) {
			b.attempt(t, id)
			lost := orchestrator.Lost{Node: b.runtime.Node(), Orchestrations: []string{id}, Since: b.now()}
			if err := b.runtime.TakeOver(t.Context(), lost, func(int) {}); err != nil {
				t.Error(err)
			}
		}, []string{"1/1 TakenOver: in place of node lost, which is gone"}},
		"a cancellation": {func(b *outboxBench) {
			b.attempt(t, id)
			b.tell(t, id, "/cancel", `{"reason":"no"}`)
		}, []string{"1/1 CancelRequested: no" + by, "1/1 Canceled (Canceled)"}},
		"a termination": {func(b *outboxBench) {
			b.retrying(t, id)
			b.tell(t, id, "/terminate", `{"reason":"no"}`)
		}, []string{"1/1 AttemptFailed (" + broken + ")", "1/1 Terminated (Terminated)"}},
		"given up": {func(b *outboxBench) {
			b.retrying(t, id)
			if err := b.runtime.GiveUp(t.Context(), id, "run-1", errors.New("enough")); err != nil {
				t.Error(err)
			}
			b.drive(t)
		}, []string{"1/1 AttemptFailed (" + broken + ")", "1/1 GivenUp (" + broken + ")"}},
		"another run before": {func(b *outboxBench) {
			b.retrying(t, id)
			b.tell(t, id, "/terminate", "")
			b.tell(t, id, "/restart", "")
			b.tell(t, id, "/suspend", "")
		}, []string{"1/1 AttemptFailed (" + broken + ")", "1/1 Terminated (Terminated)", "2/1 Suspended: (by " + "function-key" + ")"}},
	} {
		b := newOutboxBench(t)
		test.happens(b)
		got := b.changes(t)
		testenv.Diff(t, test.want, got, "%s", name)
	}
}

// Where the orchestration of a timeline stands says the same as that of a list.
func TestTimelineOfAStalledOne(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.stall(t, "hmac-run-1")
	items := data[timelinePage](t, b.get(t, "/api/timeline/run-1")).Items
	at := slices.IndexFunc(items, func(i timelineItem) bool { return i.Orchestration != nil })
	if at < 0 {
		t.Fatalf("%+v", items)
	}
	if o := items[at].Orchestration; o.Status != orchestrator.Stalled || o.WaitingFor != "" || o.ErrorCode == "" || !o.EndedAt.IsZero() {
		t.Errorf("%+v", o)
	}
}
