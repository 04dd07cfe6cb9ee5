// Package alerts is the engine of the observability service: an alert of Azure Monitor (common alert schema), or of a
// flow behind Fabric Activator, is read, and told on as events by the rules that match it.
//
// It promises that an alert is told once for each rule and condition, however often its sender repeats it: the alert id
// and the condition (Fired or Resolved) are the identity of a run and of its events. The events of one alert keep their
// order. What the alert's context holds does not leave the engine. The package owns no storage keys.
package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Engine is the engine's name, Queue where its messages arrive (standard, section 2, "Engine Values").
const (
	Engine = "alerts"
	Queue  = "monitor-alerts-queue"
)

// OperationProcess is the engine's operation, as the history shows it (standard, section 4, "Engine Values").
const OperationProcess = "process"

// DefaultEvent is the type of the event that an alert becomes when there are no rules.
const DefaultEvent = "alert.raised"

// ErrAlert: the message is no alert that this engine understands; repeating it cannot help.
var ErrAlert = errors.New("not an alert")

// Rule says what becomes of the alerts that match it. A field that is empty matches all; of a list, one has to match.
// Letter case does not matter.
type Rule struct {
	// Name is the rule's own, unique. Required.
	Name string `json:"name"`
	// Severities are Sev0 to Sev4, Conditions Fired and Resolved, Services those that monitor, such as Platform.
	Severities []string `json:"severities,omitempty"`
	Conditions []string `json:"conditions,omitempty"`
	Services   []string `json:"services,omitempty"`
	// AlertRule and Target are the beginning of the alert rule's name and of a target's ARM id.
	AlertRule string `json:"alertRule,omitempty"`
	Target    string `json:"target,omitempty"`
	// Event is the type of the event to tell; "" tells none, which together with Stop silences alerts.
	Event string `json:"event,omitempty"`
	// TenantID says whose event it is; the message's tenant, or else the publisher, when it is empty.
	TenantID string `json:"tenantId,omitempty"`
	// Stop keeps the alerts from the rules that follow.
	Stop bool `json:"stop,omitempty"`
}

// ParseRules reads rules as a setting holds them, a JSON array; "" gives none. Unknown fields are errors, because a
// condition that is misspelt would match everything.
func ParseRules(text string) ([]Rule, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var rules []Rule
	if err := d.Decode(&rules); err != nil {
		return nil, fmt.Errorf("alert rules: a JSON array of rules is expected: %w", err)
	}
	return rules, (Config{Rules: rules}).Validate()
}

// Config is what the steps need.
type Config struct {
	// Rules apply in order. With none, every alert becomes a DefaultEvent.
	Rules []Rule
}

// Validate names everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	names := map[string]bool{}
	for n, r := range c.Rules {
		if r.Name == "" || names[r.Name] {
			errs = append(errs, fmt.Errorf("alert rule %d: give it a name that no other rule has", n+1))
		}
		names[r.Name] = true
		errs = append(errs,
			known(r.Name, "severity", r.Severities, "Sev0", "Sev1", "Sev2", "Sev3", "Sev4"),
			known(r.Name, "condition", r.Conditions, Fired, Resolved))
		if r.Event == "" && !r.Stop {
			errs = append(errs, fmt.Errorf("alert rule %s does nothing: set event, or stop", r.Name))
		}
	}
	return errors.Join(errs...)
}

func known(rule, what string, values []string, all ...string) error {
	for _, v := range values {
		if !contains(all, v) {
			return fmt.Errorf("alert rule %s: the %s %q is none of %s", rule, what, v, strings.Join(all, ", "))
		}
	}
	return nil
}

func contains(list []string, value string) bool {
	return slices.ContainsFunc(list, func(v string) bool { return strings.EqualFold(v, value) })
}

// matches says whether an alert falls under the rule.
func (r Rule) matches(a Alert) bool {
	among := func(list []string, value string) bool { return len(list) == 0 || contains(list, value) }
	return among(r.Severities, a.Severity) && among(r.Conditions, a.Condition) && among(r.Services, a.Service) &&
		hasPrefixFold(a.Rule, r.AlertRule) &&
		(r.Target == "" || slices.ContainsFunc(a.Targets, func(t string) bool { return hasPrefixFold(t, r.Target) }))
}

func hasPrefixFold(s, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(s), strings.ToLower(prefix))
}
