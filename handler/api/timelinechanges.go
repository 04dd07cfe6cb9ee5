package api

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// maxChanged is of how many orchestrations a timeline shows the changes, maxRoundPages how much it reads of each.
	maxChanged    = 20
	maxRoundPages = 3
	roundPage     = 1000
)

// changeItem is how the state of an orchestration changed.
type changeItem struct {
	OrchestrationID string `json:"orchestrationId"`
	Execution       int    `json:"execution"`
	// Attempt is the attempt at its work that it is about, from 1.
	Attempt int `json:"attempt"`
	// What is AttemptFailed, AttemptBegan, Stalled, Recovered, Suspended, Resumed, TakenOver, CancelRequested, Canceled,
	// Terminated or GivenUp.
	What   string       `json:"what"`
	Reason string       `json:"reason,omitempty"`
	Error  *failureItem `json:"error,omitempty"`
}

// changesOf are the changes of an orchestration since it began from outside; more says that there may be others, as behind
// what cannot be read. One that was purged meanwhile has none.
func (a *api) changesOf(ctx context.Context, engine, id string) (items []timelineItem, more bool, err error) {
	t := changeTeller{engine: engine, id: id}
	place := ""
	for range maxRoundPages {
		rounds, next, err := a.runtime.Rounds(ctx, id, roundPage, place)
		switch {
		case errors.Is(err, orchestrator.ErrNotFound):
			return nil, false, nil
		case errors.Is(err, orchestrator.ErrCorrupt), errors.Is(err, orchestrator.ErrNewerSchema):
			a.log.Warn("a timeline leaves out what cannot be read", "orchestration", id, "reason", err.Error())
			return t.items, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, r := range rounds {
			t.tell(r)
		}
		if place = next; place == "" {
			return t.items, false, nil
		}
	}
	return t.items, true, nil
}

// changeTeller turns rounds into changes.
type changeTeller struct {
	engine, id string
	items      []timelineItem
	execution  int
	attempt    int
	failed     bool // the attempt has
	follows    bool // what begins next does so by itself
}

func (t *changeTeller) tell(r orchestrator.Round) {
	t.execution = r.Execution
	for _, e := range r.Learned {
		t.learned(e)
	}
	for _, e := range r.Decided {
		t.decided(e)
	}
}

func (t *changeTeller) add(e orchestrator.RoundEvent, what string) {
	t.items = append(t.items, timelineItem{At: e.At, Kind: "change", Engine: t.engine, Change: &changeItem{
		OrchestrationID: t.id, Execution: t.execution, Attempt: t.attempt, What: what, Reason: e.Reason, Error: failureItemOf(e.Failure),
	}})
}

func (t *changeTeller) learned(e orchestrator.RoundEvent) {
	switch e.Kind {
	case "ExecutionStarted":
		t.began(e)
	case "ExecutionStalled":
		t.add(e, "Stalled")
	case "ExecutionRecovered":
		t.add(e, "Recovered")
	case "ExecutionSuspended":
		t.add(e, "Suspended")
	case "ExecutionResumed":
		t.add(e, "Resumed")
	case "ExecutionTakenOver":
		t.add(e, "TakenOver")
	case "ExecutionCanceled":
		t.add(e, "CancelRequested")
	case "ExecutionGivenUp":
		t.add(e, "GivenUp")
	}
}

// began takes note of an execution: it is another attempt, goes on from the one before, or is a run of its own, of which
// those before are no part.
func (t *changeTeller) began(e orchestrator.RoundEvent) {
	again := t.failed && e.Attempt > 1
	if !again && !t.follows {
		t.items = nil
	}
	t.attempt = max(e.Attempt, 1)
	t.failed, t.follows = false, false
	if again {
		e.Failure, e.Reason = nil, ""
		t.add(e, "AttemptBegan")
	}
}

func (t *changeTeller) decided(e orchestrator.RoundEvent) {
	switch e.Kind {
	case "ExecutionFailed":
		if !t.failed { // every round between two attempts repeats the end of the first
			t.add(e, "AttemptFailed")
		}
		t.failed = true
	case "ExecutionStopped":
		what := "Terminated"
		if e.Failure != nil && errors.Is(e.Failure, orchestrator.ErrCanceled) {
			what = "Canceled"
		}
		t.add(e, what)
	case "ExecutionContinuedAsNew":
		t.follows = true
	}
}
