package orchestrator

// roundRoom is what a round takes, by estimate, before the next one gets the rest.
func roundRoom() room {
	return room{
		bytes:     8 << 20, // of JSON
		tasks:     90,      // operations on human tasks: a transaction has 100
		taskBytes: 2 << 20, // of human tasks, which go into the transaction beside the round
	}
}

// portion is how much of what was learned and decided the next round takes: all of it, as a rule. What is too much for one
// round is divided over several, in its order: at the border of two events, or, where one event led to more than a round
// holds, between two decisions. A replay takes the rounds of a divided turn together.
type portion struct {
	learned, decided int
	more             bool // the rest of what the last event led to follows
	whole            bool
}

// room is what is left of a portion.
type room struct{ bytes, tasks, taskBytes int }

// takes says whether something fits, and takes the room that it needs.
func (r *room) takes(bytes, tasks, taskBytes int) bool {
	r.bytes, r.tasks, r.taskBytes = r.bytes-bytes, r.tasks-tasks, r.taskBytes-taskBytes
	return r.bytes >= 0 && r.tasks >= 0 && r.taskBytes >= 0
}

// nextPortion is what the next round takes. share divides the room of a portion, for one that has turned out not to fit.
func (d *driver) nextPortion(share int) portion {
	left := d.rt.room
	left = room{left.bytes / share, left.tasks / share, left.taskBytes / share}
	var p, border portion
	for i := -1; i < len(d.learned); i++ { // before the first event is what is left of a divided turn
		if i >= 0 {
			border = p
			if !left.takes(d.learned[i].weight(), 0, 0) && p != (portion{}) {
				return d.marked(p)
			}
			p.learned++
		}
		for ; p.decided < d.due(i); p.decided++ {
			if left.takes(d.execution.cost(d.execution.decided[p.decided])) || p == (portion{}) {
				continue
			}
			if border == (portion{}) {
				border = p
			}
			return d.marked(border)
		}
	}
	p.whole = true
	return p
}

// marked says of a portion whether the rest of what its last event led to follows.
func (d *driver) marked(p portion) portion {
	p.more = p.decided < d.upTo(p.learned-1)
	return p
}

// due is how many of the decisions go with the events up to that place: all that they led to, but the one that ends the
// execution stands at the end of the last round, whatever was learned since.
func (d *driver) due(i int) int {
	n := d.upTo(i)
	if x := d.execution; x.ended && i < len(d.learned)-1 {
		n = min(n, len(x.decided)-1)
	}
	return n
}

// upTo is how many of the decisions were made up to the event of that place, -1 for before the first.
func (d *driver) upTo(i int) int {
	switch {
	case i == len(d.learned)-1:
		return len(d.execution.decided)
	case i < 0:
		return d.leftover
	default:
		return d.marks[i]
	}
}

// small says that it cannot be divided.
func (p portion) small() bool { return p.learned+p.decided <= 1 }

// take is the round of a portion. What follows a divided turn without its code leaves the rest of it for the code.
func (d *driver) take(p portion) round {
	r := round{Learned: d.learned[:p.learned], Decided: d.execution.decided[:p.decided], More: p.more}
	if n := len(d.rounds); d.codeless && n > 0 && d.rounds[n-1].More {
		r.More = true
	}
	return r
}

// leave takes what a round holds out of what is to be committed.
func (d *driver) leave(p portion) {
	d.leftover = d.upTo(p.learned-1) - p.decided
	d.learned, d.marks, d.execution.decided = d.learned[p.learned:], d.marks[p.learned:], d.execution.decided[p.decided:]
	for i := range d.marks {
		d.marks[i] -= p.decided
	}
	if p.whole {
		d.discard()
	}
}

// discard forgets what was learned and decided, and not committed.
func (d *driver) discard() {
	d.learned, d.marks, d.leftover, d.execution.decided = nil, nil, 0, nil
}

// knownAfter is how many calls are committed once the first decisions are.
func (x *execution) knownAfter(decided int) int {
	known := len(x.tasks)
	for _, e := range x.decided[decided:] {
		if callKind(e.Kind) != "" {
			known--
		}
	}
	return known
}

// weight is about how many bytes of JSON an event takes in its round.
func (e event) weight() int {
	const least = 400
	n := least + len(e.Name) + len(e.Child) + len(e.Reason) + 2*len(e.Carry) + 8*len(e.Tasks)
	if len(e.Payload) < spillFrom {
		n += len(e.Payload)
	}
	if e.Failure != nil {
		n += len(e.Failure.Message) + len(e.Failure.Stack) + len(e.Failure.Detail)
	}
	if h := e.Inherited; h != nil {
		for _, u := range h.Unread {
			n += u.weight()
		}
	}
	return n
}

// cost is what a decision needs of a portion's room.
func (x *execution) cost(e event) (bytes, ops, taskBytes int) {
	bytes = e.weight()
	switch e.Kind {
	case taskCreated:
		return bytes, 2, 2 * len(e.Payload)
	case callCanceled:
		if t := x.task(e.Task); t != nil && t.kind == humanTask {
			return bytes, 1, 0
		}
	case executionCompleted, executionFailed, executionStopped, executionContinued:
		return bytes, len(x.people), 0
	}
	return bytes, 0, 0
}

// turnAt gives the rounds from one on that hold the same turn, as one, and how many they are.
func turnAt(rounds []round) (turn round, n int) {
	turn, n = rounds[0], 1
	for ; turn.More && n < len(rounds); n++ {
		next := rounds[n]
		turn.Learned = append(turn.Learned[:len(turn.Learned):len(turn.Learned)], next.Learned...)
		turn.Decided = append(turn.Decided[:len(turn.Decided):len(turn.Decided)], next.Decided...)
		turn.More = next.More
	}
	return turn, n
}
