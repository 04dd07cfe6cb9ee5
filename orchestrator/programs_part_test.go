package orchestrator

import (
	"encoding/json"
	"fmt"
	"time"
)

// program is what one orchestration of a random tree runs: a body, in one execution after the other.
type program struct {
	Body *part `json:"body"`
	// Generations is how often the body runs, each time but the first because the one before continued as new.
	Generations int `json:"generations,omitempty"`
	// Cleanup is what runs, shielded, when the orchestration was canceled.
	Cleanup []*part `json:"cleanup,omitempty"`
}

// part is a step of a program. It gives a text, or fails.
type part struct {
	Op   op     `json:"op"`
	Site int    `json:"site"`           // unique in the whole tree
	Mode string `json:"mode,omitempty"` // a variant of the operation
	// Times counts what the operation repeats: failures, attempts, events.
	Times int           `json:"times,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	Kids  []*part       `json:"kids,omitempty"`
	// Local says of an activity that it is a local one.
	Local bool     `json:"local,omitempty"`
	Child *program `json:"child,omitempty"`
}

// op is what a part does.
type op string

const (
	opActivity   op = "activity"   // Mode says how it goes: see the modes below
	opSequence   op = "sequence"   // the kids, one after the other, up to the first that fails
	opFanOut     op = "fan-out"    // the kids, which are activities, all at once, and All
	opCoroutines op = "coroutines" // a coroutine for each kid, and All
	opTimer      op = "timer"      // a timer of For
	opFaster     op = "faster"     // Any of a timer of For, which is long, and the kid, an activity, which wins
	opSlower     op = "slower"     // Any of what Mode says, which never ends, and a timer of For, which wins
	opEvents     op = "events"     // Times events in their order; Mode is early or asked or raced
	opNotes      op = "notes"      // Times events that the orchestration sends to itself, in their order
	opChannel    op = "channel"    // the kids, one after the other in a coroutine, whose results come through a channel
	opChild      op = "child"      // an orchestration that is awaited; Times is how many attempts its call allows; Mode named gives it an id
	opCancel     op = "cancel"     // Cancel of what Mode says, which never ends
	opValue      op = "value"      // a side effect and a UUID, which have to be the same in every replay
	opPublish    op = "publish"    // a publication; Mode keyed names its key
	opStart      op = "start"      // a detached start; Mode named gives it an id
	opTry        op = "try"        // the kid; its failure is caught
	opFail       op = "fail"       // the code fails until Times executions have failed, 0: in all
	opStop       op = "stop"       // the orchestration waits until somebody does to the tree what Mode says
	opSaga       op = "saga"       // the last kid; when it fails, what the others did, and all else, is taken back
	opRedo       op = "redo"       // the kid, an activity, which is taken back and done again
)

// The modes of an activity.
const (
	modeOK     = "ok"
	modeFlaky  = "flaky"  // the first Times attempts of each call fail, and the retry policy allows one more
	modeTired  = "tired"  // all Times attempts that the retry policy allows fail
	modeDoomed = "doomed" // it fails, and no attempt can help
	modeUntil  = "until"  // it fails in the first Times executions that call it
)

// The modes of what never ends, and how others stop a tree.
const (
	modeActivity  = "activity"
	modeTimer     = "timer"
	modeEvent     = "event"
	modeChild     = "child"
	modeAbandoned = "abandoned" // a child that ends on its own, when its caller may be gone
	modeCanceled  = "canceled"
	modeTerminate = "terminated"
)

const (
	modeEarly  = "early" // all events are sent before the start, in any order with it
	modeAsked  = "asked" // the first event is sent when the orchestration asks for it, each other one after the one before it
	modeRaced  = "raced" // asked, and each wait has a long timer beside it
	modeKeyed  = "keyed"
	modeNamed  = "named"
	longestFor = 60 * 24 * time.Hour
)

// String is the program as JSON.
func (p *program) String() string {
	data, err := json.Marshal(p)
	if err != nil {
		return err.Error() // unreachable: everything in it can be marshalled
	}
	return string(data)
}

func (p *program) generations() int { return max(1, p.Generations) }

// walk visits all parts, those of other orchestrations included. often is how many times the generations of the programs
// around a part repeat it.
func (p *program) walk(often int, visit func(n *part, often int)) {
	often *= p.generations()
	var step func(n *part)
	step = func(n *part) {
		visit(n, often)
		for _, k := range n.Kids {
			step(k)
		}
		if n.Child != nil {
			n.Child.walk(often, visit)
		}
	}
	step(p.Body)
	for _, n := range p.Cleanup {
		step(n)
	}
}

// has says whether there is such a part.
func (p *program) has(is func(n *part) bool) bool {
	found := false
	p.walk(1, func(n *part, _ int) { found = found || is(n) })
	return found
}

// place is where in a tree of orchestrations something is done.
type place struct {
	Path       string `json:"path,omitempty"`
	Generation int    `json:"generation,omitempty"`
}

// key names what the part does at a place: the same in every attempt.
func (p place) key(n *part) string {
	if p.Generation > 0 {
		return fmt.Sprintf("%sg%d.%d", p.Path, p.Generation, n.Site)
	}
	return fmt.Sprintf("%s%d", p.Path, n.Site)
}

// below is the place of the orchestration that the part calls.
func (p place) below(n *part) place { return place{Path: p.key(n) + "/"} }
