package orchestrator

import (
	"encoding/json"
	"slices"
)

// priorResults holds what the attempt before has left for the one that follows it: results of calls, and side effects. A result
// serves the call of the same kind and name with the same input, each result once and in order; so the code may change
// between the two, and no call that completed is made again. The zero value holds nothing.
type priorResults struct {
	calls       map[callKey][]Call
	sideEffects map[string][]json.RawMessage
}

type callKey struct {
	kind        CallKind
	name, input string
}

// newPriorResults leaves out what was taken back, and what took it back.
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

// key is what makes a call the same as one of the attempt before.
func (t *task) key() callKey { return callKey{t.kind.call(), t.name, hashOf(t.input)} }

// take gives the next result for a call, if there is one.
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

// remove takes the result out that a call has got already.
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

// matchedResult is one that a call is about to get.
type matchedResult struct {
	task *task
	call Call
}

// reusePrior answers calls that the attempt before has made already, in the order in which they were answered then, so that
// races have the same winners. Each answer can lead to the next call.
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

// removeReused takes what a replayed round has reused out of the memo.
func (d *driver) removeReused(r round) {
	for _, e := range r.Learned {
		if e.reused() {
			d.prior.remove(d.execution.tasks[e.Task-1], *e.Origin)
		}
	}
}
