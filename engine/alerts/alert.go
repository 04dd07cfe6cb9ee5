package alerts

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
)

// The conditions of an alert.
const (
	Fired    = "Fired"
	Resolved = "Resolved"
)

// Alert holds the fields of an alert that the engine uses, without its context.
type Alert struct {
	ID          string    `json:"id"`
	Condition   string    `json:"condition"`
	Rule        string    `json:"rule,omitempty"`
	Severity    string    `json:"severity,omitempty"`
	Signal      string    `json:"signal,omitempty"`
	Service     string    `json:"service,omitempty"`
	Description string    `json:"description,omitempty"`
	Targets     []string  `json:"targets,omitempty"`
	FiredAt     time.Time `json:"firedAt,omitzero"`
	ResolvedAt  time.Time `json:"resolvedAt,omitzero"`
}

// Bounds of the fields, in bytes and in number. Longer texts are cut, except for the id, which must not be.
const (
	maxID      = 2 << 10
	maxText    = 2 << 10
	maxTargets = 32
)

// document holds both forms of alerts: the common alert schema of Azure Monitor, and the form that the engine's
// documentation prescribes for a flow behind Fabric Activator, which has no schema of its own for this.
type document struct {
	SchemaID string `json:"schemaId"`
	Data     struct {
		Essentials struct {
			AlertID          string   `json:"alertId"`
			AlertRule        string   `json:"alertRule"`
			Severity         string   `json:"severity"`
			SignalType       string   `json:"signalType"`
			MonitorCondition string   `json:"monitorCondition"`
			Service          string   `json:"monitoringService"`
			TargetIDs        []string `json:"alertTargetIDs"`
			FiredDateTime    string   `json:"firedDateTime"`
			ResolvedDateTime string   `json:"resolvedDateTime"`
			Description      string   `json:"description"`
		} `json:"essentials"`
	} `json:"data"`

	RuleID      string `json:"ruleId"`
	RuleName    string `json:"ruleName"`
	ObjectID    string `json:"objectId"`
	ActivatedAt string `json:"activatedAt"`
	Severity    string `json:"severity"`
}

// The marks of the two forms.
const (
	commonSchema    = "azureMonitorCommonAlertSchema"
	activatorSchema = "roundhouseActivatorAlert"
)

// Adapt converts an alert in its sender's form to a message: the hook engine.Definition.Adapt. ok is false for
// everything else, the envelope included.
func Adapt(body []byte) (m engine.Message, ok bool, err error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil || d.SchemaID == "" {
		return engine.Message{}, false, nil
	}
	a, err := d.alert()
	if err != nil {
		return engine.Message{}, true, err
	}
	return engine.Message{CorrelationID: engine.DeriveCorrelationID("alert", a.ID, a.Condition), Engine: Engine, Operation: OperationProcess,
		Input: body}, true, nil
}

// ParseAlert reads an alert in either form. Anything else is an ErrAlert.
func ParseAlert(input []byte) (Alert, error) {
	var d document
	if err := json.Unmarshal(input, &d); err != nil {
		return Alert{}, fmt.Errorf("%w: %w", ErrAlert, payload.Explain(err))
	}
	return d.alert()
}

func (d document) alert() (Alert, error) {
	var a Alert
	switch d.SchemaID {
	case commonSchema:
		a = d.common()
	case activatorSchema:
		a = d.activator()
	default:
		return Alert{}, fmt.Errorf("%w: schemaId is %.64q: turn the common alert schema on in the action group", ErrAlert, d.SchemaID)
	}
	switch {
	case a.ID == "" || len(a.ID) > maxID:
		return Alert{}, fmt.Errorf("%w: the id of the alert is missing, or longer than %d bytes", ErrAlert, maxID)
	case a.Condition == "":
		return Alert{}, fmt.Errorf("%w: the condition is neither %s nor %s", ErrAlert, Fired, Resolved)
	}
	return a.bounded(), nil
}

func (d document) common() Alert {
	e := d.Data.Essentials
	a := Alert{ID: e.AlertID, Rule: e.AlertRule, Severity: e.Severity, Signal: e.SignalType, Service: e.Service, Description: e.Description,
		Targets: e.TargetIDs, FiredAt: parseTime(e.FiredDateTime), ResolvedAt: parseTime(e.ResolvedDateTime)}
	for _, condition := range []string{Fired, Resolved} {
		if strings.EqualFold(e.MonitorCondition, condition) {
			a.Condition = condition
		}
	}
	return a
}

// activator returns an activation: the same rule can activate for the same object repeatedly, so the time belongs to
// its identity.
func (d document) activator() Alert {
	a := Alert{Condition: Fired, Rule: d.RuleName, Severity: d.Severity, Service: "Fabric Activator", FiredAt: parseTime(d.ActivatedAt)}
	if d.ObjectID != "" {
		a.Targets = []string{d.ObjectID}
	}
	if d.RuleID != "" && !a.FiredAt.IsZero() {
		a.ID = strings.Join([]string{d.RuleID, d.ObjectID, a.FiredAt.Format(time.RFC3339Nano)}, "|")
	}
	return a
}

func (a Alert) bounded() Alert {
	for _, text := range []*string{&a.Rule, &a.Severity, &a.Signal, &a.Service, &a.Description} {
		*text = clip(*text)
	}
	a.Targets = append([]string(nil), a.Targets[:min(len(a.Targets), maxTargets)]...)
	for i := range a.Targets {
		a.Targets[i] = clip(a.Targets[i])
	}
	return a
}

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxText)], "") }

// parseTime reads RFC 3339; any other text is the zero time, such as the empty text of an alert that is not resolved.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 2000 || t.Year() > 3000 {
		return time.Time{}
	}
	return t.UTC()
}
