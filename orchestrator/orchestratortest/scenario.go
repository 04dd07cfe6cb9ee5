package orchestratortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// longerWithFailure is how many times the limit a run with a failure may take: its attempts can begin anew.
const longerWithFailure = 3

// DefaultLimit is the virtual time after which an orchestration that goes on fails its test, unless the Scenario says
// otherwise.
const DefaultLimit = 366 * 24 * time.Hour

// Scenario is an orchestration and the world around it. Only Orchestrator is required. In is what the orchestrator takes
// and Out what it returns; both travel as JSON. The orchestration's id and its correlation id are "test".
type Scenario[In, Out any] struct {
	Orchestrator orchestrator.AnyOrchestrator
	Input        In
	// Orchestrators are the sub-orchestrations that it calls and the detached orchestrations that it starts, directly or not.
	Orchestrators []orchestrator.AnyOrchestrator
	// Activities are real ones and those that Fake makes. A fake stands in for the real one of its name, so that fakes can
	// be added to an engine's own list.
	Activities []orchestrator.AnyActivity
	// Steps is what others do to the orchestration. Each happens once, as soon as it can; of several that can, the first.
	Steps []Step
	// Attempts is how often the message that starts the orchestration comes, when the orchestration fails in a way that
	// another attempt can mend: it is Retrying then, for 30 s, until the message comes again. After the last attempt it is
	// given up, and Failed. 0 means 1: it is Failed at once. Each step "retry" is one more. After a rewind, they are counted
	// anew.
	Attempts int
	// Fallback says that the orchestrator may complete with another output when a call fails, such as one that says what is
	// missing. FailEverywhere then leaves the output to Check, unless there was a second chance.
	Fallback bool
	// Limit is the virtual time in which the orchestration has to end; 0 means DefaultLimit. One that never ends by itself
	// is ended by a Step.
	Limit time.Duration
	// Check, if it is set, looks at the end of every run, inside of the bubble, also of those that CrashEverywhere and
	// FailEverywhere make.
	Check func(t *testing.T, r Result[Out])
}

// Step is something that happens to an orchestration from outside: an event, a person's answer, or a command.
type Step struct {
	// At is when, in virtual time since the start. With 0, an event comes when it is waited for, and a command as soon as
	// the orchestration waits for anything. "retry" and "rewind" happen as soon as there is something to try again, and
	// "redeliver" as soon as the message was acknowledged; with At, not before that.
	At time.Duration
	// Event is the name of an event (case does not matter), Data its value, which travels as JSON.
	Event string
	Data  any
	// Task is the name of a human task, Data its answer, By who gives it ("somebody" for ""). It is given when the task is
	// open.
	Task string
	By   string
	// Command is "suspend", "resume", "cancel" or "terminate", and Reason why; or one of these:
	//
	//	"retry"      the message that started the orchestration comes again, now that it is Retrying
	//	"rewind"     a person rewinds it, now that it is Failed
	//	"redeliver"  the message that started it comes once more, although it was acknowledged
	Command string
	Reason  string
	// To is the name of the orchestrator of a sub-orchestration or a detached orchestration that is meant instead: the
	// first, in the order of the calls and then of the ids, that the step fits, when there is one.
	To string
}

// Result is how a run ended.
type Result[Out any] struct {
	// Status is Completed, Failed, Canceled or Terminated.
	Status orchestrator.Status
	// Output is what the orchestrator returned; the zero value unless Status is Completed.
	Output Out
	// Err is nil if Status is Completed, else an *orchestrator.Failure; if it is Canceled, an orchestrator.ErrCanceled.
	Err error
	// Calls is everything that was called, in order, over all executions: activities, timers, events and
	// sub-orchestrations, each of which is followed by its own calls. Call.Attempts counts the tries. An attempt of the
	// orchestration lists a call again whose result it kept, as Call.Reused. Detached orchestrations are no calls.
	Calls []orchestrator.Call
	// Published is what all orchestrations told the outside (Context.Publish), each event once.
	Published []orchestrator.Publication
	// Ledger is the functions of activities that really ran, in the order in which they began: in all attempts, of all
	// orchestrations, detached ones included, and in processes that crashed.
	Ledger []Entry
	// Elapsed is the virtual time from start to end, rounded to milliseconds.
	Elapsed time.Duration

	history  []byte
	fallback bool // it had no second chance, and the scenario allows other outputs
}

// Ran is the runs of the activity of this name, in order.
func (r Result[Out]) Ran(activity string) []Entry {
	return slices.DeleteFunc(slices.Clone(r.Ledger), func(e Entry) bool { return e.Activity != activity })
}

// Called is the activities of this name that were called, in order.
func (r Result[Out]) Called(activity string) []orchestrator.Call {
	return slices.DeleteFunc(slices.Clone(r.Calls), func(c orchestrator.Call) bool {
		return c.Kind != orchestrator.ActivityCall || c.Name != activity
	})
}

// String shows the end and the calls, a line each.
func (r Result[Out]) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s after %v", r.ending(), r.Elapsed)
	for _, c := range r.Calls {
		fmt.Fprintf(&text, "\n\t%s %s %s, attempts: %d", c.Kind, c.Name, c.Input, c.Attempts)
		if c.Failure != nil {
			fmt.Fprintf(&text, ", failed: %s", c.Failure.Message)
		}
	}
	return text.String()
}

