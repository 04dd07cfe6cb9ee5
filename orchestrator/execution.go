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
	base          int // the execution that began anew: this one, or the one before the failures that it follows
	correlationID string
	orchestrator  AnyOrchestrator
	log           *slog.Logger
	now           func() time.Time

	tasks   []*task // that are decisions, by number from 1
	locals  []*task // of fibers
	fibers  []*fiber
	current *fiber // that runs
	places  int    // of tasks that are done

	clock     time.Time
	last      int64 // time of the latest event, microseconds
	replaying bool
	script    []event // while replaying: what the round decided
	decided   []event // what the round in the making decides
	ended     bool    // the last of them ends the execution
	continues bool    // and another follows by itself

	first      int    // the execution that began from outside: this one, or the one before it continued as new
	version    string // of the orchestrator's code
	reference  *Reference
	deadline   int64    // microseconds; 0 for none
	drop       bool     // events that nobody waits for
	unread     []event  // external events that nobody has asked for
	signals    []string // that have been applied
	held       bool     // the first turn waits for executionReleased
	suspended  bool
	interrupts bool     // a call has been interrupted
	canceled   *string  // why
	publishes  bool     // there is somebody to publish to
	frames     []*task  // sub-orchestrations that are waited for
	sent       int      // activities that other processes run
	open       int      // calls that are not done, events apart
	failure    *Failure // the last that it learned of

	patches      map[string]bool
	children     map[string]int // calls of sub-orchestrations, by what makes them the same
	uuids        int
	random       *rand.Rand
	customStatus string
}

// tick gives the next event its time: now, but later than every event before.
func (x *execution) tick() int64 {
	x.last = max(x.now().UnixMicro(), x.last+1)
	return x.last
}

func (x *execution) decide(e event) {
	e.At = x.tick()
	x.decided = append(x.decided, e)
}

// add makes a task that is a decision.
func (x *execution) add(t *task) *task {
	t.number = len(x.tasks) + 1
	t.began = x.clock.UnixMicro()
	x.tasks = append(x.tasks, t)
	if t.kind != eventTask {
		x.open++
	}
	return t
}

func (x *execution) callActivity(name string, input json.RawMessage, options callOptions) *task {
	t := x.add(&task{kind: activityTask, name: name, input: input, options: options})
	x.decide(event{Kind: activityScheduled, Task: t.number, Name: name, Payload: input})
	return t
}

// callChild makes a call of a sub-orchestration.
func (x *execution) callChild(name string, input json.RawMessage, options callOptions) *task {
	t := x.add(&task{kind: childTask, name: name, input: input, options: options,
		child: x.childID(name, input)})
	x.frames = append(x.frames, t)
	x.decide(event{Kind: childScheduled, Task: t.number, Name: name, Payload: input, Child: t.child})
	return t
}

// childID is made of what is called, with what, and how often before, so that an execution that follows a failed one
// finds the same, also when its code has changed.
func (x *execution) childID(name string, input json.RawMessage) string {
	same := name + "-" + hashOf(input)[:16]
	if x.children == nil {
		x.children = map[string]int{}
	}
	x.children[same]++
	id := fmt.Sprintf("%s:%d-%s-%d", x.id, x.base, same, x.children[same])
	if !validID(id) {
		id = "child-" + hashOf([]byte(id))
	}
	return id
}

// detach decides the start of an orchestration that nobody waits for.
func (x *execution) detach(name, id string, input json.RawMessage) string {
	if id == "" {
		id = x.childID(name, input)
	}
	x.decide(event{Kind: childDetached, Name: name, Payload: input, Child: id})
	return id
}

// timer makes a timer. Its input is how long, which is what makes it the same in an execution that follows a failed one.
func (x *execution) timer(d time.Duration) *task {
	t := x.add(&task{kind: timerTask, name: "timer", input: fmt.Appendf(nil, "%q", d), due: x.clock.Add(d).UnixMicro()})
	x.decide(event{Kind: timerScheduled, Task: t.number, Name: t.name, Payload: t.input, Due: t.due})
	return t
}

// sideEffect gives the recorded value in a replay, and records what make gives otherwise.
func (x *execution) sideEffect(name string, make func() (json.RawMessage, error)) (json.RawMessage, error) {
	if recorded, ok := x.scripted(sideEffectRecorded, name); ok {
		x.decide(recorded)
		return recorded.Payload, nil
	}
	payload, err := make()
	if err != nil {
		return nil, err
	}
	x.decide(event{Kind: sideEffectRecorded, Name: name, Payload: payload})
	return payload, nil
}

