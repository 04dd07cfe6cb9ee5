package orchestrator

// memo holds the results of the execution before, which failed, for the one that follows it. A result serves the call
// of the same kind and name with the same input, each result once and in order; so the code may change between the two,
// and no call that completed is made again.
type memo map[memoKey][]Call

type memoKey struct {
	kind        CallKind
	name, input string
}

func newMemo(before Outcome) memo {
	m := memo{}
	for _, c := range before.Calls {
		if c.Output == nil {
			continue
		}
		hash := c.spilled
		if hash == "" {
			hash = hashOf(c.Input)
		}
		key := memoKey{c.Kind, c.Name, hash}
		m[key] = append(m[key], c)
	}
	return m
}

// take gives the next result for a call, if there is one.
func (m memo) take(t *task) (Call, bool) {
	if len(m) == 0 {
		return Call{}, false
	}
	key := memoKey{t.kind.call(), t.name, hashOf(t.input)}
	calls := m[key]
	if len(calls) == 0 {
		return Call{}, false
	}
	m[key] = calls[1:]
	return calls[0], true
}
