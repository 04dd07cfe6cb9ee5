package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"
)

// execution is one generation of an orchestration in memory: its suspended coroutines and what they know. It does no
// I/O: events go in, decisions come out, and the same events give the same decisions.
type execution struct {
	id            string
	number        int
	base          int // the execution that began anew: this one, or an earlier attempt whose results it keeps
	correlationID string
	name          string          // of its orchestrator
	orchestrator  AnyOrchestrator // nil where its code takes no part
	log           *slog.Logger
	now           func() time.Time

	tasks           []*task      // that are decisions, by number from 1
	coroutines      []*coroutine // some of which have ended
	endedCoroutines int          // of them
	spawned         int
	scheduler       scheduler
	receivers       receivers
	current         *coroutine // that runs
	doneCount       int        // of tasks that are done

	clock     time.Time
	last      int64 // time of the latest event, microseconds
	replaying bool
	recorded  []event   // while replaying: what the turn decided
	more      bool      // and the rest of it is not committed
	decided   []event   // what the round in the making decides
	decisions int       // all of them, the committed ones included
	partial   bool      // the round in the making leaves some of them to the next
	ended     bool      // the last of them ends the execution
	continues bool      // and another follows by itself
	end       event     // that decision
	closing   bool      // its fibers are being ended
	watchdog  *watchdog // nil for none

	first             int      // the execution that began from outside: this one, or one before it
	willRetry         bool     // whoever began it brings it again when it fails
	call              *callRef // that began it; nil for none
	errors            []string // types of errors that whoever called it wants to know
	version           string   // of the orchestrator's code
	reference         *Reference
	deadline          int64 // microseconds; 0 for none
	dropEarly         bool  // events that nobody waits for
	unread            mailbox
	received          receivedSignals
	held              bool // the first turn waits for executionReleased
	stalled           bool // the code cannot go on
	suspended         bool
	commandedAt       int64          // when the last suspend or resume was given, microseconds
	sawFailure        bool           // the code has been given the error of a call, or was canceled
	actedAfterFailure bool           // it did something after that
	interrupts        bool           // a call has been interrupted
	canceled          *string        // why
	publishes         bool           // there is somebody to publish to
	signals           bool           // there are queues, so signals reach it
	openChildren      []*task        // sub-orchestrations that are waited for
	sentCount         int            // activities that other processes run
	openCount         int            // calls that are not done, events apart
	runningCount      int            // of these, activities that have not failed and that no other process was given
	columns           map[string]any // of the status row that stay as they are; nil until the first round
	openHumanTasks    int            // human tasks that are open
	humanTasks        []*task        // human tasks whose end is not committed
	failure           *Failure       // the last that it learned of

	patches          map[string]bool
	children         map[string]int               // calls of sub-orchestrations, by what makes them the same
	priorSideEffects map[string][]json.RawMessage // side effects of the attempt before, by name
	undoneSince      map[string]int               // for a sub-orchestration whose work was undone: callRef.Since
	outgoing         map[string]sentStream        // events to other orchestrations, by their ids
	uuids            int
	random           *rand.Rand
	customStatus     string
}

// tick gives the next event its time: now, but later than every event before.
func (x *execution) tick() int64 {
	x.last = max(x.now().UnixMicro(), x.last+1)
	return x.last
}

func (x *execution) decide(e event) {
	e.Name = cleanText(e.Name)
	e.At = x.tick()
	x.record(e)
}

// record adds a decision to the round in the making.
func (x *execution) record(e event) {
	x.decided = append(x.decided, e)
	x.decisions++
}

// wait returns when the task is done. Only the fiber that runs may call it.
func (x *execution) wait(t *task) {
	for !t.done {
		x.waitAny([]*task{t})
	}
}

// waitAny returns when one of the tasks is done.
func (x *execution) waitAny(tasks []*task) {
	f := x.current
	x.waitFor(f, tasks)
	if !f.ready() && x.unread.len() > 0 {
		x.deliverKept(tasks)
	}
	for !f.ready() {
		f.body.pause()
	}
}

