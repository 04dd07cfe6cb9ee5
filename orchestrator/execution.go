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

// execution is one generation of an orchestration in memory: its suspended coroutines and their state. It does no I/O.
// It converts events to decisions, and the same events lead to the same decisions.
type execution struct {
	id            string
	number        int
	base          int // the execution that this one builds on: itself, or an earlier attempt
	correlationID string
	tenant        string          // that it belongs to; "" for the platform
	trace         string          // the starter's trace context; "" for none
	name          string          // of its orchestrator
	orchestrator  AnyOrchestrator // nil when its code does not run
	log           *slog.Logger
	codeLog       *slog.Logger // for its code; nil before the code has asked for it
	now           func() time.Time

	context         Context      // of the orchestrator's function
	root            task         // represents that function
	tasks           []*task      // the calls, by number from 1
	taskSlab        []task       // where the next calls are
	noOptions       callOptions  // of calls that have none
	coroutines      []*coroutine // including ended ones, until they are many
	endedCoroutines int          // how many of them have ended
	spawned         int
	scheduler       scheduler
	receivers       receivers
	waiting         waiting
	current         *coroutine // the coroutine that is running
	doneCount       int        // how many tasks are done

	clock     time.Time
	last      int64 // time of the latest event, microseconds
	replaying bool
	recorded  []event // decisions of the turn that is being replayed
	more      bool    // the remaining ones were not committed
	decided   []event // decisions that are not committed
	decisions int     // number of all decisions, the committed ones included
	// learnedCount is how many events were applied.
	learnedCount int
	partial      bool      // the round being committed leaves some decisions to the next
	ended        bool      // the last decision ends the execution
	continues    bool      // and the orchestration continues as new
	end          event     // the decision that ends the execution
	closing      bool      // the coroutines are being ended
	watchdog     *watchdog // nil for none

	first             int      // the execution that was started from outside: this one, or an earlier one
	willRetry         bool     // the caller repeats the start after a failure
	call              *callRef // the call that it runs for; nil for none
	errors            []string // error types that the caller can decode
	version           string   // of the orchestrator's code
	reference         *Reference
	deadline          int64 // microseconds; 0 for none
	dropEarly         bool  // drop events that no call waits for
	unread            mailbox
	overtakers        overtakers
	runBegan          int64   // when the run began, if this is its first execution and another run was before, microseconds
	withheld          []event // events of previous attempts that the code does not see yet, oldest first
	received          receivedSignals
	held              bool // the first turn waits for executionReleased
	stalled           bool // the code cannot continue
	suspended         bool
	commandedAt       int64    // when the latest suspend or resume was given, microseconds
	sawFailure        bool     // the code was given the error of a call, or was canceled
	actedAfterFailure bool     // the code acted after that
	interrupts        bool     // a call has been interrupted
	canceled          *string  // the reason; nil when it was not canceled
	publishes         bool     // a publisher exists
	signals           bool     // queues exist, so signals reach it
	openChildren      []*task  // calls of sub-orchestrations that have not ended
	sentCount         int      // how many activities other processes run
	recalled          []*task  // activities that other processes no longer run, until the executor has seen them
	openCount         int      // how many calls are not done, events and human tasks apart
	runningCount      int      // how many of these are activities for this process, without a failure
	openHumanTasks    int      // how many human tasks are open
	humanTasks        []*task  // human tasks without a committed end
	failure           *Failure // the latest failure that it learned of

	patches          map[string]bool
	children         map[string]int               // how often sub-orchestrations were called, by name and input
	named            map[string]*task             // the latest call of each sub-orchestration that has a WithID
	undos            map[*task]*task              // the calls that undo others, by the undone call
	elsewhere        []elsewhereCall              // canceled activities that other processes may run
	rules            int                          // version of the rules by which the execution began
	priorSideEffects map[string][]json.RawMessage // side effects of the attempt before, by name
	undoneSince      map[string]int               // callRef.Since of sub-orchestrations that were undone, by id
	outgoing         map[string]sentStream        // streams of events to other orchestrations, by their ids
	uuids            int
	random           *rand.Rand
	customStatus     string
}

// tick returns the time for the next event: now, but later than the previous event.
func (x *execution) tick() int64 {
	x.last = max(x.now().UnixMicro(), x.last+1)
	return x.last
}

