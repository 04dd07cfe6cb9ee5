package orchestrator

import (
	"encoding/json"
	"slices"
)

// priorResults holds the results of calls, and the side effects, of the previous attempts. A result serves a call of
// the same kind and name with the same input; each result serves one call, in order. So the code may change between
// the attempts, and no completed call is made again. The zero value is empty.
type priorResults struct {
	calls       map[callKey][]Call
	sideEffects map[string][]json.RawMessage
}

type callKey struct {
	kind        CallKind
	name, input string
}

// newPriorResults collects the results of attempts, without the calls that were undone and without their undos. The
// results of the latest attempt come first, including the ones it took over, and then those that only earlier attempts
// had.
func newPriorResults(id string, attempts []storedExecution) priorResults {
	m := priorResults{map[callKey][]Call{}, map[string][]json.RawMessage{}}
	type place struct{ execution, task int }
	seen := map[place]bool{} // also of calls that were undone: an undo counts for all attempts that took the result over
	for _, g := range slices.Backward(attempts) {
		m.addSideEffects(g)
		for _, c := range summarize(id, g).Calls {
			at := place{c.origin.Execution, c.origin.Task}
			if c.Output == nil || c.Undoes > 0 || seen[at] {
				continue
			}
			if seen[at] = true; c.Undone {
				continue
			}
			hash := c.spilled
			if hash == "" {
				hash = hashOf(c.Input)
			}
			key := callKey{c.Kind, c.Name, hash}
			m.calls[key] = append(m.calls[key], c)
		}
	}
	return m
}

// addSideEffects adds the side effects of an attempt that later attempts did not reach.
func (m priorResults) addSideEffects(g storedExecution) {
	found := map[string][]json.RawMessage{}
	for _, r := range g.rounds {
		for _, e := range r.Decided {
			if e.Kind == sideEffectRecorded {
				found[e.Name] = append(found[e.Name], e.Payload)
			}
		}
	}
	for name, values := range found {
		if known := len(m.sideEffects[name]); known < len(values) {
			m.sideEffects[name] = append(m.sideEffects[name], values[known:]...)
		}
	}
}

// key identifies equal calls of two attempts.
func (t *task) key() callKey { return callKey{t.kind.call(), t.name, hashOf(t.input)} }

// take returns the next result for a call, if one is left.
func (m priorResults) take(t *task) (Call, bool) {
	if len(m.calls) == 0 || t.undoes > 0 {
		return Call{}, false
	}
	key := t.key()
	calls := m.calls[key]
	if len(calls) == 0 {
		return Call{}, false
	}
	m.calls[key] = calls[1:]
	return calls[0], true
}

// remove removes a result that a call has used already.
func (m priorResults) remove(t *task, from origin) {
	key := t.key()
	calls := m.calls[key]
	i := slices.IndexFunc(calls, func(c Call) bool {
		return c.origin.Execution == from.Execution && c.origin.Task == from.Task
	})
	switch {
	case i == 0: // the usual case
		m.calls[key] = calls[1:]
	case i > 0:
		m.calls[key] = slices.Delete(slices.Clone(calls), i, i+1)
	}
}

// matchedResult is a prior result and the call that is about to get it.
type matchedResult struct {
	task *task
	call Call
}

// reusePrior repeats the events of previous attempts, in the order in which they were learned. It answers the calls
// for which they have a result, and lets the code see their external events. So races have the same winners. Each
// answer can lead to the next call. The remaining external events become visible when no call with a result is left.
func (d *driver) reusePrior() error {
	for {
		for ; d.lookedUp < len(d.execution.tasks); d.lookedUp++ {
			t := d.execution.tasks[d.lookedUp]
			if t.done {
				continue
			}
			if c, ok := d.prior.take(t); ok {
				d.matched = append(d.matched, matchedResult{t, c})
			}
		}
		first := d.earliestMatch()
		if d.releasesEvent(first) {
			if err := d.learnRelease(); err != nil {
				return err
			}
			continue
		}
		if first < 0 {
			return nil
		}
		k := d.matched[first]
		d.matched = slices.Delete(d.matched, first, first+1)
		if k.task.done {
			continue
		}
		from := k.call.origin
		if err := d.learn(event{Kind: k.task.kind.completion(), Task: k.task.number, Payload: k.call.Output, Origin: &from}); err != nil {
			return err
		}
	}
}

// earliestMatch returns the index of the matched result that was learned first; -1 without any.
func (d *driver) earliestMatch() int {
	first := -1
	for i, k := range d.matched {
		if first < 0 || k.call.origin.EndedAt < d.matched[first].call.origin.EndedAt {
			first = i
		}
	}
	return first
}

// releasesEvent reports whether the next event to repeat is an external event, and not the matched result of this
// index.
func (d *driver) releasesEvent(first int) bool {
	x := d.execution
	if len(x.withheld) == 0 || x.suspended || x.held || x.stalled || x.ended {
		return false
	}
	if first >= 0 {
		return x.withheld[0].At < d.matched[first].call.origin.EndedAt
	}
	return !d.repeatsOne(x.withheld[0].At)
}

// repeatsOne reports whether an open call seems to repeat one that completed before that time, with another input. An
// event after the completed call has to wait for the open one, too. If nothing but events can arrive, they become
// visible nevertheless (releaseAtRest).
func (d *driver) repeatsOne(at int64) bool {
	for _, t := range d.execution.tasks {
		if !t.isOpenWork() {
			continue
		}
		for key, calls := range d.prior.calls {
			if key.kind == t.kind.call() && key.name == t.name && len(calls) > 0 && calls[0].origin.EndedAt < at {
				return true
			}
		}
	}
	return false
}

// releaseAtRest lets the code see the next event of the previous attempts when the orchestration would otherwise wait,
// and reports whether one was left.
func (d *driver) releaseAtRest() (bool, error) {
	x := d.execution
	if len(x.withheld) == 0 || x.suspended || x.held || x.stalled || x.ended || d.codeless {
		return false, nil
	}
	return true, d.learnRelease()
}

// learnRelease lets the code see the next event of the previous attempts. Consecutive releases are merged.
func (d *driver) learnRelease() error {
	if n := len(d.learned); n > 0 && d.learned[n-1].Kind == eventsReleased {
		d.learned[n-1].Attempt = max(d.learned[n-1].Attempt, 1) + 1
		err := d.execution.release(1)
		d.decisionsAfter[n-1] = len(d.execution.decided)
		return err
	}
	return d.learn(event{Kind: eventsReleased})
}

// removeReused removes the results that a replayed turn has used.
func (d *driver) removeReused(r round) {
	for _, e := range r.Learned {
		if e.reused() {
			d.prior.remove(d.execution.tasks[e.Task-1], *e.Origin)
		}
	}
}