// stopRunning takes note that no process runs the activity just now because of the call itself.
func (x *execution) stopRunning(t *task) {
	if t.running {
		t.running = false
		x.runningCount--
	}
}

func (x *execution) complete(t *task, output json.RawMessage, err error) {
	x.doneCount++
	t.done, t.doneOrder, t.output, t.err = true, x.doneCount, output, err
	for _, w := range t.waits {
		if w.coroutine.waits == w.count {
			x.scheduler.wake(w.coroutine)
		}
	}
	t.waits = nil
	if t.number > 0 && !t.kind.outside() {
		x.openCount--
	}
	if t.sent {
		x.sentCount--
	}
	x.stopRunning(t)
	if t.kind == humanTask {
		x.openHumanTasks--
	}
	if t.kind == childTask {
		x.openChildren = slices.DeleteFunc(x.openChildren, func(f *task) bool { return f == t })
	}
}

// task is a call by its number; nil when nobody made it.
func (x *execution) task(number int) *task {
	if number < 1 || number > len(x.tasks) {
		return nil
	}
	return x.tasks[number-1]
}

func (x *execution) start(input json.RawMessage) {
	ctx := newContext(x, x.log)
	root := &task{kind: coroutineTask}
	x.spawn(root, func() (json.RawMessage, error) {
		output, err := x.orchestrator.run(ctx, input)
		again, continues := errors.AsType[continueAsNew](err)
		if err == nil || continues {
			x.awaitOpenWork(ctx)
		}
		if continues { // here, where a panic is caught
			input, bad := encodePayload(again.input)
			if bad != nil {
				return nil, Permanent(fmt.Errorf("input to continue as new with: %w", bad))
			}
			err = continueAsNew{input}
		}
		return output, err
	}, x.decideEnd)
	x.turn()
}

// spawn makes a fiber that runs body when its turn comes. When body has returned, t is done and then is called. A panic
// ends the execution.
func (x *execution) spawn(t *task, body func() (json.RawMessage, error), then func(*task)) {
	x.spawned++
	f := &coroutine{task: t, number: x.spawned}
	f.body = newResumable(func() {
		if x.watchdog != nil {
			f.goroutine = goroutineID()
			x.watchdog.runs(f.goroutine)
		}
		output, err := protect(body)
		x.complete(t, output, err)
		f.ended = true
		x.endedCoroutines++
		if _, panicked := errors.AsType[*panicError](err); panicked && !x.ended {
			x.fail(err)
			return
		}
		then(t)
	})
	x.coroutines = append(x.coroutines, f)
	x.scheduler.wake(f)
}

func protect(body func() (json.RawMessage, error)) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	return body()
}

// replay brings the execution to where a recorded turn ended, and checks that it decides what is recorded. Of a turn that is
// committed in part, what it decides besides is left to be committed. number is that of its first round.
func (x *execution) replay(number int, r round) error {
	x.replaying, x.recorded, x.more = true, r.Decided, r.More
	defer func() { x.replaying, x.recorded, x.more = false, nil, false }()
	for _, e := range r.Learned {
		if err := x.apply(e); err != nil {
			return fmt.Errorf("replay of execution %d, round %d of orchestration %s: %w", x.number, number, x.id, err)
		}
	}
	for i := range max(len(r.Decided), len(x.decided)) {
		recorded, decided := "nothing", "nothing"
		if i == len(r.Decided) && r.More {
			x.decided = slices.Clone(x.decided[i:])
			return nil
		}
		if i < len(r.Decided) && r.Decided[i].tooLarge() {
			break // in place of what could not be stored
		}
		if i < len(r.Decided) {
			recorded = r.Decided[i].describe()
		}
		if i < len(x.decided) {
			decided = x.decided[i].describe()
		}
		if i >= len(r.Decided) || i >= len(x.decided) || !sameDecision(r.Decided[i], x.decided[i]) {
			return &DeterminismError{Orchestration: x.id, Execution: x.number, Round: number, Recorded: recorded, Decided: decided}
		}
	}
	x.decided = nil
	return nil
}

// close ends the fibers that still wait.
func (x *execution) close() {
	x.closing = true
	for _, f := range x.coroutines {
		f.body.close()
	}
}
