package orchestrator

import (
	"encoding/json"
	"slices"
)

// priorResults holds the results of calls, and the side effects, of the attempt before. A result serves a call of the
// same kind and name with the same input; each result serves one call, in order. So the code may change between the
// attempts, and no call that completed is made again. The zero value is empty.
type priorResults struct {
	calls       map[callKey][]Call
	sideEffects map[string][]json.RawMessage
}

type callKey struct {
	kind        CallKind
	name, input string
}

// newPriorResults collects the results of an attempt, without the calls that were undone and without their undos.
func newPriorResults(id string, before storedExecution) priorResults {
	m := priorResults{map[callKey][]Call{}, map[string][]json.RawMessage{}}
	for _, r := range before.rounds {
		for _, e := range r.Decided {
			if e.Kind == sideEffectRecorded {
				m.sideEffects[e.Name] = append(m.sideEffects[e.Name], e.Payload)
			}
		}
	}
	for _, c := range summarize(id, before).Calls {
		if c.Output == nil || c.Undone || c.Undoes > 0 {
			continue
		}
		hash := c.spilled
		if hash == "" {
			hash = hashOf(c.Input)
		}
		key := callKey{c.Kind, c.Name, hash}
		m.calls[key] = append(m.calls[key], c)
	}
	return m
}

// key identifies equal calls of two attempts.
func (t *task) key() callKey { return callKey{t.kind.call(), t.name, hashOf(t.input)} }

// take returns the next result for a call, if there is one.
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

// remove removes a result that a call has been given already.
func (m priorResults) remove(t *task, from origin) {
	key := t.key()
	calls := m.calls[key]
	i := slices.IndexFunc(calls, func(c Call) bool {
		return c.origin.Execution == from.Execution && c.origin.Task == from.Task
	})
	switch {
	case i == 0: // as a rule
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

// reusePrior answers the calls for which the attempt before has a result, in the order in which they were answered
// then, so that races have the same winners. Each answer can lead to the next call.
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
		if len(d.matched) == 0 {
			return nil
		}
		first := 0
		for i, k := range d.matched {
			if k.call.origin.EndedAt < d.matched[first].call.origin.EndedAt {
				first = i
			}
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

// removeReused removes the results that a replayed turn has used.
func (d *driver) removeReused(r round) {
	for _, e := range r.Learned {
		if e.reused() {
			d.prior.remove(d.execution.tasks[e.Task-1], *e.Origin)
		}
	}
}
