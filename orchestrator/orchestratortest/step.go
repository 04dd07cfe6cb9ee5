package orchestratortest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// Commands about attempts.
const (
	commandRetry     = "retry"
	commandRewind    = "rewind"
	commandRedeliver = "redeliver"
)

// commands lists the commands of a Step.
func commands() []string {
	return []string{"suspend", "resume", "cancel", "terminate", commandRetry, commandRewind, commandRedeliver}
}

// schedule makes the simulation check steps when they are due.
func (w *world) schedule() {
	for _, s := range w.steps {
		time.AfterFunc(s.At, w.notify)
	}
}

// step does the first possible step, and reports whether it found one.
func (w *world) step(ctx context.Context) (bool, error) {
	var all []orchestrator.Outcome
	for i, s := range w.steps {
		if w.done[i] || time.Since(w.begin) < s.At {
			continue
		}
		if w.repeats[i] {
			s.At = 0 // when it is waited for
		}
		if all == nil {
			var err error
			if all, err = w.tree(ctx); err != nil {
				return false, err
			}
		}
		for _, out := range all {
			if !w.fits(s, out) {
				continue
			}
			if s.Task != "" {
				ref, err := w.openTask(ctx, s.Task, out)
				if err != nil {
					return false, err
				}
				if ref.ID == "" {
					continue
				}
				w.done[i] = true
				return true, w.answer(ctx, s, ref)
			}
			w.done[i] = true
			return true, w.do(ctx, i, s, out)
		}
	}
	return false, nil
}

// fits reports whether a step whose time has come applies to the orchestration in its current state.
func (w *world) fits(s Step, out orchestrator.Outcome) bool {
	if s.To == "" && out.ID != id || s.To != "" && (out.ID == id || out.Orchestrator != s.To) {
		return false
	}
	switch {
	case s.Command == commandRetry:
		return out.Status == orchestrator.Retrying && w.message.acknowledged.Load()
	case s.Command == commandRewind:
		return out.Status == orchestrator.Failed && w.message.acknowledged.Load()
	case s.Command == commandRedeliver:
		return out.Status != orchestrator.Retrying && w.message.acknowledged.Load()
	case s.To != "" && out.Ended():
		return false
	case s.At > 0:
		return true
	}
	return !out.Ended() && out.Status != orchestrator.Retrying && (s.Event == "" || w.waits(out, s.Event))
}

func (w *world) do(ctx context.Context, i int, s Step, out orchestrator.Outcome) error {
	w.stopped = w.stopped || out.ID == id && (s.Command == "cancel" || s.Command == "terminate")
	switch s.Command {
	case commandRetry:
		w.sendStart(out.Execution)
		return nil
	case commandRedeliver:
		after := out.Execution
		if !out.Ended() {
			after-- // it continues with this one
		}
		w.sendStart(after)
		return nil
	case commandRewind:
		w.retried = true
		_, err := w.outside.Rewind(ctx, out.ID, fmt.Sprintf("step-%d", i+1))
		return err
	case "suspend":
		return w.outside.Suspend(ctx, out.ID, s.Reason)
	case "resume":
		return w.outside.Resume(ctx, out.ID, s.Reason)
	case "cancel":
		return w.outside.Cancel(ctx, out.ID, s.Reason)
	case "terminate":
		return w.outside.Terminate(ctx, out.ID, s.Reason)
	}
	w.raised[raisedEvent{out.ID, out.Execution, strings.ToLower(s.Event)}]++
	return w.outside.Raise(ctx, out.ID, s.Event, s.Data, fmt.Sprintf("step-%d", i+1))
}

// openTask returns the first open task of that name; the zero Ref for none.
func (w *world) openTask(ctx context.Context, name string, out orchestrator.Outcome) (tasks.Ref, error) {
	for _, c := range out.Calls {
		if c.Kind != orchestrator.TaskCall || c.Name != name || !c.EndedAt.IsZero() {
			continue
		}
		ref := tasks.Ref{Orchestration: out.ID, ID: c.TaskID()}
		t, err := w.outside.Tasks().Get(ctx, ref)
		if err != nil {
			return tasks.Ref{}, err
		}
		if t.Open() {
			return ref, nil
		}
	}
	return tasks.Ref{}, nil
}

// answer completes a task.
func (w *world) answer(ctx context.Context, s Step, ref tasks.Ref) error {
	said, err := json.Marshal(s.Data)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	if _, err := w.outside.Tasks().Complete(ctx, ref, tasks.Person{ID: cmp.Or(s.By, "somebody"), All: true}, said, "", ""); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}

// stepsToCome reports whether a step will happen by time alone.
func (w *world) stepsToCome() bool {
	for i, s := range w.steps {
		if !w.done[i] && time.Since(w.begin) < s.At {
			return true
		}
	}
	return false
}

// missed returns the steps that never happened, although no failure was injected.
func (w *world) missed() []Step {
	var out []Step
	for i, s := range w.steps {
		if !w.done[i] && !w.failing.hasHappened() {
			out = append(out, s)
		}
	}
	return out
}
