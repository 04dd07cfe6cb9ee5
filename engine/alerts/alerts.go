// Package alerts is the engine of the observability service: it reads an alert of Azure Monitor (common alert
// schema), or of a flow behind Fabric Activator, and publishes events by the rules that match it.
//
// It publishes an alert once for each rule and condition, however often its sender repeats it: the alert id and the
// condition (Fired or Resolved) are the identity of a run and of its events. The events of one alert keep their
// order. The alert's context does not leave the engine. The package owns no storage keys.
package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Engine is the engine's name, Queue its message queue (standard, section 2, "Engine Values").
const (
	Engine = "alerts"
	Queue  = "monitor-alerts-queue"
)

// OperationProcess is the engine's operation, as the history shows it (standard, section 4, "Engine Values").
const OperationProcess = "process"

// DefaultEvent is the type of an alert's event without rules.
const DefaultEvent = "alert.raised"

// ErrAlert: the message is not a known alert; repeating it cannot help.
var ErrAlert = errors.New("not an alert")

// Rule routes the alerts that match it. An empty field matches all; of a list, one has to match. Letter case does not
// matter.
type Rule struct {
	// Name is the unique name of the rule. Required.
	Name string `json:"name"`
	// Severities are Sev0 to Sev4, Conditions Fired and Resolved, Services the monitoring services, such as Platform.
	Severities []string `json:"severities,omitempty"`
	Conditions []string `json:"conditions,omitempty"`
	Services   []string `json:"services,omitempty"`
	// AlertRule and Target are prefixes of the alert rule's name and of a target's ARM id.
	AlertRule string `json:"alertRule,omitempty"`
	Target    string `json:"target,omitempty"`
	// Event is the type of the published event; "" publishes none, which together with Stop silences alerts.
	Event string `json:"event,omitempty"`
	// TenantID is the tenant of the event; if empty, the message's tenant, or else the publisher.
	TenantID string `json:"tenantId,omitempty"`
	// Stop skips the following rules for the alert.
	Stop bool `json:"stop,omitempty"`
}

// ParseRules reads rules from a setting, a JSON array; "" means none. Unknown fields are errors, because a misspelt
// condition would match everything.
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

// Config configures the steps.
type Config struct {
	// Rules apply in order. Without rules, every alert becomes a DefaultEvent.
	Rules []Rule
}

// Validate returns all errors.
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

// matches reports whether an alert falls under the rule.
func (r Rule) matches(a Alert) bool {
	among := func(list []string, value string) bool { return len(list) == 0 || contains(list, value) }
	return among(r.Severities, a.Severity) && among(r.Conditions, a.Condition) && among(r.Services, a.Service) &&
		hasPrefixFold(a.Rule, r.AlertRule) &&
		(r.Target == "" || slices.ContainsFunc(a.Targets, func(t string) bool { return hasPrefixFold(t, r.Target) }))
}

func hasPrefixFold(s, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(s), strings.ToLower(prefix))
}