func (x *execution) decide(e event) {
	e.Name = cleanText(e.Name)
	e.At = x.tick()
	x.record(e)
}

// record appends an uncommitted decision.
func (x *execution) record(e event) {
	x.decided = appendEvent(x.decided, e)
	x.decisions++
}

// wait returns when the task is done. Only the running coroutine may call it.
func (x *execution) wait(t *task) {
	for !t.done {
		t.alone[0] = t
		x.waitAny(t.alone[:])
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

// stopRunning records that the activity needs no process at the moment.
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

// task returns the call with this number; nil for none.
func (x *execution) task(number int) *task {
	if number < 1 || number > len(x.tasks) {
		return nil
	}
	return x.tasks[number-1]
}

func (x *execution) start(input json.RawMessage) {
	ctx, root := &x.context, &x.root
	ctx.execution, root.kind = x, coroutineTask
	x.spawn(root, func() (json.RawMessage, error) {
		output, err := x.orchestrator.run(ctx, input)
		again, continues := errors.AsType[continueAsNew](err)
		if err == nil || continues {
			x.awaitOpenWork(ctx)
		}
		if continues { // the input is encoded here, where a panic of its methods is caught
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

// spawn makes a coroutine that runs body when its turn comes. When body returns, t is done and then is called. A panic
// of body, and runtime.Goexit in it, ends the execution.
func (x *execution) spawn(t *task, body func() (json.RawMessage, error), then func(*task)) {
	x.spawned++
	f := &coroutine{task: t, number: x.spawned}
	t.body = f
	f.body.init(func() {
		if x.watchdog != nil {
			f.goroutine = x.watchdog.goroutineID()
			x.watchdog.runs(f.goroutine)
		}
		defer func() {
			if !f.ended && !x.closing {
				x.endCoroutine(f, nil, &panicError{value: "the code called runtime.Goexit, as t.Fatal does", stack: string(debug.Stack())})
			}
		}()
		output, err := protect(body)
		if x.endCoroutine(f, output, err); !x.ended {
			then(t)
		}
	})
	x.coroutines = append(x.coroutines, f)
	x.scheduler.wake(f)
}

// endCoroutine records the outcome of a coroutine. A panic ends the execution.
func (x *execution) endCoroutine(f *coroutine, output json.RawMessage, err error) {
	x.complete(f.task, output, err)
	f.ended = true
	x.endedCoroutines++
	if _, panicked := errors.AsType[*panicError](err); panicked && !x.ended {
		x.fail(err)
	}
}

func protect(body func() (json.RawMessage, error)) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	return body()
}

// replay brings the execution to the end of a recorded turn, and checks that the code decides as recorded. If only a
// part of the turn was committed, the other decisions remain to be committed. number is the number of the turn's first
// round.
func (x *execution) replay(number int, r round) error {
	x.replaying, x.recorded, x.more = true, r.Decided, r.More
	defer func() { x.replaying, x.recorded, x.more = false, nil, false }()
	for i := range r.Learned {
		if err := x.apply(r.Learned[i]); err != nil {
			return fmt.Errorf("replay of execution %d, round %d of orchestration %s: %w", x.number, number, x.id, err)
		}
	}
	for i := range max(len(r.Decided), len(x.decided)) {
		if i == len(r.Decided) && r.More {
			x.decided = slices.Clone(x.decided[i:])
			return nil
		}
		if i < len(r.Decided) && r.Decided[i].tooLarge() {
			break // the recorded end replaces a decision that could not be stored
		}
		if i >= len(r.Decided) || i >= len(x.decided) || !sameDecision(&r.Decided[i], &x.decided[i]) {
			return &DeterminismError{Orchestration: x.id, Execution: x.number, Round: number, Recorded: describeAt(r.Decided, i), Decided: describeAt(x.decided, i)}
		}
	}
	clear(x.decided)
	x.decided = x.decided[:0]
	return nil
}

// describeAt describes the decision at index i, which may be past the last.
func describeAt(decisions []event, i int) string {
	if i >= len(decisions) {
		return "nothing"
	}
	return decisions[i].describe()
}

// close ends the coroutines that still wait.
func (x *execution) close() {
	x.closing = true
	for _, f := range x.coroutines {
		f.body.close()
	}
}
