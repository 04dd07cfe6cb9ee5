// Package health is the engine that looks whether the components of managed instances are well (standard, section 4: the
// operations check and aggregate). A schedule asks for a check of every instance (Every); a run checks all components of one
// instance at once, each within a time-out, and writes what it found into the registry, under its lock.
//
// It promises that an instance has one run at a time; that what the registry says is never older than what it said before;
// that a slot of the schedule is checked once, however often it is sent; that a run whose slot the check of a later one has
// covered does nothing; and that a check by hand, which has no slot, covers none. A component that is ill, or does not answer, is a finding and no failure of the run: failures
// are lists of components that cannot be had, and a registry that cannot be written. When an instance becomes another than it was,
// that is published (release.EventHealth), at least once, in order.
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

// Engine is the engine's name, and Queue where its messages arrive (standard, sections 2 and 4, "Engine Values").
const (
	Engine = "health"
	Queue  = "health-notifications-queue"
)

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationCheck     = "check"
	OperationAggregate = "aggregate"
)

// These errors are told apart with errors.Is.
var (
	// ErrInput: the message is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrRefused: the health endpoint does not take the request; repeating it cannot help.
	ErrRefused = errors.New("the health endpoint refuses")
)

// Status is how a component, or an instance, is.
type Status string

// The statuses, the best first.
const (
	Healthy   Status = "Healthy"
	Degraded  Status = "Degraded"
	Unhealthy Status = "Unhealthy"
)

// severity orders statuses; what is unknown is as bad as it can be.
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

// Report is what a component says of itself.
type Report struct {
	Status Status `json:"status"`
	// Message says why it is not healthy.
	Message string `json:"message,omitempty"`
}

// Checker is how the engine reaches the components of instances. HTTP implements it.
type Checker interface {
	// Components names the components of an instance. ErrRefused cannot be mended by repeating it.
	Components(ctx context.Context, instanceID string) ([]string, error)
	// Check asks a component how it is. An error says that it could not be asked, or gave no answer that makes sense.
	Check(ctx context.Context, instanceID, component string) (Report, error)
}

// Registry is what the engine needs of the registry; *registry.Registry has it.
type Registry interface {
	engine.Locks
	Update(ctx context.Context, instanceID, jobID string, change func(*registry.Instance) error) (registry.Instance, error)
}

// Config is what the engine needs. Checker and Registry are required.
type Config struct {
	Checker  Checker
	Registry Registry
	// CheckTimeout bounds one look at a component, of which it gets two; default 10 s.
	CheckTimeout time.Duration
	// LockDuration is for how long the registry's lock is taken; default 5 min. It is held for a moment only, so this is
	// how long others wait for a process that died with it.
	LockDuration time.Duration
}

// Validate names everything that is wrong.
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

// fieldHealth is the field of the registry's document that belongs to this engine.
const fieldHealth = "health"

// Summary is what the registry says of the health of an instance.
type Summary struct {
	// Status is that of the component that is worst.
	Status Status `json:"status"`
	// SinceUtc is the check that found this status first.
	SinceUtc time.Time `json:"sinceUtc,omitzero"`
	// Untold says that the change to this status is still to be published.
	Untold bool `json:"untold,omitempty"`
	// CheckedAtUtc is when the check began.
	CheckedAtUtc time.Time `json:"checkedAtUtc"`
	// ScheduledAtUtc is when the last check of a slot began: slots that were due by then are checked.
	ScheduledAtUtc time.Time `json:"scheduledAtUtc,omitzero"`
	// Components are the components by name.
	Components map[string]Component `json:"components"`
}

// Component is what the registry says of a component.
type Component struct {
	Report
	// SinceUtc is the check that found this status first.
	SinceUtc time.Time `json:"sinceUtc"`
}

// SummaryOf reads the health of an instance from its document; false says that it has not been checked yet.
func SummaryOf(i registry.Instance) (Summary, bool, error) {
	var s Summary
	found, err := i.Field(fieldHealth, &s)
	return s, found, err
}
