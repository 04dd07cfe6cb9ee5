package timeline

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// teller converts the rounds of a run to items. It skips executions of another correlation id or tenant, which share
// the id of a singleton.
type teller struct {
	g        *gathering
	run      run
	items    []Item
	children []string // runs that this one has started
	letters  []engine.DeadLetter

	mine      bool // the execution has the correlation id, and the caller may see it
	execution int
	attempt   int
	failed    bool // the attempt has
	follows   bool // the next one starts by itself
	// state is the execution's run according to the rounds; runs counts them.
	state orchestrator.Summary
	runs  int
	// calls are the open ones, by their numbers; pauses are the positions of open items, by their kinds.
	calls  map[int]openCall
	pauses map[string]int
	out    map[string]bool // sent messages
	last   time.Time
	asked  bool // a user was asked
}

// openCall is an open call: the position of its item, and whether a cancellation skips it.
type openCall struct {
	item     int
	shielded bool
}

// tell processes a round. Its entries have strictly increasing times, in the order in which they happened.
func (t *teller) tell(r orchestrator.Round) {
	t.execution = r.Execution
	all := slices.Concat(r.Learned, r.Decided)
	slices.SortStableFunc(all, func(a, b orchestrator.RoundEvent) int { return a.At.Compare(b.At) })
	for _, e := range all {
		if e.Kind == "ExecutionStarted" {
			t.started(e)
		} else if t.mine {
			t.entry(e)
		}
		t.last = e.At
	}
}

// entry processes an entry of the rounds; it skips irrelevant kinds.
func (t *teller) entry(e orchestrator.RoundEvent) {
	for _, tells := range []func(orchestrator.RoundEvent) bool{t.stateChanged, t.call, t.result, t.sent} {
		if tells(e) {
			return
		}
	}
}

func (t *teller) where() Where { return Where{t.run.id, t.execution} }

// add adds an item, identified by the time of its entry, and returns its position.
func (t *teller) add(kind Kind, e orchestrator.RoundEvent, i Item) int {
	i.ID = fmt.Sprintf("%s/%s/%d", kind, t.run.id, e.At.UnixMicro())
	i.At, i.Kind, i.Engine = e.At, kind, t.run.engine
	t.items = append(t.items, i)
	return len(t.items) - 1
}

func (t *teller) change(e orchestrator.RoundEvent, what string) int {
	return t.add(KindChange, e, Item{Change: &Change{Where: t.where(), Attempt: t.attempt, What: what, Reason: e.Reason, Error: failureOf(e.Failure)}})
}

// started processes the start of an execution: another attempt, a continuation, or a separate run.
func (t *teller) started(e orchestrator.RoundEvent) {
	again := t.failed && e.Attempt > 1
	follows := t.follows
	t.leave()
	t.attempt, t.failed, t.follows = max(e.Attempt, 1), false, false
	t.calls, t.pauses = map[int]openCall{}, map[string]int{}
	if !again && !follows {
		t.endRun()
		t.mine = e.CorrelationID == t.g.q.CorrelationID && t.g.sees(e.Tenant)
		t.runs++
		t.state = orchestrator.Summary{ID: t.run.id, Orchestrator: e.Name, CorrelationID: e.CorrelationID, TenantID: e.Tenant, Parent: e.Parent,
			Status: orchestrator.Running, CreatedAt: e.At}
		if t.mine && e.Parent == "" {
			t.add(KindMessage, e, Item{Message: &Message{Where: t.where(), RequestID: e.Signal}})
		}
	}
	t.state.Execution, t.state.UpdatedAt = t.execution, e.At
	if !t.mine {
		return
	}
	e.Failure, e.Reason = nil, ""
	switch {
	case again:
		t.change(e, "AttemptBegan")
	case follows:
		t.change(e, "ContinuedAsNew")
	}
}

// endRun adds the item of the run before another one starts under the id.
func (t *teller) endRun() {
	if t.mine && t.runs > 0 {
		t.tellRun(t.state)
	}
}

func (t *teller) tellRun(s orchestrator.Summary) {
	t.items = append(t.items, Item{ID: fmt.Sprintf("orchestration/%s/%d", s.ID, s.CreatedAt.UnixMicro()), At: s.CreatedAt, EndedAt: s.EndedAt,
		Kind: KindOrchestration, Engine: t.run.engine, Orchestration: &s})
}

