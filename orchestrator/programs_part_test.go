package orchestrator

import (
	"encoding/json"
	"fmt"
	"time"
)

// program is the program of one orchestration of a random tree: a body, in one execution after the other.
type program struct {
	Body *part `json:"body"`
	// Generations is how often the body runs; each run but the first follows a continue as new.
	Generations int `json:"generations,omitempty"`
	// Cleanup runs, shielded, when the orchestration was canceled.
	Cleanup []*part `json:"cleanup,omitempty"`
}

// part is a step of a program. It returns a text, or fails.
type part struct {
	Op   op     `json:"op"`
	Site int    `json:"site"`           // unique in the whole tree
	Mode string `json:"mode,omitempty"` // a variant of the operation
	// Times counts the repetitions of the operation: failures, attempts, events.
	Times int           `json:"times,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	Kids  []*part       `json:"kids,omitempty"`
	// Local marks a local activity.
	Local bool     `json:"local,omitempty"`
	Child *program `json:"child,omitempty"`
}

// op is the operation of a part.
type op string

const (
	opActivity   op = "activity"   // Mode is its behaviour: see the modes below
	opSequence   op = "sequence"   // the kids, one after the other, up to the first that fails
	opFanOut     op = "fan-out"    // the kids, which are activities, all at once, and All
	opCoroutines op = "coroutines" // a coroutine for each kid, and All
	opTimer      op = "timer"      // a timer of For
	opFaster     op = "faster"     // Any of a timer of For, which is long, and the kid, an activity, which wins
	opSlower     op = "slower"     // Any of the wait in Mode, which never ends, and a timer of For, which wins
	opEvents     op = "events"     // Times events in their order; Mode is early or asked or raced
	opNotes      op = "notes"      // Times events that the orchestration sends to itself, in their order
	opChannel    op = "channel"    // the kids, one after the other in a coroutine, whose results come through a channel
	opChild      op = "child"      // an orchestration that is awaited; Times is how many attempts its call allows; Mode named gives it an id
	opCancel     op = "cancel"     // Cancel of the wait in Mode, which never ends
	opValue      op = "value"      // a side effect and a UUID, which must be the same in every replay
	opPublish    op = "publish"    // a publication; Mode keyed names its key
	opStart      op = "start"      // a detached start; Mode named gives it an id
	opTry        op = "try"        // the kid; its failure is caught
	opFail       op = "fail"       // the code fails until Times executions have failed, 0: in all
	opStop       op = "stop"       // the orchestration waits until others stop the tree as in Mode
	opSaga       op = "saga"       // the last kid; when it fails, the calls of the others, and all else, are undone
	opRedo       op = "redo"       // the kid, an activity, which is undone and repeated
)

// The modes of an activity.
const (
	modeOK     = "ok"
	modeFlaky  = "flaky"  // the first Times attempts of each call fail, and the retry policy allows one more
	modeTired  = "tired"  // all Times attempts that the retry policy allows fail
	modeDoomed = "doomed" // it fails, and no attempt can help
	modeUntil  = "until"  // it fails in the first Times executions that call it
)

// The modes of endless waits, and of how others stop a tree.
const (
	modeActivity  = "activity"
	modeTimer     = "timer"
	modeEvent     = "event"
	modeChild     = "child"
	modeAbandoned = "abandoned" // a child that ends on its own, perhaps after its caller
	modeCanceled  = "canceled"
	modeTerminate = "terminated"
)

const (
	modeEarly  = "early" // all events are sent before the start, in any order with it
	modeAsked  = "asked" // the first event is sent on request of the orchestration, each other one after the previous one
	modeRaced  = "raced" // asked, and each wait has a long timer in addition
	modeKeyed  = "keyed"
	modeNamed  = "named"
	longestFor = 60 * 24 * time.Hour
)

// String returns the program as JSON.
func (p *program) String() string {
	data, err := json.Marshal(p)
	if err != nil {
		return err.Error() // unreachable: everything in it can be marshalled
	}
	return string(data)
}

func (p *program) generations() int { return max(1, p.Generations) }

// walk visits all parts, those of other orchestrations included. often is how many times the generations of the
// programs around a part repeat it.
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

// has reports whether the program has such a part.
func (p *program) has(is func(n *part) bool) bool {
	found := false
	p.walk(1, func(n *part, _ int) { found = found || is(n) })
	return found
}

// place is the place of an action in a tree of orchestrations.
type place struct {
	Path       string `json:"path,omitempty"`
	Generation int    `json:"generation,omitempty"`
}

// key names the part's action at a place: the same in every attempt.
func (p place) key(n *part) string {
	if p.Generation > 0 {
		return fmt.Sprintf("%sg%d.%d", p.Path, p.Generation, n.Site)
	}
	return fmt.Sprintf("%s%d", p.Path, n.Site)
}

// below returns the place of the orchestration that the part calls.
func (p place) below(n *part) place { return place{Path: p.key(n) + "/"} }
