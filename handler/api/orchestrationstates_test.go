package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// turns returns an orchestrator that waits for a day or the event "decision", or, with changed code, for something
// else.
func (b *outboxBench) turns() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("turns", func(ctx *orchestrator.Context, _ asked) (string, error) {
		if b.changed.Load() {
			return orchestrator.Event[string](ctx, "another").Await()
		}
		timer, decision := orchestrator.Timer(ctx, 24*time.Hour), orchestrator.Event[bool](ctx, "decision")
		orchestrator.Any(ctx, timer, decision)
		return "decided", nil
	})
}

// takes returns an orchestrator that takes two events, one after the other, and waits for an hour, or, with changed
// code, does something else.
func (b *outboxBench) takes() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("takes", func(ctx *orchestrator.Context, _ asked) (string, error) {
		if b.changed.Load() {
			return "", ctx.Sleep(time.Minute)
		}
		for _, name := range []string{"first", "second"} {
			if _, err := orchestrator.Event[int](ctx, name).Await(); err != nil {
				return "", err
			}
		}
		return "", ctx.Sleep(time.Hour)
	})
}

// flaky returns an orchestrator that waits for the event "decision", and fails then, until it is fixed.
func (b *outboxBench) flaky() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("flaky", func(ctx *orchestrator.Context, _ asked) (string, error) {
		if _, err := orchestrator.Event[bool](ctx, "decision").Await(); err != nil {
			return "", err
		}
		if !b.mended.Load() {
			return "", errors.New("no line")
		}
		return "done", nil
	})
}

// leaves returns an orchestrator that ends before the approval that it has called.
func leaves() orchestrator.AnyOrchestrator {
	return orchestrator.NewOrchestrator("leaves", func(ctx *orchestrator.Context, in asked) (string, error) {
		child := approval().Call(ctx, in, orchestrator.WithID("child"), orchestrator.WithParentClose(orchestrator.AbandonChild))
		orchestrator.Any(ctx, child, orchestrator.Timer(ctx, time.Millisecond))
		return "left", nil
	})
}

// stall starts an orchestration and lets it stall.
func (b *outboxBench) stall(t *testing.T, id string) {
	t.Helper()
	b.changed.Store(false)
	if rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"turns","id":"`+id+`","input":{"item":"x"},"correlationId":"run-1"}`); rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	b.changed.Store(true)
	b.tell(t, id, "/events/other", "1")
}

// attempt makes an attempt at a flaky orchestration, as an engine does for a message.
func (b *outboxBench) attempt(t *testing.T, id string) {
	t.Helper()
	s := orchestrator.Start{ID: id, Orchestrator: "flaky", CorrelationID: "run-1", Input: []byte(`{"item":"x"}`), WillRetry: true}
	testenv.Must(b.runtime.Run(t.Context(), s))(t)
}

// retrying starts an orchestration whose first attempt fails.
func (b *outboxBench) retrying(t *testing.T, id string) {
	t.Helper()
	b.attempt(t, id)
	b.tell(t, id, "/events/decision", "true")
}

// A stalled orchestration is shown with its error and its time, and without waits that it cannot handle. When its
// code is fixed, it continues.
func TestStalledIsShown(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	began := time.Now().Add(-time.Second)
	b.stall(t, "a1")
	got := b.shown(t, "a1")
	if got.Status != orchestrator.Stalled || got.Failure == nil || !strings.Contains(got.Failure.Message, "Patched") || got.LastError == nil || got.ErrorCode == "" ||
		!got.EndedAt.IsZero() || got.StatusSince.Before(began) || got.StatusSince.After(time.Now()) || got.Attempt != 1 {
		t.Errorf("%+v", got)
	}
	testenv.Equal(t, "the event that it could not take", []string{"other"}, got.PendingEvents)
	if got.WaitingFor != "" || !got.WaitingUntil.IsZero() || got.WaitingToken != "" || got.Late || len(got.Waits) != 2 {
		t.Errorf("it waits: %+v", got)
	}
	if state := string(got.State); !strings.Contains(state, `"status":"Stalled"`) || !strings.Contains(state, `"waiting":null`) || !strings.Contains(state, `"resume":{`) {
		t.Errorf("state %s", state)
	}
	since := got.StatusSince
	b.tell(t, "a1", "/events/other", "2")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Stalled || !got.StatusSince.Equal(since) || len(got.PendingEvents) != 2 {
		t.Errorf("after another event: %+v", got)
	}
	b.changed.Store(false)
	b.tell(t, "a1", "/events/decision", "true")
	got = b.shown(t, "a1")
	if got.Status != orchestrator.Completed || got.Failure != nil || !got.StatusSince.IsZero() || len(got.PendingEvents) != 2 {
		t.Errorf("mended: %+v", got)
	}
}

// Events from before the stall are still pending, unless they were taken: a wait that is open at the end may not have
// taken later events, but an earlier wait has.
func TestPendingEventsOfAStalledOne(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	if rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"takes","id":"a1","input":{"item":"x"}}`); rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	b.drive(t)
	for _, name := range []string{"Early", "first", "early", "late"} {
		b.tell(t, "a1", "/events/"+name, "1")
	}
	if got := b.shown(t, "a1").PendingEvents; !slices.Equal(got, []string{"Early", "early", "late"}) {
		t.Errorf("before: %v", got)
	}
	b.changed.Store(true)
	b.tell(t, "a1", "/events/first", "2")
	b.tell(t, "a1", "/events/SECOND", "3")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Stalled || !slices.Equal(got.PendingEvents, []string{"Early", "early", "late", "first", "SECOND"}) {
		t.Errorf("%s: %v", got.Status, got.PendingEvents)
	}
	b.changed.Store(false)
	b.tell(t, "a1", "/events/last", "4")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Running || !slices.Equal(got.PendingEvents, []string{"Early", "early", "late", "first", "last"}) {
		t.Errorf("mended, %s: %v", got.Status, got.PendingEvents)
	}
	b.changed.Store(true)
	b.tell(t, "a1", "/events/late", "5")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Stalled || !slices.Equal(got.PendingEvents, []string{"Early", "early", "late", "first", "last", "late"}) {
		t.Errorf("stalled again, %s: %v", got.Status, got.PendingEvents)
	}
}

