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

// longerWithFailure multiplies the limit of a run with a failure, because its attempts can start over.
const longerWithFailure = 3

// DefaultLimit is the default of Scenario.Limit.
const DefaultLimit = 366 * 24 * time.Hour

// Scenario is an orchestration and its environment. Only Orchestrator is required. In is the input of the
// orchestrator and Out its output; both travel as JSON. The orchestration's id and its correlation id are "test".
type Scenario[In, Out any] struct {
	Orchestrator orchestrator.AnyOrchestrator
	Input        In
	// Orchestrators are those of the sub-orchestrations and detached orchestrations that it starts, directly or
	// indirectly.
	Orchestrators []orchestrator.AnyOrchestrator
	// Activities are real activities and fakes (see Fake). A fake replaces the real activity of its name, so fakes can
	// be added to an engine's own list.
	Activities []orchestrator.AnyActivity
	// Steps are external actions on the orchestration. Each happens once, as soon as it can; of several that can, the
	// first.
	Steps []Step
	// Attempts is the number of deliveries of the start message when the orchestration fails with an error that
	// another attempt can fix. It is Retrying then, for 30 s, until the redelivery. After the last attempt it is
	// Failed. 0 means 1: it is Failed immediately. Each step "retry" adds one. A rewind resets the count.
	Attempts int
	// Fallback allows the orchestrator to complete with another output when a call fails, such as one that lists the
	// missing parts. FailEverywhere then leaves the output to Check, unless another attempt was made.
	Fallback bool
	// Limit is the virtual time in which the orchestration has to end; 0 means DefaultLimit. An endless orchestration
	// needs a Step that ends it.
	Limit time.Duration
	// Check, if it is set, is called at the end of every run, inside of the bubble, including the runs of
	// CrashEverywhere and FailEverywhere.
	Check func(t *testing.T, r Result[Out])
}

// Step is an external action on an orchestration: an event, an answer to a task, or a command.
type Step struct {
	// At is the time of the step, in virtual time since the start. With 0, an event is sent when it is waited for,
	// and a command as soon as the orchestration waits for anything. "retry" and "rewind" happen as soon as the
	// orchestration is Retrying or Failed, and "redeliver" happens as soon as the message was acknowledged. With At,
	// a step does not happen before that time.
	At time.Duration
	// Event is the name of an event (case does not matter), Data its value, which travels as JSON.
	Event string
	Data  any
	// Task is the name of a human task, Data the answer, and By the person ("somebody" for ""). The answer is given
	// when the task is open.
	Task string
	By   string
	// Command is "suspend", "resume", "cancel" or "terminate", and Reason its reason; or one of these:
	//
	//	"retry"      redelivers the start message of a Retrying orchestration
	//	"rewind"     rewinds a Failed orchestration, as an operator does
	//	"redeliver"  delivers the start message once more, although it was acknowledged
	Command string
	Reason  string
	// To is the name of the orchestrator of a sub-orchestration or a detached orchestration that gets the step
	// instead: the first matching one, in the order of the calls and then of the ids.
	To string
}

// Result is the result of a run.
type Result[Out any] struct {
	// Status is Completed, Failed, Canceled or Terminated.
	Status orchestrator.Status
	// Output is the result of the orchestrator; the zero value unless Status is Completed.
	Output Out
	// Err is nil if Status is Completed, else an *orchestrator.Failure; if it is Canceled, an orchestrator.ErrCanceled.
	Err error
	// Calls lists every call, in order, over all executions: activities, timers, events and sub-orchestrations, each
	// sub-orchestration followed by its own calls. An attempt of the orchestration that kept the result of a call
	// lists it again, with Call.Reused. Starts of detached orchestrations are not calls.
	Calls []orchestrator.Call
	// Published lists the events of all orchestrations (Context.Publish), each once.
	Published []orchestrator.Publication
	// Ledger lists the runs of activities' functions, in the order of their start: in all attempts, of all
	// orchestrations, detached ones included, and in processes that crashed.
	Ledger []Entry
	// Elapsed is the virtual time from start to end, rounded to milliseconds.
	Elapsed time.Duration

	history  []byte
	fallback bool // no other attempt was made, and the scenario allows other outputs
}

// Ran returns the runs of the activity of this name, in order.
func (r Result[Out]) Ran(activity string) []Entry {
	return slices.DeleteFunc(slices.Clone(r.Ledger), func(e Entry) bool { return e.Activity != activity })
}

// Called returns the calls of the activity of this name, in order.
func (r Result[Out]) Called(activity string) []orchestrator.Call {
	return slices.DeleteFunc(slices.Clone(r.Calls), func(c orchestrator.Call) bool {
		return c.Kind != orchestrator.ActivityCall || c.Name != activity
	})
}

// String returns the end and the calls, one on each line.
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

// ending returns the text that must be equal at any number of crashes.
func (r Result[Out]) ending() string {
	if r.Err != nil {
		return fmt.Sprintf("%s: %v", r.Status, r.Err)
	}
	text, err := json.Marshal(r.Output)
	if err != nil {
		text = fmt.Appendf(nil, "%+v", r.Output) // values that can be read, but not written as JSON
	}
	return fmt.Sprintf("%s: %s", r.Status, text)
}

// Fake returns an activity with the function fn that replaces the given one. Its options, such as retries, apply to
// the fake.
func Fake[In, Out any](activity *orchestrator.Activity[In, Out], fn func(context.Context, In) (Out, error)) orchestrator.AnyActivity {
	return fake{orchestrator.NewActivity(activity.Name(), fn)}
}

type fake struct{ orchestrator.AnyActivity }

// Run runs a scenario once. The test fails, and ends, when the run cannot end (see the package's promises).
func Run[In, Out any](t *testing.T, s Scenario[In, Out]) Result[Out] {
	t.Helper()
	return run(t, func(*testing.T) Scenario[In, Out] { return s }, &faults.Plan{}, nil)
}

// run runs a scenario with the plan for its first process, and with an injected failure.
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

// world returns the world around the orchestration.
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

// String describes the step, its orchestration and its time.
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

// withFakes leaves out the activities that a fake replaces.
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

// resultOf reads the result of a run from storage.
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
