// Package provisioning is the engine behind the marketplace: customers buy, change or cancel a SaaS subscription or a
// managed application there. Each of these events becomes a change of the instance in the registry, a command to the
// instance, and an answer to the marketplace.
//
// Promises:
//
//   - No message is trusted. The engine reads the operation, the subscription or the application from the service
//     itself, and compares it with the message.
//   - A repeated, late or reordered notice changes nothing that a newer one has settled.
//   - A running instance is stopped only by a notice that demands it: a repeated announcement keeps it (rules).
//   - The bootstrap command is published if and only if the registration is committed, and a marketplace operation
//     that waits for an answer gets one as soon as the run knows it.
//   - No personal data of a notice is stored in rounds or history: ids, plans and states only.
//
// The instance of a SaaS offer is its subscription, that of a managed application the application. The package owns no
// storage keys: instances live in the registry.
package provisioning

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/services/marketplace"
)

// Engine is the engine's name, Queue its message queue (standard, section 2, "Engine Values").
const (
	Engine = "provisioning"
	Queue  = "webhook-queue"
)

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationReceived     = "webhook-received"
	OperationRegistered   = "instance-registered"
	OperationBootstrapped = "bootstrap-complete"
)

// EventBootstrapped is the name of the event that an instance raises when it has carried out the bootstrap command.
const EventBootstrapped = "bootstrap-complete"

// The types of the commands that the engine publishes to instances.
const (
	CommandBootstrap = "provisioning.bootstrap"
	CommandChanged   = "provisioning.changed"
)

// DefaultBootstrapDeadline is the time that an instance has for its bootstrap.
const DefaultBootstrapDeadline = time.Hour

// Distinguish these errors with errors.Is.
var (
	// ErrNotice: the message is not a known notice; repeating it cannot help.
	ErrNotice = errors.New("not a notice of the marketplace")
	// ErrForged: the marketplace's data of the operation differs from the message.
	ErrForged = errors.New("the marketplace says otherwise")
	// ErrTooEarly: the service does not have the message's state yet, or no longer; it may get there.
	ErrTooEarly = errors.New("the marketplace is not there")
	// ErrDeclined: the marketplace took a change as accepted that had to be declined; an operator has to end it
	// there.
	ErrDeclined = errors.New("too late to decline")
	// ErrBootstrap: the instance did not start.
	ErrBootstrap = errors.New("bootstrap failed")

	// ErrNotRegistered and ErrRegistered are errors of a Registry.
	ErrNotRegistered = errors.New("no such instance")
	ErrRegistered    = errors.New("the instance is registered already")
)

// Marketplace is the part of the services that the engine uses; marketplace.Client implements it.
type Marketplace interface {
	Operation(ctx context.Context, subscriptionID, operationID string) (marketplace.Operation, error)
	Pending(ctx context.Context, subscriptionID string) ([]marketplace.Operation, error)
	Subscription(ctx context.Context, subscriptionID string) (marketplace.Subscription, error)
	Acknowledge(ctx context.Context, subscriptionID, operationID string, a marketplace.Acknowledgement) error
	Activate(ctx context.Context, subscriptionID, planID string, quantity marketplace.Quantity) error
	Application(ctx context.Context, id string) (marketplace.Application, error)
}

// Registry keeps instances. Each change is a compare-and-set.
type Registry interface {
	// Create adds an instance, or returns ErrRegistered.
	Create(ctx context.Context, i Instance) error
	// Update reads the instance, applies change, and stores it if it is unchanged in storage; otherwise it starts
	// over. An error of change leaves the instance unchanged and is returned. ErrNotRegistered means that the
	// instance does not exist, a *LockedError that another job has locked it.
	Update(ctx context.Context, instanceID string, change func(*Instance) error) error
}

// LockedError means that another job, for example an update, has locked the instance.
type LockedError struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

// Error names the job and the expiry.
func (e *LockedError) Error() string {
	return fmt.Sprintf("the instance is locked by job %q until %s", e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// State is the state of an instance.
type State string

// The states of an instance.
const (
	StateProvisioning State = "Provisioning" // the bootstrap is in progress, or the application is being created
	StateActive       State = "Active"
	StateSuspended    State = "Suspended"
	StateFailed       State = "Failed"
	StateRemoving     State = "Removing"
	StateRemoved      State = "Removed"
)

// Instance is the engine's view of an instance.
type Instance struct {
	ID       string
	TenantID string
	// Source is SourceMarketplace or SourceManagedApp.
	Source   string
	PlanID   string
	Quantity string
	State    State
	// StateAtUtc is the time of the newest notice that set State, PlanAtUtc of the newest that set PlanID and Quantity.
	StateAtUtc time.Time
	PlanAtUtc  time.Time
	// JobID is the correlation id of the run that set State.
	JobID string
}

// Config configures the steps.
type Config struct {
	// Marketplace and Registry are required.
	Marketplace Marketplace
	Registry    Registry
	// Plans are the plans that customers may change to; empty means all of the offer.
	Plans []string
	// BootstrapDeadline is the time that an instance has for its bootstrap; DefaultBootstrapDeadline when 0. A run
	// keeps its initial value.
	BootstrapDeadline time.Duration
}

// Validate returns all errors.
func (c Config) Validate() error {
	var errs []error
	if c.Marketplace == nil {
		errs = append(errs, errors.New("provisioning: Config.Marketplace is missing"))
	}
	if c.Registry == nil {
		errs = append(errs, errors.New("provisioning: Config.Registry is missing"))
	}
	if c.BootstrapDeadline < 0 {
		errs = append(errs, errors.New("provisioning: Config.BootstrapDeadline is negative"))
	}
	return errors.Join(errs...)
}

// Steps are the engine's steps. They are safe for concurrent use.
type Steps struct{ config Config }

// New validates config and returns the steps over it.
func New(config Config) (*Steps, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.BootstrapDeadline == 0 {
		config.BootstrapDeadline = DefaultBootstrapDeadline
	}
	return &Steps{config}, nil
}
