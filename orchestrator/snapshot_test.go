package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/tables"
)

// shownState is StateJson as in the persistence document, section 4.
type shownState struct {
	EngineSchemaVersion int             `json:"engineSchemaVersion"`
	WorkflowState       json.RawMessage `json:"workflowState"`
	BusinessReference   *Reference      `json:"businessReference"`
	Status              string          `json:"status"`
	Waiting             *struct {
		Kind     string     `json:"kind"`
		Token    string     `json:"token"`
		UntilUtc *time.Time `json:"untilUtc"`
	} `json:"waiting"`
	Resume *struct {
		Execution      int    `json:"execution"`
		Round          int    `json:"round"`
		EntryPointKind string `json:"entryPointKind"`
		TaskName       string `json:"taskName"`
		BranchPath     []int  `json:"branchPath"`
		NextStepIndex  int    `json:"nextStepIndex"`
	} `json:"resume"`
	SubWorkflowFrames  []string `json:"subWorkflowFrames"`
	ContinuationBuffer []string `json:"continuationBuffer"`
}

func decodeState(text string) (shownState, error) {
	var s shownState
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&s)
	return s, err
}

// waitsForEverything waits for one call of each kind, one after the other.
func waitsForEverything(step *Activity[int, int], child *Orchestrator[int, int]) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		if n > 1 {
			return n, Permanent(errors.New("the end"))
		}
		if err := ctx.SetStatus(map[string]string{"at": "step"}); err != nil {
			return 0, err
		}
		if _, err := step.Call(ctx, n).Await(); err != nil { // its first attempt fails
			return 0, err
		}
		_ = ctx.Sleep(time.Hour)
		if _, err := Event[int](ctx, "number").Await(); err != nil {
			return 0, err
		}
		if _, err := child.Call(ctx, n).Await(); err != nil {
			return 0, err
		}
		return 0, ContinueAsNew(n + 1)
	})
}

// After every round, the columns match the rounds (persistence document, section 3).
func TestColumnsAfterEveryRound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
			if Info(ctx).Attempt == 1 {
				return 0, errors.New("boom")
			}
			return n, nil
		}, WithRetry(Retry{MaxAttempts: 2, FirstInterval: 10 * time.Minute}))
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { return Event[int](ctx, "number").Await() })
		var kinds []string
		version := int64(0)
		look := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			err := next(ctx)
			if c.Operation != "Apply" || c.Target != "orchestrations" || err != nil {
				return err
			}
			row, missing := w.tables.Get(context.Background(), "orchestrations", tables.Key{Partition: "a", Row: statusRow})
			if missing != nil || row.Int("StateVersion") == version {
				return nil
			}
			if row.Int("StateVersion") != version+1 {
				t.Errorf("version %d follows %d", row.Int("StateVersion"), version)
			}
			version = row.Int("StateVersion")
			kinds = append(kinds, w.columns(t, row))
			return nil
		}
		rt := w.intercepted(t, look, Config{Orchestrators: []AnyOrchestrator{waitsForEverything(step, child), child}, Activities: []AnyActivity{step},
			ScheduleQueue: signalQueue, Node: "node-1"})
		s := startOf("a", 1)
		s.Reference = &Reference{Key: "1200345", Parts: map[string]string{"line": "7"}}
		mustRun(t, rt, s)
		time.Sleep(11 * time.Minute)
		w.deliver(t.Context(), t, rt)
		noError(t, rt.Suspend(t.Context(), "a", ""))
		w.deliver(t.Context(), t, rt)
		noError(t, rt.Resume(t.Context(), "a", ""))
		w.deliver(t.Context(), t, rt)
		time.Sleep(61 * time.Minute)
		w.deliver(t.Context(), t, rt)
		raise(t, w, "a", 1, 0)
		w.deliver(t.Context(), t, rt)
		for _, c := range mustGet(t, rt, "a").Calls {
			if c.Child != "" {
				raise(t, w, c.Child, 2, 0)
			}
		}
		w.settle(t, rt)
		want := []string{"Running Activity", "Running Retry", "Running Timer", "Suspended Timer", "Running Timer", "Running Event",
			"Running Orchestration", "Running ", "Failed "}
		if got := strings.Join(kinds, "|"); got != strings.Join(want, "|") {
			t.Errorf("%s, want %s", got, strings.Join(want, "|"))
		}
	})
}

