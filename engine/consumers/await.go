package consumers

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// The pauses between two checks double from the first to the longest. The task is created when they have reached
// askFrom, so that a short delay creates none.
const (
	firstPause   = 10 * time.Second
	askFrom      = 2 * time.Minute
	longestPause = time.Hour
)

// Task is the name of the human task that is open while a version has not arrived. Its answer is a Decision.
const Task = "confirm arrival"

// Action is an operator's decision.
type Action string

// The actions.
const (
	// Retire confirms that the version has arrived, or need not: its predecessors are retired now.
	Retire Action = "retire"
	// Wait continues the wait, without another task.
	Wait Action = "wait"
)

// Decision is the answer to a Task.
type Decision struct {
	Action Action `json:"action"`
	// Note is the reason, up to 2,000 characters.
	Note string `json:"note,omitempty"`
}

// decisionForm is the JSON schema of a Decision.
const decisionForm = `{"type":"object","required":["action"],"additionalProperties":false,"properties":{
"action":{"enum":["retire","wait"],"title":"Retire the older version although not everybody has the new one, or wait on"},
"note":{"type":"string","title":"Why","maxLength":2000}}}`

// question is the payload of the task.
type question struct {
	Engine  string `json:"engine"`
	Target  string `json:"target"`
	Version string `json:"version"`
	EventID string `json:"eventId"`
	// Missing are the consumers without the version when the task was created.
	Missing []string `json:"missing"`
	// Retires are the versions to retire in the end.
	Retires []string `json:"retires"`
	// WaitsUntilUtc is when the run is dead-lettered.
	WaitsUntilUtc time.Time `json:"waitsUntilUtc"`
}

// Credential is the credential that a run rotates.
type Credential struct {
	Engine, Target string
}

// Steps are the activities of a waiting run.
type Steps struct {
	// Look checks again, and retires versions that may be retired: nil when the wait is over. number counts the
	// checks of the execution from 2.
	Look func(number int) (*Waiting, error)
	// Confirm retires by an operator's decision.
	Confirm func(by, note string) error
}

// OverdueError means that a version has not arrived in time.
type OverdueError struct {
	Credential
	Waiting
}

// Error names the missing consumers and the remedy.
func (e *OverdueError) Error() string {
	return fmt.Sprintf("version %s of %s %s has not arrived within %v: missing are %s (event %s); %s stays usable. "+
		"Deliver the event (outbox), have them acknowledge, or rotate again; then retry this: it goes on waiting and rotates nothing",
		e.Version, e.Engine, e.Target, e.Patience, strings.Join(e.Missing, ", "), e.EventID, strings.Join(e.Retires, ", "))
}

// Await waits, in an orchestrator, until the version has arrived or an operator has decided, with pauses that grow
// from seconds to an hour. It creates the task once, after some minutes. The error is an *OverdueError when the
// patience ends, orchestrator.ErrCanceled, or one of the steps.
func Await(ctx *orchestrator.Context, of Credential, w *Waiting, steps Steps) error {
	p := patience{ctx: ctx, of: of, steps: steps, pause: firstPause}
	for number := 2; w != nil; number++ {
		decided, err := p.between(*w)
		if err != nil || decided {
			return err
		}
		if w, err = steps.Look(number); err != nil {
			return err
		}
	}
	p.withdraw()
	return nil
}

// patience is one wait.
type patience struct {
	ctx      *orchestrator.Context
	of       Credential
	steps    Steps
	pause    time.Duration
	deadline time.Time
	// asked is the open task; wasAsked stays true after it.
	asked    *orchestrator.Future[orchestrator.Answer[Decision]]
	wasAsked bool
}

// between waits for the next check. decided means that an operator has ended the wait.
func (p *patience) between(w Waiting) (decided bool, err error) {
	if len(w.Missing) == 0 {
		p.withdraw()
		return false, p.ctx.Sleep(max(w.ReadyAtUtc.Sub(p.ctx.Now()), time.Second) + p.distinct())
	}
	if p.deadline.IsZero() {
		p.deadline = p.ctx.Now().Add(w.Patience)
	}
	left := p.deadline.Sub(p.ctx.Now())
	if left <= 0 {
		return false, &OverdueError{p.of, w}
	}
	p.ask(w)
	pause := orchestrator.Timer(p.ctx, min(p.pause, left)+p.distinct())
	p.pause = min(2*p.pause, longestPause)
	if p.asked == nil || orchestrator.Any(p.ctx, p.asked, pause) != 0 {
		_, err = pause.Await()
		return false, err
	}
	answer, err := p.asked.Await()
	if err != nil {
		return false, err
	}
	p.asked = nil
	if answer.Output.Action == Retire {
		orchestrator.Cancel(p.ctx, pause)
		return true, p.steps.Confirm(answer.Who(), answer.Output.Note)
	}
	_, err = pause.Await()
	return false, err
}

// ask creates the task, once.
func (p *patience) ask(w Waiting) {
	if p.wasAsked || p.pause < askFrom {
		return
	}
	p.wasAsked = true
	p.asked = orchestrator.AskPerson[Decision](p.ctx, orchestrator.HumanTask{Name: Task, Roles: w.Roles, Form: json.RawMessage(decisionForm), Due: w.Patience,
		Payload: question{p.of.Engine, p.of.Target, w.Version, w.EventID, w.Missing, w.Retires, p.deadline.UTC()}})
}

// withdraw cancels the task, which needs no answer any longer.
func (p *patience) withdraw() {
	if p.asked != nil {
		orchestrator.Cancel(p.ctx, p.asked)
		p.asked = nil
	}
}

// distinct makes the pauses of an execution differ from those of the previous one, which have ended.
func (p *patience) distinct() time.Duration {
	return time.Duration(p.ctx.Execution()-1) * time.Millisecond
}