// finish drops the marked items, and adds that of the last run in the rounds. Its status row has more data than they
// do, unless it belongs to another run.
func (t *teller) finish() {
	t.items = slices.DeleteFunc(t.items, func(i Item) bool { return i.Kind == "" })
	s := t.run.state
	switch {
	case t.mine && s.CorrelationID == t.g.q.CorrelationID:
		latest := *s
		if t.runs > 1 {
			latest.CreatedAt = t.state.CreatedAt
		}
		t.tellRun(latest)
	case t.mine:
		t.tellRun(t.state)
	case t.runs == 0 && s.Orchestrator != "" && s.CorrelationID == t.g.q.CorrelationID && t.g.sees(s.TenantID):
		t.tellRun(*s) // its rounds are gone, or unreadable
	}
}

// damaged adds an item for unreadable data, if it belongs to the caller.
func (t *teller) damaged(err error) {
	t.g.truncated.Store(true)
	t.g.Log.Warn("a timeline leaves out what cannot be read", "orchestrationId", t.run.id, "error", err.Error())
	s := t.run.state
	if known := s.Orchestrator != ""; !t.mine && t.runs > 0 || known && !t.g.sees(s.TenantID) || known && t.runs == 0 && s.CorrelationID != t.g.q.CorrelationID {
		return
	}
	at := t.last
	if at.IsZero() {
		at = s.CreatedAt
	}
	if at.IsZero() {
		at = t.g.Now()
	}
	why := "from here on, its rounds are damaged"
	if errors.Is(err, orchestrator.ErrNewerSchema) {
		why = "from here on, its rounds were written by a newer version"
	}
	if t.execution == 0 {
		t.execution = max(s.Execution, 1)
	}
	i := t.change(orchestrator.RoundEvent{At: at, Reason: why}, "Unreadable")
	t.items[i].ID += "/unreadable"
	t.items[i].Change.Attempt = max(t.attempt, 1)
}

// leave marks the open items at the end of an execution: they stay unfinished.
func (t *teller) leave() {
	for _, c := range t.calls {
		t.end(c.item, CallUnfinished, time.Time{})
	}
	t.calls = nil
}

// end ends a call, a timer or a task.
func (t *teller) end(n int, s CallStatus, at time.Time) {
	i := &t.items[n]
	i.EndedAt = at
	switch {
	case i.Call != nil:
		if i.Call.Status == CallAwaited && s == CallUnfinished {
			return
		}
		i.Call.Status = s
	case i.Timer != nil:
		i.Timer.Status = s
	case i.Task != nil:
		i.Task.Status = s
	}
}

// stateChanged adds items for changes of the run's state.
func (t *teller) stateChanged(e orchestrator.RoundEvent) bool {
	what, known := changes()[e.Kind]
	if !known {
		return t.ended(e)
	}
	n := t.change(e, what)
	switch e.Kind {
	case "ExecutionStalled", "ExecutionSuspended":
		t.pauses[e.Kind] = n
	case "ExecutionRecovered":
		t.endPause("ExecutionStalled", e.At)
	case "ExecutionResumed":
		t.endPause("ExecutionSuspended", e.At)
	case "ExecutionCanceled":
		t.interrupt(e.At)
	}
	return true
}

// changes maps the state changes in the rounds to their names in a timeline.
func changes() map[string]string {
	return map[string]string{"ExecutionStalled": "Stalled", "ExecutionRecovered": "Recovered", "ExecutionSuspended": "Suspended", "ExecutionResumed": "Resumed",
		"ExecutionTakenOver": "TakenOver", "ExecutionCanceled": "CancelRequested", "ExecutionGivenUp": "GivenUp", "ExecutionTimedOut": "TimedOut"}
}

func (t *teller) endPause(what string, at time.Time) {
	if n, ok := t.pauses[what]; ok {
		t.items[n].EndedAt = at
		delete(t.pauses, what)
	}
}

// ended processes the ends of executions.
func (t *teller) ended(e orchestrator.RoundEvent) bool {
	switch e.Kind {
	case "ExecutionFailed":
		if !t.failed { // every round between two attempts repeats the end of the first
			t.change(e, "AttemptFailed")
			t.endState(orchestrator.Failed, e)
		}
		t.failed = true
	case "ExecutionStopped":
		what := orchestrator.Terminated
		if e.Failure != nil && errors.Is(e.Failure, orchestrator.ErrCanceled) {
			what = orchestrator.Canceled
		}
		t.change(e, string(what))
		t.endState(what, e)
	case "ExecutionCompleted":
		t.endState(orchestrator.Completed, e)
	case "ExecutionContinuedAsNew":
		t.follows = true
	default:
		return false
	}
	t.leave()
	return true
}

func (t *teller) endState(s orchestrator.Status, e orchestrator.RoundEvent) {
	t.state.Status, t.state.EndedAt, t.state.UpdatedAt = s, e.At, e.At
	if e.Failure != nil {
		t.state.ErrorCode = e.Failure.Code
	}
}

func failureOf(f *orchestrator.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{f.Message, f.Code, f.Permanent}
}
