package orchestrator

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// execution is one generation of an orchestration in memory: the suspended function and what it knows. It does no I/O:
// events go in, decisions come out, and the same events give the same decisions.
type execution struct {
	id            string
	number        int
	correlationID string
	orchestrator  *Orchestrator
	log           *slog.Logger
	now           func() time.Time

	tasks     []*task // by number, from 1
	clock     time.Time
	last      int64 // time of the latest event, microseconds
	replaying bool
	waiting   *task // what the function waits for; nil when it has not started or has ended
	running   *coroutine
	decided   []event // what the round in the making decides
	ended     bool    // the last of them ends the execution
}

// task is one call of an activity.
type task struct {
	number  int
	name    string
	input   json.RawMessage
	options callOptions

	attempts int   // that failed
	due      int64 // of the next attempt, microseconds, when one has failed

	done    bool
	awaited bool // by the orchestrator
	output  json.RawMessage
	err     error
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

// call is the decision to run an activity.
func (x *execution) call(name string, input json.RawMessage, options callOptions) *task {
	t := &task{number: len(x.tasks) + 1, name: name, input: input, options: options}
	x.tasks = append(x.tasks, t)
	x.decide(event{Kind: activityScheduled, Task: t.number, Name: name, Payload: input})
	return t
}

// wait returns when the task is done. Only the orchestrator function may call it.
func (x *execution) wait(t *task) {
	for !t.done {
		x.waiting = t
		x.running.pause()
	}
}

// apply takes one event in and lets the function run on as far as the event allows.
func (x *execution) apply(e event) error {
	if e.Kind == executionStarted {
		x.learned(e)
		x.start(e.Payload)
		return nil
	}
	if e.Task < 1 || e.Task > len(x.tasks) {
		return fmt.Errorf("%s of call %d, which nobody made: %w", e.Kind, e.Task, ErrCorrupt)
	}
	t := x.tasks[e.Task-1]
	if t.done {
		return nil // a second result of one call changes nothing
	}
	x.learned(e)
	switch e.Kind {
	case activityCompleted:
		t.done, t.output = true, e.Payload
	case activityFailed:
		t.done, t.attempts = true, e.Attempt
		t.err = &ActivityError{Activity: t.name, Attempt: e.Attempt, Failure: *e.Failure}
	case attemptFailed:
		t.attempts, t.due = e.Attempt, e.Due
	default:
		return fmt.Errorf("an event of the unknown kind %q: %w", e.Kind, ErrCorrupt)
	}
	if t.done && x.waiting == t {
		x.turn()
	}
	return nil
}

func (x *execution) learned(e event) {
	x.last = max(x.last, e.At)
	x.clock = fromMicros(e.At)
}

func (x *execution) start(input json.RawMessage) {
	ctx := newContext(x, x.log)
	x.running = newCoroutine(func() {
		output, err := x.invoke(ctx, input)
		if err != nil {
			x.end(event{Kind: executionFailed, Failure: failureOf(err)})
			return
		}
		x.end(event{Kind: executionCompleted, Payload: output})
	})
	x.turn()
}

// invoke runs the function, and then waits for the calls that it left behind: a call that is made is carried out.
func (x *execution) invoke(ctx *Context, input json.RawMessage) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	output, err = x.orchestrator.run(ctx, input)
	if err != nil {
		return nil, err
	}
	for _, t := range x.tasks {
		x.wait(t)
		if t.err != nil && !t.awaited {
			ctx.Logger().Warn("a call failed and nobody waited for it", "activity", t.name, "reason", t.err)
		}
	}
	return output, nil
}

// turn runs the function until it waits or ends.
func (x *execution) turn() {
	x.waiting = nil
	x.running.resume()
}

func (x *execution) end(e event) {
	x.decide(e)
	x.ended = true
}

// replay brings the execution to where a recorded round ended, and checks that it decides what is recorded.
func (x *execution) replay(number int, r round) error {
	x.replaying = true
	defer func() { x.replaying = false }()
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

// close ends a function that still waits.
func (x *execution) close() {
	if x.running != nil {
		x.running.close()
	}
}
