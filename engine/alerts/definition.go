package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Steps are the engine's steps. They are safe for concurrent use.
type Steps struct{ rules []Rule }

// New validates config and returns the steps over it.
func New(config Config) (*Steps, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	rules := slices.Clone(config.Rules)
	if len(rules) == 0 {
		rules = []Rule{{Name: "default", Event: DefaultEvent}}
	}
	return &Steps{rules}, nil
}

// Route is an event of an alert.
type Route struct {
	// Rule is the name of the rule.
	Rule     string `json:"rule"`
	Event    string `json:"event"`
	TenantID string `json:"tenantId,omitempty"`
}

// ProcessOutput lists the routes of an alert.
type ProcessOutput struct {
	AlertID   string  `json:"alertId"`
	Condition string  `json:"condition"`
	Routes    []Route `json:"routes"`
}

// Process finds the rules that match an alert. It is a step, not orchestrator code, because a setting can change the
// rules: a run keeps its initial rules.
func (s *Steps) Process(_ context.Context, a Alert) (ProcessOutput, error) {
	out := ProcessOutput{AlertID: a.ID, Condition: a.Condition, Routes: []Route{}}
	for _, r := range s.rules {
		if !r.matches(a) {
			continue
		}
		if r.Event != "" {
			out.Routes = append(out.Routes, Route{Rule: r.Name, Event: r.Event, TenantID: r.TenantID})
		}
		if r.Stop {
			break
		}
	}
	return out, nil
}

// Event is the payload of an alert's events.
type Event struct {
	Alert Alert `json:"alert"`
	// Rule is the name of the rule that led to the event.
	Rule          string `json:"rule"`
	InstanceID    string `json:"instanceId"`
	CorrelationID string `json:"correlationId"`
}

// Definition returns the engine over the steps.
func Definition(steps *Steps) engine.Definition {
	process := orchestrator.NewActivity(Engine+"/"+OperationProcess, steps.Process, orchestrator.WithTimeout(time.Minute))
	run := func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (ProcessOutput, error) {
		alert, err := read(r)
		if err != nil {
			return ProcessOutput{}, orchestrator.Permanent(err)
		}
		out, err := process.Call(ctx, alert).Await()
		if err != nil {
			return ProcessOutput{}, fmt.Errorf("process alert %s: %w", alert.ID, err)
		}
		for _, route := range out.Routes {
			if err := tell(ctx, r, alert, route); err != nil {
				return ProcessOutput{}, fmt.Errorf("tell of alert %s by rule %s: %w", alert.ID, route.Rule, err)
			}
		}
		return out, nil
	}
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Adapt:        Adapt,
		Orchestrator: engine.Orchestrate(Engine, run),
		Operations:   []orchestrator.AnyActivity{process},
	}
}

// read reads the alert of a message.
func read(r engine.Request[json.RawMessage]) (Alert, error) {
	if r.Operation != "" && r.Operation != OperationProcess {
		return Alert{}, fmt.Errorf("%w: the operation %.64q cannot be asked for", ErrAlert, r.Operation)
	}
	if len(r.Input) == 0 {
		return Alert{}, fmt.Errorf("%w: the message has no input", ErrAlert)
	}
	return ParseAlert(r.Input)
}

// tell publishes the event of a route.
func tell(ctx *orchestrator.Context, r engine.Request[json.RawMessage], a Alert, route Route) error {
	payload, err := json.Marshal(Event{Alert: a, Rule: route.Rule, InstanceID: r.InstanceID, CorrelationID: r.CorrelationID})
	if err != nil {
		return orchestrator.Permanent(err)
	}
	tenant := route.TenantID
	for _, other := range []string{r.TenantID, engine.PublisherInstance} {
		if tenant == "" {
			tenant = other
		}
	}
	return ctx.Publish(orchestrator.Publication{TenantID: tenant, Type: route.Event, Payload: payload,
		Key: engine.DeriveCorrelationID("alert-event", a.ID, a.Condition, route.Rule), OrderKey: engine.OrderKey(a.ID)})
}
