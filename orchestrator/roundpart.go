package orchestrator

// defaultRoundBudget estimates the capacity of one round; the next round gets the rest.
func defaultRoundBudget() roundBudget {
	return roundBudget{
		bytes:     8 << 20, // of JSON
		tasks:     90,      // operations on human tasks: a transaction has 100 at most
		taskBytes: 2 << 20, // of human tasks, which are rows of the same transaction
	}
}

// roundPart is the part of the learned events and decisions that goes into the next round: usually all of them. An
// excess is divided over several rounds, in order. The border is between two events or, when the decisions of one
// event exceed a round, between two decisions. A replay joins the rounds of a divided turn.
type roundPart struct {
	learned, decided int
	more             bool // further decisions of the last event follow in the next round
	// whole is set if no event or decision remains for another round.
	whole bool
}

// roundBudget is the remaining capacity of a part.
type roundBudget struct{ bytes, tasks, taskBytes int }

// spend takes an amount from the budget, and reports whether the budget sufficed.
func (r *roundBudget) spend(bytes, tasks, taskBytes int) bool {
	r.bytes, r.tasks, r.taskBytes = r.bytes-bytes, r.tasks-tasks, r.taskBytes-taskBytes
	return r.bytes >= 0 && r.tasks >= 0 && r.taskBytes >= 0
}

// nextPart returns the part for the next round. share divides the budget after a part has turned out not to fit.
func (d *driver) nextPart(share int) roundPart {
	left := d.rt.roundBudget
	left = roundBudget{left.bytes / share, left.tasks / share, left.taskBytes / share}
	var p, border roundPart
	for i := -1; i < len(d.learned); i++ { // -1 is for the decisions left over from a divided turn
		if i >= 0 {
			border = p
			if !left.spend(d.learned[i].size(), 0, 0) && p != (roundPart{}) {
				return d.withMore(p)
			}
			p.learned++
		}
		for ; p.decided < d.decisionsWith(i); p.decided++ {
			if left.spend(d.execution.cost(d.execution.decided[p.decided])) || p == (roundPart{}) {
				continue
			}
			if border == (roundPart{}) {
				border = p
			}
			return d.withMore(border)
		}
	}
	p.whole = true
	return p
}

// withMore sets more: whether further decisions of the part's last event follow.
func (d *driver) withMore(p roundPart) roundPart {
	p.more = p.decided < d.decisionsUpTo(p.learned-1)
	return p
}

// decisionsWith returns how many decisions go into a round that ends with the event at index i: all decisions of the
// events so far. The decision that ends the execution is an exception: it comes last in the last round, even if later
// events were learned.
func (d *driver) decisionsWith(i int) int {
	n := d.decisionsUpTo(i)
	if x := d.execution; x.ended && i < len(d.learned)-1 {
		n = min(n, len(x.decided)-1)
	}
	return n
}

// decisionsUpTo returns how many decisions were made up to the event at index i; -1 is before the first event.
func (d *driver) decisionsUpTo(i int) int {
	switch {
	case i == len(d.learned)-1:
		return len(d.execution.decided)
	case i < 0:
		return d.leftoverDecisions
	default:
		return d.decisionsAfter[i]
	}
}

func (p roundPart) indivisible() bool { return p.learned+p.decided <= 1 }

// buildRound returns the round for a part. When a driver without code continues after a divided turn, the rest of that
// turn is left for a driver with code.
func (d *driver) buildRound(p roundPart) round {
	r := round{Learned: d.learned[:p.learned:p.learned], Decided: d.execution.decided[:p.decided:p.decided], More: p.more}
	if n := len(d.rounds); d.codeless && n > 0 && d.rounds[n-1].More {
		r.More = true
	}
	return r
}

// dropCommitted removes the events and decisions of a committed round from the uncommitted ones.
func (d *driver) dropCommitted(p roundPart) {
	d.leftoverDecisions = d.decisionsUpTo(p.learned-1) - p.decided
	room := d.decisionsAfter[:0]
	d.learned, d.decisionsAfter, d.execution.decided = d.learned[p.learned:], d.decisionsAfter[p.learned:], d.execution.decided[p.decided:]
	for i := range d.decisionsAfter {
		d.decisionsAfter[i] -= p.decided
	}
	if p.whole {
		d.decisionsAfter, d.leftoverDecisions = room, 0
	}
}

// appendEvent appends an event that a round will keep. Several rounds share an array; each has its own part of it.
func appendEvent(events []event, e event) []event {
	const together = 4
	if cap(events) == 0 {
		events = make([]event, 0, together)
	}
	return append(events, e)
}

// dropUncommitted discards all events and decisions that are not committed.
func (d *driver) dropUncommitted() {
	d.learned, d.decisionsAfter, d.leftoverDecisions, d.execution.decided = nil, nil, 0, nil
}

// callsAfter returns how many calls are committed once this many decisions are.
func (x *execution) callsAfter(decided int) int {
	known := len(x.tasks)
	for _, e := range x.decided[decided:] {
		if callKind(e.Kind) != "" {
			known--
		}
	}
	return known
}

// size estimates the bytes of JSON of an event in its round.
func (e event) size() int {
	const least = 400
	to := e.target()
	n := least + len(e.Name) + len(to.Child) + len(e.signal().Reason) + 2*len(e.start().Carry) + 8*len(to.Tasks)
	if len(e.Payload) < spillFrom {
		n += len(e.Payload)
	}
	if e.Failure != nil {
		n += len(e.Failure.Message) + len(e.Failure.Stack) + len(e.Failure.Detail)
	}
	if h := e.Inherited; h != nil {
		for _, u := range h.Unread {
			n += u.size()
		}
	}
	return n
}

// cost returns the share of a round's budget that a decision takes.
func (x *execution) cost(e event) (bytes, ops, taskBytes int) {
	bytes = e.size()
	switch e.Kind {
	case taskCreated:
		return bytes, 2, 2 * len(e.Payload)
	case callCanceled:
		if t := x.task(e.Task); t != nil && t.kind == humanTask {
			return bytes, 1, 0
		}
	case executionCompleted, executionFailed, executionStopped, executionContinued:
		return bytes, len(x.humanTasks), 0
	}
	return bytes, 0, 0
}

// mergeTurn joins the rounds that hold the first turn of rounds, and returns their number.
func mergeTurn(rounds []round) (turn round, n int) {
	turn, n = rounds[0], 1
	for ; turn.More && n < len(rounds); n++ {
		next := rounds[n]
		turn.Learned = append(turn.Learned[:len(turn.Learned):len(turn.Learned)], next.Learned...)
		turn.Decided = append(turn.Decided[:len(turn.Decided):len(turn.Decided)], next.Decided...)
		turn.More = next.More
	}
	return turn, n
}