// An orchestration between two attempts is shown with the last error, and has not ended.
func TestRetryingIsShown(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	began := time.Now().Add(-time.Second)
	b.retrying(t, "a1")
	got := b.shown(t, "a1")
	if got.Status != orchestrator.Retrying || got.Failure == nil || got.Failure.Message != "no line" || !got.EndedAt.IsZero() || got.Attempt != 1 ||
		got.StatusSince.Before(began) || got.WaitingFor != "" || len(got.Waits) != 0 || len(got.PendingEvents) != 0 {
		t.Errorf("%+v", got)
	}
	b.tell(t, "a1", "/events/other", "1")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Retrying || !slices.Equal(got.PendingEvents, []string{"other"}) {
		t.Errorf("with an event: %+v", got)
	}
	b.mended.Store(true)
	b.attempt(t, "a1")
	if got := b.shown(t, "a1"); got.Status != orchestrator.Completed || got.Attempt != 2 || got.Execution != 2 || got.Failure != nil {
		t.Errorf("%+v", got)
	}
}

// The answer of each command in each state, and the state after it.
func TestCommandsToWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	const stalled, retrying = orchestrator.Stalled, orchestrator.Retrying
	for _, test := range []struct {
		state        orchestrator.Status
		method, path string
		body         string
		code         int
		says         string
		then         orchestrator.Status
	}{
		{stalled, http.MethodPost, "/terminate", "", 202, "", orchestrator.Terminated},
		{stalled, http.MethodPost, "/cancel", "", 202, "when its code can go on", stalled},
		{stalled, http.MethodPost, "/suspend", "", 202, "when its code can go on", stalled},
		{stalled, http.MethodPost, "/resume", "", 202, "when its code can go on", stalled},
		{stalled, http.MethodPost, "/events/decision", "true", 202, "when its code can go on", stalled},
		{stalled, http.MethodPost, "/rewind", "", 409, "when the code is mended", stalled},
		{stalled, http.MethodPost, "/restart", "", 409, "when the code is mended", stalled},
		{stalled, http.MethodDelete, "", "", 409, "when the code is mended", stalled},
		{retrying, http.MethodPost, "/terminate", "", 202, "", orchestrator.Terminated},
		{retrying, http.MethodPost, "/cancel", "", 202, "", orchestrator.Canceled},
		{retrying, http.MethodPost, "/suspend", "", 202, "for the next one", retrying},
		{retrying, http.MethodPost, "/resume", "", 202, "for the next one", retrying},
		{retrying, http.MethodPost, "/events/decision", "true", 202, "for the next one", retrying},
		{retrying, http.MethodPost, "/rewind", "", 409, "another one follows by itself", retrying},
		{retrying, http.MethodPost, "/restart", "", 409, "another one follows by itself", retrying},
		{retrying, http.MethodDelete, "", "", 409, "another one follows by itself", retrying},
		{orchestrator.Running, http.MethodPost, "/suspend", "", 202, "", orchestrator.Suspended},
		{orchestrator.Running, http.MethodPost, "/restart", "", 409, "Wait for its end", orchestrator.Running},
	} {
		b := newOutboxBench(t)
		switch test.state {
		case stalled:
			b.stall(t, "a1")
		case retrying:
			b.retrying(t, "a1")
		default:
			b.begin(t, "a1", "book")
		}
		name := string(test.state) + " " + test.method + " " + test.path
		rec := b.send(t, test.method, orchestrationPath("a1")+test.path, test.body)
		if rec.Code != test.code {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
			continue
		}
		if test.code == http.StatusConflict {
			if a := decode(t, rec); a.Error.Code != codeActive || !strings.Contains(a.Error.Message, test.says) || rec.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %s", name, rec.Body)
			}
		} else if item := data[summaryItem](t, rec); item.Status != test.state || !strings.Contains(item.Notice, test.says) || (item.Notice == "") != (test.says == "") {
			t.Errorf("%s: %s", name, rec.Body)
		}
		b.drive(t)
		if got := b.shown(t, "a1"); got.Status != test.then {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
}