// ending is what has to be the same however often the process crashes.
func (r Result[Out]) ending() string {
	if r.Err != nil {
		return fmt.Sprintf("%s: %v", r.Status, r.Err)
	}
	text, err := json.Marshal(r.Output)
	if err != nil {
		text = fmt.Appendf(nil, "%+v", r.Output) // it can be read, but not written
	}
	return fmt.Sprintf("%s: %s", r.Status, text)
}

// Fake is fn in the place of an activity. The options of the real one, such as its retries, hold for the fake.
func Fake[In, Out any](activity *orchestrator.Activity[In, Out], fn func(context.Context, In) (Out, error)) orchestrator.AnyActivity {
	return fake{orchestrator.NewActivity(activity.Name(), fn)}
}

type fake struct{ orchestrator.AnyActivity }

// Run runs a scenario once. The test fails, and ends, when the run cannot come to an end (see the package's promises).
func Run[In, Out any](t *testing.T, s Scenario[In, Out]) Result[Out] {
	t.Helper()
	return run(t, func(*testing.T) Scenario[In, Out] { return s }, &faults.Plan{}, nil)
}

// run runs a scenario, its first process with the plan, and with a call that fails.
func run[In, Out any](t *testing.T, scenario func(*testing.T) Scenario[In, Out], plan *faults.Plan, f *failing) Result[Out] {
	t.Helper()
	var r Result[Out]
	dog, stop := startWatchdog(t)
	defer stop()
	synctest.Test(t, func(t *testing.T) {
		s := scenario(t)
		w, err := s.world(t, f)
		if err != nil {
			t.Fatalf("scenario: %v", err)
		}
		w.watchdog = dog
		r, err = resultOf[Out](t.Context(), w, simulate(t, w, plan))
		if err != nil {
			t.Fatalf("result: %v", err)
		}
		r.fallback = s.Fallback && !w.retried
		if s.Check != nil {
			s.Check(t, r)
		}
	})
	return r
}

// world is what surrounds the orchestration.
func (s Scenario[In, Out]) world(t *testing.T, f *failing) (*world, error) {
	if s.Orchestrator == nil {
		return nil, errors.New("an orchestrator is required")
	}
	if s.Limit < 0 || s.Attempts < 0 {
		return nil, errors.New("the limit or the number of attempts is negative")
	}
	if s.Limit == 0 {
		s.Limit = DefaultLimit
	}
	attempts := max(s.Attempts, 1)
	if f != nil {
		attempts++
		s.Limit *= longerWithFailure
	}
	var errs []error
	for i, step := range s.Steps {
		if err := step.validate(); err != nil {
			errs = append(errs, fmt.Errorf("step %d: %w", i+1, err))
		}
	}
	input, err := json.Marshal(s.Input)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(s.Orchestrators), func(o orchestrator.AnyOrchestrator) bool { return o == s.Orchestrator })
	return newWorld(t, world{
		start: orchestrator.Start{ID: id, CorrelationID: id, Orchestrator: s.Orchestrator.Name(), Input: input,
			WillRetry: attempts > 1 || slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Command == commandRetry })},
		attempts:      attempts,
		failing:       f,
		orchestrators: append(others, s.Orchestrator),
		activities:    withFakes(s.Activities),
		steps:         slices.Clone(s.Steps),
		limit:         s.Limit,
	})
}

func (s Step) validate() error {
	kinds := 0
	for _, what := range []string{s.Event, s.Task, s.Command} {
		if what != "" {
			kinds++
		}
	}
	switch {
	case s.At < 0:
		return errors.New("its time is negative")
	case kinds != 1, s.Command != "" && !slices.Contains(commands(), s.Command):
		return fmt.Errorf("it needs an Event, a Task or one of the Commands %s, and only one of them", strings.Join(commands(), ", "))
	case s.To != "" && (s.Command == commandRetry || s.Command == commandRedeliver):
		return fmt.Errorf("%s is about the message that starts the orchestration, so it cannot have a To", s.Command)
	}
	return nil
}

// String names what happens, to whom and when.
func (s Step) String() string {
	what := s.Command
	if s.Event != "" {
		what = fmt.Sprintf("event %q", s.Event)
	}
	if s.Task != "" {
		what = fmt.Sprintf("the answer to task %q", s.Task)
	}
	if s.To != "" {
		what += " to " + s.To
	}
	if s.At > 0 {
		what += fmt.Sprintf(" at %v", s.At)
	}
	return what
}

// withFakes leaves out the activities that a fake stands in for.
func withFakes(all []orchestrator.AnyActivity) []orchestrator.AnyActivity {
	faked := map[string]bool{}
	for _, a := range all {
		if f, ok := a.(fake); ok {
			faked[f.Name()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(a orchestrator.AnyActivity) bool {
		_, ok := a.(fake)
		return !ok && a != nil && faked[a.Name()]
	})
}

// resultOf reads from storage how a run ended.
func resultOf[Out any](ctx context.Context, w *world, end orchestrator.Outcome) (Result[Out], error) {
	first := append(end.Earlier, end)[0]
	r := Result[Out]{Status: end.Status, Elapsed: end.EndedAt.Sub(first.StartedAt).Round(time.Millisecond), Published: w.published.all(), Ledger: w.ledger.all()}
	if end.Failure != nil {
		r.Err = end.Failure
	}
	var err error
	if end.Status == orchestrator.Completed {
		err = json.Unmarshal(end.Output, &r.Output)
	}
	if err == nil {
		r.Calls, err = w.calls(ctx, end, map[string]bool{})
	}
	if err == nil {
		r.history, err = w.outside.Export(ctx, end.ID)
	}
	return r, err
}