// columns checks the columns of a status row against the rounds, and returns status and kind of the wait.
func (w *world) columns(t *testing.T, row tables.Entity) string {
	t.Helper()
	all := w.stored(t, "a")
	latest := all[len(all)-1]
	out := summarize("a", latest)
	var learned []event
	for _, r := range latest.rounds {
		learned = append(learned, r.Learned...)
	}
	state, err := decodeState(row.String("StateJson"))
	if err != nil {
		t.Errorf("StateJson %s: %v", row.String("StateJson"), err)
		return ""
	}
	check := func(name string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("version %d: %s is %v, want %v", row.Int("StateVersion"), name, got, want)
		}
	}
	kind, token := row.String("WaitingKind"), row.String("WaitingToken")
	check("SnapshotSchemaVersion", row.Int("SnapshotSchemaVersion"), 1)
	check("RuntimeProvider", row.String("RuntimeProvider"), "roundhouse")
	check("RuntimeInstanceId", row.String("RuntimeInstanceId"), fmt.Sprintf("a/%d", latest.number))
	check("LastExecutedBy", row.String("LastExecutedBy"), "node-1")
	check("LastExecutedOnUtc", row.Time("LastExecutedOnUtc").Truncate(time.Second), time.Now().UTC().Truncate(time.Second))
	check("Name", row.String("Name"), "test")
	check("CorrelationId", row.String("CorrelationId"), "corr")
	first, _ := all[0].start()
	check("CreatedAtUtc", row.Time("CreatedAtUtc"), fromMicros(first.At))
	check("BusinessReference", row.String("BusinessReference"), `{"key":"1200345","parts":{"line":"7"}}`)
	check("state's reference", state.BusinessReference.Key, "1200345")
	check("CompletedAtUtc", row.Time("CompletedAtUtc"), out.EndedAt)
	status := string(out.Status)
	if out.Status == Running {
		status = "Open"
	}
	check("state's status", state.Status, status)
	name := ""
	var open *Call
	var due time.Time
	for i := range out.Calls {
		if out.Calls[i].EndedAt.IsZero() && (out.Calls[i].Kind != EventCall || i == len(out.Calls)-1) { // an event's end is not in its call
			open = &out.Calls[i]
			check("WaitingToken", token, fmt.Sprintf("%d-%d", latest.number, i+1))
		}
	}
	signal, failure := "", (*Failure)(nil)
	for _, e := range learned {
		if e.Inherited != nil {
			signal = e.Inherited.Signals[len(e.Inherited.Signals)-1]
		}
		if e.signal().ID != "" {
			signal = e.Signal.ID
		}
		if e.Kind == attemptFailed && open != nil && open.Kind == ActivityCall {
			due = fromMicros(e.Due)
		}
		if e.Failure != nil {
			failure = e.Failure
		}
	}
	if out.Failure != nil {
		failure = out.Failure
	}
	// Signals that only wake are not in the rounds: of a retry and of a timer that are due, and of the child's end.
	if woken := map[int64]string{3: "RetryDue:a:", 6: "TimerDue:a:", 8: "end:a:", 9: "end:a:"}[row.Int("StateVersion")]; woken != "" {
		check("LastSignalId", strings.HasPrefix(row.String("LastSignalId"), woken), true)
	} else {
		check("LastSignalId", row.String("LastSignalId"), signal)
	}
	if failure == nil {
		failure = &Failure{}
	} else {
		var told Failure
		if err := json.Unmarshal([]byte(row.String("LastErrorJson")), &told); err != nil || told.Message != failure.Message {
			t.Errorf("LastErrorJson %s: %v", row.String("LastErrorJson"), err)
		}
	}
	check("LastErrorCode", row.String("LastErrorCode"), failure.Code)
	switch {
	case open == nil:
		check("WaitingKind", kind+token, "")
		check("state's wait", state.Waiting == nil, true)
	case open.Kind == TimerCall:
		for _, r := range latest.rounds {
			for _, e := range r.Decided {
				if e.Kind == timerScheduled {
					due = fromMicros(e.Due)
				}
			}
		}
		check("WaitingKind", kind, "Timer")
	case open.Kind == ActivityCall && open.Attempts > 0:
		check("WaitingKind", kind, "Retry")
	default:
		check("WaitingKind", kind, open.Kind)
	}
	check("WaitingUntilUtc", row.Time("WaitingUntilUtc"), due)
	frames := 0
	if open != nil {
		check("state's wait", state.Waiting.Kind+" "+state.Waiting.Token, kind+" "+token)
		check("state's time", state.Waiting.UntilUtc == nil, due.IsZero())
		name = open.Name
		if open.Kind == OrchestrationCall {
			frames = 1
			check("state's frame", state.SubWorkflowFrames[0], open.Child)
		}
	}
	check("state's frames", len(state.SubWorkflowFrames), frames)
	resume := "null"
	if !out.Ended() {
		resume = fmt.Sprintf(`{"execution":%d,"round":%d,"entryPointKind":"OrchestratorResume","taskName":%q,"branchPath":[],"nextStepIndex":%d}`,
			latest.number, len(latest.rounds), name, len(out.Calls))
		if decided := latest.rounds[len(latest.rounds)-1].Decided; len(decided) > 0 && decided[len(decided)-1].Kind == executionContinued {
			resume = fmt.Sprintf(`{"execution":%d,"round":0,"entryPointKind":"OrchestratorStart","taskName":"","branchPath":[],"nextStepIndex":0}`, latest.number+1)
		}
		check("ResumePointerJson", row.String("ResumePointerJson"), resume)
	}
	check("state's pointer", strings.Contains(row.String("StateJson"), `"resume":`+resume+`,`), true)
	return string(out.Status) + " " + kind
}

