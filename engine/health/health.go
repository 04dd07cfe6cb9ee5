// Package health is the engine that checks the components of managed instances (standard, section 4: the operations
// check and aggregate). A schedule starts a check of every instance (Every). A run checks all components of one
// instance in parallel, each within a timeout, and writes the result to the registry, under its lock.
//
// Promises: an instance has one run at a time. The registry's result never becomes older. A slot of the schedule is
// checked once, however often it is sent, and a run whose slot was covered by the check of a later one does nothing.
// A manual check has no slot and covers none. An unhealthy or silent component is a finding, not a failure of the
// run: failures are unreadable lists of components, and a registry that cannot be written. A status change of an
// instance is published (release.EventHealth), at least once, in order.
//
// Storage keys: the registry's field "health" (a Summary). It owns no table.
package health

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
)

// Engine is the engine's name, and Queue its message queue (standard, sections 2 and 4, "Engine Values").
const (
	Engine = "health"
	Queue  = "health-notifications-queue"
)

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationCheck     = "check"
	OperationAggregate = "aggregate"
)

// Distinguish these errors with errors.Is.
var (
	// ErrInput: the message is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrRefused: the health endpoint refuses the request; repeating it cannot help.
	ErrRefused = errors.New("the health endpoint refuses")
)

// Status is the health of a component or an instance.
type Status string

// The statuses, the best first.
const (
	Healthy   Status = "Healthy"
	Degraded  Status = "Degraded"
	Unhealthy Status = "Unhealthy"
)

// severity orders statuses; an unknown one is the worst.
func (s Status) severity() int {
	switch s {
	case Healthy:
		return 0
	case Degraded:
		return 1
	default:
		return 2
	}
}

// Report is a component's report of its own health.
type Report struct {
	Status Status `json:"status"`
	// Message is the reason why it is not healthy.
	Message string `json:"message,omitempty"`
}

// Checker reaches the components of instances. HTTP implements it.
type Checker interface {
	// Components returns the names of an instance's components. Repeating the call cannot fix ErrRefused.
	Components(ctx context.Context, instanceID string) ([]string, error)
	// Check asks a component for its health. An error means that the component was unreachable, or gave no valid
	// answer.
	Check(ctx context.Context, instanceID, component string) (Report, error)
}

// Registry is the part of the registry that the engine uses; *registry.Registry implements it.
type Registry interface {
	engine.Locks
	Update(ctx context.Context, instanceID, jobID string, change func(*registry.Instance) error) (registry.Instance, error)
}

// Config configures the engine. Checker and Registry are required.
type Config struct {
	Checker  Checker
	Registry Registry
	// CheckTimeout bounds one check of a component, which has two tries; default 10 s.
	CheckTimeout time.Duration
	// LockDuration is the duration of the registry's lock; default 5 min. It is held for a moment only, so this is
	// the wait after a process died while holding it.
	LockDuration time.Duration
}

// Validate returns all errors.
func (c Config) Validate() error {
	var errs []error
	if c.Checker == nil || c.Registry == nil {
		errs = append(errs, errors.New("health: Config.Checker and Config.Registry are required"))
	}
	if c.CheckTimeout < 0 || c.LockDuration < 0 {
		errs = append(errs, errors.New("health: durations must not be negative"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.CheckTimeout == 0 {
		c.CheckTimeout = 10 * time.Second
	}
	if c.LockDuration == 0 {
		c.LockDuration = 5 * time.Minute
	}
	return c
}

// Steps are the engine's steps, to be registered as activities. They are safe for concurrent use.
type Steps struct{ config Config }

// New validates the configuration and returns the steps over it.
func New(c Config) (*Steps, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Steps{c.withDefaults()}, nil
}

// fieldHealth is this engine's field of the registry's document.
const fieldHealth = "health"

// Summary is the health of an instance in the registry.
type Summary struct {
	// Status is the status of the worst component.
	Status Status `json:"status"`
	// SinceUtc is the time of the first check with this status.
	SinceUtc time.Time `json:"sinceUtc,omitzero"`
	// Untold means that the change to this status is still unpublished.
	Untold bool `json:"untold,omitempty"`
	// CheckedAtUtc is when the check began.
	CheckedAtUtc time.Time `json:"checkedAtUtc"`
	// ScheduledAtUtc is when the last check of a slot began: slots that were due by then are checked.
	ScheduledAtUtc time.Time `json:"scheduledAtUtc,omitzero"`
	// Components are the components by name.
	Components map[string]Component `json:"components"`
}

// Component is the health of a component in the registry.
type Component struct {
	Report
	// SinceUtc is the time of the first check with this status.
	SinceUtc time.Time `json:"sinceUtc"`
}

// SummaryOf reads the health of an instance from its document; false means that it has not been checked yet.
func SummaryOf(i registry.Instance) (Summary, bool, error) {
	var s Summary
	found, err := i.Field(fieldHealth, &s)
	return s, found, err
}