// patched decides once for each name: an execution that has passed the place without the patch stays without it.
func (x *execution) patched(name string) bool {
	if on, ok := x.patches[name]; ok {
		return on
	}
	_, recorded := x.scripted(patchRecorded, name)
	on := recorded || !x.replaying
	if x.patches == nil {
		x.patches = map[string]bool{}
	}
	x.patches[name] = on
	if on {
		x.decide(event{Kind: patchRecorded, Name: name})
	}
	return on
}

// scripted is what the round that is replayed decided at this place, if it is that.
func (x *execution) scripted(kind eventKind, name string) (event, bool) {
	if i := len(x.decided); x.replaying && i < len(x.script) && x.script[i].Kind == kind && x.script[i].Name == name {
		return x.script[i], true
	}
	return event{}, false
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
	f.waiting = tasks
	if !f.ready() && len(x.unread) > 0 {
		x.serve(tasks)
	}
	for !f.ready() {
		f.coroutine.pause()
	}
}

func (x *execution) complete(t *task, output json.RawMessage, err error) {
	x.places++
	t.done, t.place, t.output, t.err = true, x.places, output, err
	if t.number > 0 && t.kind != eventTask {
		x.open--
	}
	if t.sent {
		x.sent--
	}
	if t.kind == childTask {
		x.frames = slices.DeleteFunc(x.frames, func(f *task) bool { return f == t })
	}
}

// apply takes one event in and lets the fibers run on as far as the event allows.
func (x *execution) apply(e event) error {
	x.last = max(x.last, e.At)
	if e.Task == 0 {
		return x.applyCommon(e)
	}
	t := x.task(e.Task)
	if t == nil {
		return fmt.Errorf("%s of call %d, which nobody made: %w", e.Kind, e.Task, ErrCorrupt)
	}
	if t.done {
		return nil // a second result of one call changes nothing
	}
	x.learned(e)
	if e.Failure != nil {
		x.failure = e.Failure
	}
	switch e.Kind {
	case activityCompleted, childCompleted, timerFired:
		x.complete(t, e.Payload, nil)
	case activityFailed, childFailed:
		t.attempts = e.Attempt
		x.complete(t, nil, t.failed(e.Failure, e.Attempt))
	case attemptFailed:
		if t.attempts, t.due = e.Attempt, e.Due; t.sent {
			t.sent = false
			x.sent--
		}
	case activityProgressed:
		t.progress = e.Payload
	default:
		return unknownKind(e)
	}
	if t.done {
		x.turn()
	}
	return nil
}

func unknownKind(e event) error {
	return fmt.Errorf("an event of the kind %q, which this version does not know: %w", e.Kind, ErrNewerSchema)
}

// task is a call by its number; nil when nobody made it.
func (x *execution) task(number int) *task {
	if number < 1 || number > len(x.tasks) {
		return nil
	}
	return x.tasks[number-1]
}

// applyCommon takes in what is not about a call.
func (x *execution) applyCommon(e event) error {
	if x.knows(e.Signal) || x.ended {
		return nil
	}
	x.learned(e)
	if e.Signal != "" && e.Kind != executionStarted { // whose request id is no signal's
		x.signals = append(x.signals, e.Signal)
	}
	switch e.Kind {
	case executionStarted:
		x.started(e)
	case eventRaised:
		if x.raised(e) {
			x.turn()
		}
	case activitiesSent:
		return x.handedOut(e)
	case executionReleased:
		x.held = false
		x.turn()
	case executionSuspended:
		x.suspended = true
	case executionCanceled:
		x.cancelAll(e.Reason)
	case executionResumed:
		x.suspended = false
		x.turn()
	case executionTimedOut:
		x.end(event{Kind: executionFailed, Failure: &Failure{Code: "TimedOut",
			Message: fmt.Sprintf("the orchestration did not end by %s", fromMicros(x.deadline).Format(time.RFC3339))}})
	case executionTerminated:
		x.end(event{Kind: executionStopped, Failure: terminatedFailure(e.Reason)})
	default:
		return unknownKind(e)
	}
	return nil
}

// handedOut takes note of the activities that other processes run.
func (x *execution) handedOut(e event) error {
	for _, number := range e.Tasks {
		t := x.task(number)
		if t == nil {
			return fmt.Errorf("%s of call %d, which nobody made: %w", e.Kind, number, ErrCorrupt)
		}
		if !t.sent && t.open() {
			t.sent = true
			x.sent++
		}
	}
	return nil
}

