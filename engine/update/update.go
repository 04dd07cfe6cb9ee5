// Package update is the engine that updates the components of a managed instance (standard, section 4: the operations
// process and component-update). Process plans an update, ComponentUpdate brings one component to a version and
// verifies it; the orchestration updates one component after the other, in the order of the message, and undoes all
// of them, in reverse, when one fails.
//
// An instance has one update at a time, under the registry's lock. The registry has the last version of each
// component. A failed update has been rolled back, or names the components that it could not roll back. Updates may
// arrive in any order: the newest wins, and an update behind a newer one changes nothing and ends as superseded (see
// Desired). Components get versions, never secrets. The outcome of an update is published (release.EventFinished).
//
// Storage keys: the registry's fields "version" (of the instance), "components" (by name, with version and
// updatedAtUtc), "desired" (the desired state) and "pendingUpdate" (the previous versions of the components during an
// update). It owns no table.
package update

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
)

// Engine is the engine's name, and Queue its message queue (standard, sections 2 and 4, "Engine Values").
const (
	Engine = "update"
	Queue  = "update-notifications-queue"
)

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationProcess         = "process"
	OperationComponentUpdate = "component-update"
)

// Distinguish these errors with errors.Is.
var (
	// ErrInput: the message is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrRefused: the component's management refuses the request; repeating it cannot help.
	ErrRefused = errors.New("the component refuses")
	// ErrNoComponent: the instance has no such component.
	ErrNoComponent = errors.New("no such component")
	// ErrFailed: the component reports that it could not install the version.
	ErrFailed = errors.New("the component failed")
	// ErrUpdating: the component has not installed the version yet.
	ErrUpdating = errors.New("the component is updating")
)

// State is the state of a component.
type State string

// The states.
const (
	Updating State = "Updating"
	Ready    State = "Ready"
	Failed   State = "Failed"
)

// Status is a component's own report.
type Status struct {
	Version string `json:"version"`
	State   State  `json:"state"`
	// Message is the reason of a failure.
	Message string `json:"message,omitempty"`
}

// Components reaches the components of instances. HTTP implements it.
type Components interface {
	// Status returns the status of a component: ErrNoComponent if it does not exist.
	Status(ctx context.Context, instanceID, component string) (Status, error)
	// Apply requests a version of a component, and does not wait for it. The same key is the same request. Version ""
	// removes the component. Repeating the call cannot fix ErrRefused.
	Apply(ctx context.Context, instanceID, component, version, key string) error
}

// Registry is the part of the registry that the engine uses; *registry.Registry implements it.
type Registry interface {
	engine.Locks
	Update(ctx context.Context, instanceID, jobID string, change func(*registry.Instance) error) (registry.Instance, error)
}

// Config configures the engine. Components and Registry are required.
type Config struct {
	Components Components
	Registry   Registry
	// VerifyTimeout bounds the time for a component to install a version; default 30 min. VerifyInterval is the
	// longest pause between two checks; default 30 s.
	VerifyTimeout  time.Duration
	VerifyInterval time.Duration
	// LockDuration is the duration of the registry's lock; default registry.DefaultLockDuration. It is renewed while
	// an update takes longer.
	LockDuration time.Duration
	// Approvals lists, by ring, the approvers of updates whose messages name none: holders of roles, or an assignee.
	// They are read when an update begins.
	Approvals map[string]ApprovalRequest
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Validate returns all errors.
func (c Config) Validate() error {
	var errs []error
	if c.Components == nil || c.Registry == nil {
		errs = append(errs, errors.New("update: Config.Components and Config.Registry are required"))
	}
	if c.VerifyTimeout < 0 || c.VerifyInterval < 0 || c.LockDuration < 0 {
		errs = append(errs, errors.New("update: durations must not be negative"))
	}
	if err := CheckApprovals(c.Approvals); err != nil {
		errs = append(errs, fmt.Errorf("update: %w", err))
	}
	return errors.Join(errs...)
}

// CheckApprovals returns all errors of Config.Approvals.
func CheckApprovals(approvals map[string]ApprovalRequest) error {
	var errs []error
	for _, ring := range slices.Sorted(maps.Keys(approvals)) {
		a := approvals[ring]
		if !word.MatchString(ring) || !a.valid() || len(a.Roles) == 0 && a.Assignee == "" {
			errs = append(errs, fmt.Errorf("the approval of the ring %.80q within %d s: name the ring, roles or an assignee, and a deadline of at most %v",
				ring, a.DeadlineSeconds, longestDeadline))
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.VerifyTimeout == 0 {
		c.VerifyTimeout = 30 * time.Minute
	}
	if c.VerifyInterval == 0 {
		c.VerifyInterval = 30 * time.Second
	}
	if c.LockDuration == 0 {
		c.LockDuration = registry.DefaultLockDuration
	}
	if c.Now == nil {
		c.Now = time.Now
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

// The fields of the registry's document that belong to this engine.
const (
	fieldVersion    = "version"
	fieldComponents = "components"
	fieldPending    = "pendingUpdate"
	fieldDesired    = "desired"
)

// Component is a component in the registry.
type Component struct {
	Version      string    `json:"version"`
	UpdatedAtUtc time.Time `json:"updatedAtUtc"`
}

// VersionOf reads the version of an instance from its document; "" for none.
func VersionOf(i registry.Instance) (string, error) {
	var version string
	_, err := i.Field(fieldVersion, &version)
	return version, err
}

// ComponentsOf reads the components of an instance from its document.
func ComponentsOf(i registry.Instance) (map[string]Component, error) {
	var components map[string]Component
	_, err := i.Field(fieldComponents, &components)
	return components, err
}

// note records a component's version in a document; other entries stay unchanged.
func note(i *registry.Instance, component, version string, at time.Time) error {
	components := map[string]json.RawMessage{}
	if _, err := i.Field(fieldComponents, &components); err != nil {
		return err
	}
	if version == "" {
		delete(components, component)
		return i.SetField(fieldComponents, components)
	}
	var was Component
	if raw, ok := components[component]; ok && json.Unmarshal(raw, &was) == nil && was.Version == version {
		return nil // so that it can be recorded again
	}
	raw, err := json.Marshal(Component{Version: version, UpdatedAtUtc: at.UTC().Truncate(time.Microsecond)})
	if err != nil {
		return fmt.Errorf("note component %s: %w", component, err)
	}
	components[component] = raw
	return i.SetField(fieldComponents, components)
}