// For any names, statuses and references, the state is JSON of its shape, and fits its column.
func TestStateIsJSONWhateverTheNames(t *testing.T) {
	t.Parallel()
	sample.Rapid(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{strings.Repeat("\x00", 5000), strings.Repeat("é", 30_000), `","x":"`, "\xff\xfe", strings.Repeat("\U0001F600", 9000)}))
		x := &execution{id: "a", number: 1, reference: &Reference{Key: name.Draw(rt, "key")}}
		if x.reference.validate() != nil {
			x.reference = nil
		}
		ctx := &Context{execution: x}
		if err := ctx.SetStatus(name.Draw(rt, "status")); err != nil {
			x.customStatus = ""
		}
		wait := &task{kind: eventTask, number: 1, name: name.Draw(rt, "wait")}
		for i := range rapid.IntRange(0, 30).Draw(rt, "many") {
			x.openChildren = append(x.openChildren, &task{child: name.Draw(rt, fmt.Sprint("child", i))})
			x.unread.put(event{Name: name.Draw(rt, fmt.Sprint("event", i))})
		}
		pointer := resumePointer{execution: 1, round: 1, wait: wait}
		all, from, to := x.appendState(nil, Running, pointer, 0, []byte(x.token(wait)))
		text := string(all)
		if !json.Valid(all[from:to]) {
			rt.Fatalf("the resume pointer is %s", all[from:to])
		}
		state, err := decodeState(text)
		if err != nil || state.Waiting.Token != "1-1" || len(state.SubWorkflowFrames) > shownInState || len(state.ContinuationBuffer) > shownInState {
			rt.Fatalf("%s: %v", text, err)
		}
		if len(text) > 64<<10 {
			rt.Errorf("%d bytes", len(text))
		}
		w := tables.NewMemory()
		if err := w.CreateTable(context.Background(), "test"); err != nil {
			rt.Fatal(err)
		}
		if err := w.Apply(context.Background(), "test", tables.Upsert(tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}, Properties: map[string]any{"StateJson": text}})); err != nil {
			rt.Fatal(err)
		}
	})
}

// An orchestration with hostile names and a failure of any size commits, and continues.
func TestColumnsOfHostileThings(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		long := strings.Repeat("\x01", 900)
		step := NewActivity("step", func(context.Context, int) (int, error) {
			return 0, fmt.Errorf("\xff%s", strings.Repeat("\x00\U0001F600", 40_000))
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if err := ctx.SetStatus(json.RawMessage("\"\xff\"")); err == nil {
				return 0, errors.New("what is not UTF-8 cannot be shown")
			}
			_, _ = step.Call(ctx, n).Await()
			return Event[int](ctx, strings.Repeat("\x00", 50_000)).Await()
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
		if out := mustRun(t, rt, startOf("a", 1)); out.Status != Running {
			t.Fatalf("%+v", out)
		}
		for i := range 25 {
			noError(t, errorOf(rt.Deliver(t.Context(), eventSignal("a", fmt.Sprint(i, long), fmt.Sprint(i, long), "1"))))
		}
		row := w.status(t, "a")
		if _, err := decodeState(row.String("StateJson")); err != nil || row.Int("Round") != 27 {
			t.Errorf("%d rounds: %v", row.Int("Round"), err)
		}
		for _, s := range []Signal{eventSignal("a", strings.Repeat("x", 2000), "e", "1"), eventSignal("a", "x", strings.Repeat("e", 2000), "1")} {
			if _, err := rt.Deliver(t.Context(), s); !errors.Is(err, ErrSignal) {
				t.Errorf("%v", err)
			}
		}
		w.replays(t, rt)
	})
}
