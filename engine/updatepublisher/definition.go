package updatepublisher

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Input is the engine's own part of a message.
type Input struct {
	// Slot is when the timer was due, for display.
	Slot time.Time `json:"slot,omitzero"`
	// Finished or Health is a managed application's report about the instance; report only, and one of them.
	Finished *release.Finished `json:"finished,omitempty"`
	Health   *release.Health   `json:"health,omitempty"`
}

// Result is the result of a run.
type Result struct {
	// Evaluated counts the instances, Notified those that were notified of a version.
	Evaluated int `json:"evaluated"`
	Notified  int `json:"notified"`
	// Unreadable counts those with invalid documents; the operations evaluate name them.
	Unreadable int `json:"unreadable,omitempty"`
	// UnknownRings counts, by ring, those that are not notified because their ring has no release.
	UnknownRings map[string]int `json:"unknownRings,omitempty"`
	// Noted means that the registry has the report; false is a report behind a newer one.
	Noted bool `json:"noted,omitempty"`
}

// Definition returns the engine over the steps. A message with the operation evaluate, or none, notifies all
// instances that need it; notify notifies its instance again, if that still needs it; report records the report about
// its instance.
func Definition(steps *Steps) engine.Definition {
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 4, FirstInterval: time.Second, MaxInterval: 10 * time.Second, Jitter: 0.5})
	timeout := orchestrator.WithTimeout(2 * time.Minute)
	t := teller{
		evaluate: orchestrator.NewActivity(Engine+"/"+OperationEvaluate, permanently(steps.Evaluate), retry, timeout),
		notify:   orchestrator.NewActivity(Engine+"/"+OperationNotify, permanently(steps.Notify), retry, timeout),
		report:   orchestrator.NewActivity(Engine+"/"+OperationReport, permanently(steps.Report), retry, timeout),
	}
	run := func(ctx *orchestrator.Context, r engine.Request[Input]) (Result, error) {
		if r.Operation != OperationReport && (r.Input.Finished != nil || r.Input.Health != nil) {
			return Result{}, orchestrator.Permanent(fmt.Errorf("%w: a report needs the operation %s, not %.64q", ErrInput, OperationReport, r.Operation))
		}
		switch {
		case r.Operation == OperationReport:
			noted, err := t.note(ctx, r)
			return Result{Noted: noted}, err
		case r.Operation == OperationNotify && r.InstanceID != engine.PublisherInstance:
			told, err := t.tell(ctx, []string{r.InstanceID}, r.CorrelationID)
			return Result{Notified: told}, err
		case (r.Operation == "" || r.Operation == OperationEvaluate) && r.InstanceID == engine.PublisherInstance:
			return t.all(ctx)
		default:
			return Result{}, orchestrator.Permanent(fmt.Errorf("%w: the operation %.64q for instance %.128q: %s is for all instances, %s for one of them",
				ErrInput, r.Operation, r.InstanceID, OperationEvaluate, OperationNotify))
		}
	}
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, run),
		Operations:   []orchestrator.AnyActivity{t.evaluate, t.notify, t.report},
	}
}

// teller holds the steps as activities.
type teller struct {
	evaluate *orchestrator.Activity[EvaluateInput, Evaluated]
	notify   *orchestrator.Activity[NotifyInput, Notified]
	report   *orchestrator.Activity[ReportInput, Reported]
}

// all reads the registry, and notifies the instances of each page before it reads the next.
func (t teller) all(ctx *orchestrator.Context) (Result, error) {
	var result Result
	for from, more := "", true; more; more = from != "" {
		page, err := t.evaluate.Call(ctx, EvaluateInput{From: from, Execution: ctx.Execution()}).Await()
		if err != nil {
			return result, fmt.Errorf("evaluate the instances: %w", err)
		}
		told, err := t.tell(ctx, page.Due, "")
		if err != nil {
			return result, err
		}
		result.Evaluated += page.Instances
		result.Unreadable += len(page.Unreadable)
		result.Notified += told
		for _, ring := range slices.Sorted(maps.Keys(page.UnknownRings)) {
			result.UnknownRings = count(result.UnknownRings, ring, page.UnknownRings[ring])
		}
		from = page.Next
	}
	return result, nil
}

// tell publishes the events of instances. They are the same for the same version and occasion, in any run.
func (t teller) tell(ctx *orchestrator.Context, instances []string, occasion string) (int, error) {
	if len(instances) == 0 {
		return 0, nil
	}
	out, err := t.notify.Call(ctx, NotifyInput{Instances: instances, Execution: ctx.Execution()}).Await()
	if err != nil {
		return 0, fmt.Errorf("notify %d instances: %w", len(instances), err)
	}
	for _, n := range out.Notices {
		payload, err := json.Marshal(n)
		if err != nil {
			return 0, orchestrator.Permanent(fmt.Errorf("notify instance %s: %w", n.InstanceID, err))
		}
		err = ctx.Publish(orchestrator.Publication{TenantID: cmp.Or(n.TenantID, engine.PublisherInstance), Type: release.EventAvailable, Payload: payload,
			Key: engine.DeriveCorrelationID("update-available", n.InstanceID, n.Ring, n.Version, occasion), OrderKey: engine.OrderKey(n.InstanceID)})
		if err != nil {
			return 0, fmt.Errorf("notify instance %s: %w", n.InstanceID, err)
		}
	}
	return len(out.Notices), nil
}