// A start under the id of an active orchestration reports its activity; so does the purge of one whose child is
// active.
func TestWhatKeepsAnID(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.stall(t, "a1")
	rec := b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","id":"a1","correlationId":"c-2","reuse":"ended"}`)
	if a := decode(t, rec); rec.Code != http.StatusConflict || a.Error.Code != codeActive || !strings.Contains(a.Error.Message, "code is mended") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	b.send(t, http.MethodPost, orchestrationsPath, `{"orchestrator":"leaves","id":"a2","input":{"item":"x"}}`)
	b.drive(t)
	if got := b.shown(t, "a2"); got.Status != orchestrator.Completed {
		t.Fatalf("%+v", got)
	}
	rec = b.send(t, http.MethodDelete, orchestrationPath("a2"), "")
	if a := decode(t, rec); rec.Code != http.StatusConflict || a.Error.Code != codeActive || !strings.Contains(a.Error.Message, "that it called") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// Both states are filters of the list, and no filters of a purge, which is for ended ones.
func TestStatesAreFilters(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.stall(t, "a1")
	b.retrying(t, "a2")
	testenv.OK(t, b.list.Flush(t.Context()))
	for status, want := range map[string][]string{"Stalled": {"a1"}, "Retrying": {"a2"}, "Running": nil, "Failed": nil} {
		items := data[list[summaryItem]](t, b.get(t, orchestrationsPath+"?status="+status)).Items
		ids := each(items, func(i summaryItem) string { return i.ID })
		for _, item := range items {
			if item.ErrorCode == "" || item.WaitingFor != "" {
				t.Errorf("%+v", item)
			}
		}
		testenv.Equal(t, status, want, ids)
		rec := b.send(t, http.MethodPost, orchestrationsPath+"/purge", `{"olderThanDays":1,"status":"`+status+`"}`)
		testenv.Equal(t, fmt.Sprintf("purge of %s is refused: %s", status, rec.Body), status != "Failed", rec.Code == http.StatusBadRequest)
	}
	known := theContract(t).Components.Schemas["OrchestrationItem"].Value.Properties["status"].Value.Enum
	for _, s := range allStatuses() {
		if !slices.Contains(known, any(string(s))) {
			t.Errorf("the document does not know %s", s)
		}
	}
}

// A wait for a past time is late, unless the orchestration is suspended.
func TestLateWaits(t *testing.T) {
	t.Parallel()
	until := noon()
	for name, test := range map[string]struct {
		status orchestrator.Status
		until  time.Time
		now    time.Duration
		late   bool
		waits  bool
	}{
		"before":     {orchestrator.Running, until, -time.Hour, false, true},
		"just over":  {orchestrator.Running, until, lateAfter, false, true},
		"late":       {orchestrator.Running, until, lateAfter + 1, true, true},
		"no time":    {orchestrator.Running, time.Time{}, time.Hour, false, true},
		"suspended":  {orchestrator.Suspended, until, time.Hour, false, true},
		"stalled":    {orchestrator.Stalled, until, time.Hour, false, false},
		"in between": {orchestrator.Pending, until, time.Hour, false, true},
	} {
		a := &api{now: func() time.Time { return until.Add(test.now) }}
		got := a.waitingItemOf(orchestrator.Summary{Status: test.status, WaitingKind: "Timer", WaitingUntil: test.until})
		if got.Late != test.late || (got.WaitingFor != "") != test.waits {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A stalled operation has not ended, and reports the reason.
func TestStalledOperation(t *testing.T) {
	t.Parallel()
	rep := running(bulk.Operation{ID: "x", Status: orchestrator.Stalled})
	if item := rep.data.(operationItem); item.Status != "Running" || item.Error == nil || item.Error.Code != codeStalled || rep.header["Retry-After"] == "" {
		t.Errorf("%+v", item)
	}
	if item := running(bulk.Operation{ID: "x", Status: orchestrator.Running}).data.(operationItem); item.Error != nil {
		t.Errorf("%+v", item)
	}
}

// changes returns the changes in the timeline of run-1, in words.
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

// A timeline has every stall and recovery, every failed attempt and the following one, and callers' actions on the
// run.
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
			b.tell(t, id, "/events/other", "2") // which causes no second stall
			b.changed.Store(false)
			b.tell(t, id, "/events/decision", "true")
		}, []string{"1/1 Stalled (" + undetermined + ")", "1/1 Recovered"}},
		"attempts": {func(b *outboxBench) {
			b.retrying(t, id)
			b.tell(t, id, "/events/other", "1") // after which the rounds have the end again
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
		testenv.Equal(t, name, test.want, got)
	}
}

// The state of an orchestration in a timeline is the same as in a list.
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
