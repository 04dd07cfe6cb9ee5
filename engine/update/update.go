// Package update is the engine that updates the components of a managed instance (standard, section 4: the operations
// process and component-update). Process plans an update, ComponentUpdate brings one component to a version and makes
// sure of it; the orchestration does one component after the other, in the order of the message, and takes all of them
// back, in reverse, when one fails.
//
// It promises that an instance has one update at a time, under the registry's lock; that the registry says of each
// component what it was brought to last; and that an update which failed has been rolled back, or says of what it could
// not. Updates may arrive in any order: what is newest stays, and an update that comes behind a newer one touches nothing and
// ends as superseded (see Desired). Components are told versions, never secrets. How an update ends is published
// (release.EventFinished).
//
// Storage keys: the registry's fields "version" (of the instance), "components" (by name, with version and
// updatedAtUtc), "desired" (what the instance has to have) and "pendingUpdate" (what the components were before the update that
// goes on). It owns no table.
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

// Engine is the engine's name, and Queue where its messages arrive (standard, sections 2 and 4, "Engine Values").
const (
	Engine = "update"
	Queue  = "update-notifications-queue"
)

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationProcess         = "process"
	OperationComponentUpdate = "component-update"
)

// These errors are told apart with errors.Is.
var (
	// ErrInput: the message is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrRefused: the component's management does not take the request; repeating it cannot help.
	ErrRefused = errors.New("the component refuses")
	// ErrNoComponent: the instance has no such component.
	ErrNoComponent = errors.New("no such component")
	// ErrFailed: the component says that it could not become the version.
	ErrFailed = errors.New("the component failed")
	// ErrUpdating: the component has not become the version yet.
	ErrUpdating = errors.New("the component is updating")
)

// State is where a component stands.
type State string

// The states.
const (
	Updating State = "Updating"
	Ready    State = "Ready"
	Failed   State = "Failed"
)

// Status is what a component says of itself.
type Status struct {
	Version string `json:"version"`
	State   State  `json:"state"`
	// Message says why it failed.
	Message string `json:"message,omitempty"`
}

// Components is how the engine reaches the components of instances. HTTP implements it.
type Components interface {
	// Status tells where a component stands: ErrNoComponent when there is none.
	Status(ctx context.Context, instanceID, component string) (Status, error)
	// Apply asks a component to become a version, and does not wait for it. The same key is the same request. With version
	// "" the component goes away. ErrRefused cannot be mended by repeating it.
	Apply(ctx context.Context, instanceID, component, version, key string) error
}

// Registry is what the engine needs of the registry; *registry.Registry has it.
type Registry interface {
	engine.Locks
	Update(ctx context.Context, instanceID, jobID string, change func(*registry.Instance) error) (registry.Instance, error)
}

// Config is what the engine needs. Components and Registry are required.
type Config struct {
	Components Components
	Registry   Registry
	// VerifyTimeout is how long a component may take to become a version; default 30 min. VerifyInterval is the longest
	// pause between two looks at it; default 30 s.
	VerifyTimeout  time.Duration
	VerifyInterval time.Duration
	// LockDuration is for how long the registry's lock is taken at a time; default registry.DefaultLockDuration. It is
	// renewed while an update takes longer.
	LockDuration time.Duration
	// Approvals say, by ring, who has to approve updates of that ring whose messages do not say so themselves: holders of roles, or
	// an assignee. They are looked at when an update begins.
	Approvals map[string]ApprovalRequest
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Validate names everything that is wrong.
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

// CheckApprovals names everything that is wrong with Config.Approvals.
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

// Component is what the registry says of a component.
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

// note writes into a document what a component has become; entries of others stay as they are.
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
		return nil // so that it can be noted again
	}
	raw, err := json.Marshal(Component{Version: version, UpdatedAtUtc: at.UTC().Truncate(time.Microsecond)})
	if err != nil {
		return fmt.Errorf("note component %s: %w", component, err)
	}
	components[component] = raw
	return i.SetField(fieldComponents, components)
}