func (x *execution) started(e event) {
	x.held, x.drop, x.version, x.reference = e.Held, e.Drop, e.Version, e.Reference
	x.first = max(e.First, 1)
	if e.Timeout > 0 {
		x.deadline = e.At + e.Timeout
	}
	if h := e.Inherited; h != nil {
		x.unread = append(x.unread, h.Unread...)
		x.signals = append(x.signals, h.Signals...)
	}
	x.start(e.Payload)
}

func (x *execution) learned(e event) { x.clock = fromMicros(e.At) }

func (x *execution) start(input json.RawMessage) {
	ctx := newContext(x, x.log)
	root := &task{kind: fiberTask}
	x.spawn(root, func() (json.RawMessage, error) {
		output, err := x.orchestrator.run(ctx, input)
		again, continues := errors.AsType[continueAsNew](err)
		if err == nil || continues {
			x.waitForAll(ctx, root)
		}
		if continues { // here, where a panic is caught
			input, bad := marshal(again.input)
			if bad != nil {
				return nil, Permanent(fmt.Errorf("input to continue as new with: %w", bad))
			}
			err = continueAsNew{input}
		}
		return output, err
	}, x.settle)
	x.turn()
}

// spawn makes a fiber that runs body when its turn comes. When body has returned, t is done and then is called. A panic
// is an error.
func (x *execution) spawn(t *task, body func() (json.RawMessage, error), then func(*task)) {
	f := &fiber{task: t}
	f.coroutine = newCoroutine(func() {
		output, err := protect(body)
		x.complete(t, output, err)
		f.ended = true
		then(t)
	})
	x.locals = append(x.locals, t)
	x.fibers = append(x.fibers, f)
}

func protect(body func() (json.RawMessage, error)) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	return body()
}

// waitForAll waits for the calls that nobody has looked at: what is called is carried out. To wait is no work.
func (x *execution) waitForAll(ctx *Context, root *task) {
	for waited := true; waited; { // what one waits for can call more
		waited = false
		for _, tasks := range [][]*task{x.tasks, x.locals} {
			for _, t := range tasks {
				if t == root || t.kind == timerTask || t.kind == eventTask || t.awaited {
					continue
				}
				waited, t.awaited = true, true
				x.wait(t)
				if t.err != nil {
					ctx.Logger().Warn("a call failed and nobody waited for it", "call", t.name, "reason", t.err)
				}
			}
		}
	}
}

// turn runs the fibers until all wait, or the execution has ended.
func (x *execution) turn() {
	for progress := !x.suspended && !x.held; progress; {
		progress = false
		for i := 0; i < len(x.fibers) && !x.ended; i++ { // a fiber can make more of them
			f := x.fibers[i]
			if f.ended || !f.ready() {
				continue
			}
			progress = true
			x.current = f
			f.coroutine.resume()
		}
	}
	x.current = nil
}

// settle decides the end of the execution from that of its orchestrator function.
func (x *execution) settle(root *task) {
	again, ok := errors.AsType[continueAsNew](root.err)
	switch {
	case root.err != nil && x.canceled != nil:
		x.end(event{Kind: executionStopped, Failure: canceledFailure(*x.canceled)})
	case ok:
		input, _ := again.input.(json.RawMessage)
		x.end(event{Kind: executionContinued, Payload: input, Inherited: x.inheritance()})
	case root.err != nil:
		x.end(event{Kind: executionFailed, Failure: failureOf(root.err)})
	default:
		x.end(event{Kind: executionCompleted, Payload: root.output})
	}
}

func (x *execution) end(e event) {
	x.decide(e)
	x.ended, x.continues = true, e.Kind == executionContinued
}

// replay brings the execution to where a recorded round ended, and checks that it decides what is recorded.
func (x *execution) replay(number int, r round) error {
	x.replaying, x.script = true, r.Decided
	defer func() { x.replaying, x.script = false, nil }()
	for _, e := range r.Learned {
		if err := x.apply(e); err != nil {
			return fmt.Errorf("replay of execution %d, round %d of orchestration %s: %w", x.number, number, x.id, err)
		}
	}
	for i := range max(len(r.Decided), len(x.decided)) {
		recorded, decided := "nothing", "nothing"
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
	for _, f := range x.fibers {
		f.coroutine.close()
	}
}
