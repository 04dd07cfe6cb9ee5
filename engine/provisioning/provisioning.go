// Package provisioning is the engine behind the marketplace: what a customer buys, changes or ends there, as a SaaS
// subscription or as a managed application, becomes a change of the instance in the registry, a command to the instance,
// and an answer to the marketplace.
//
// It promises:
//
//   - Nothing is done on the word of a message. The operation, the subscription or the application is read from the
//     service itself, and has to be what the message says.
//   - A notice that comes twice, late or out of order changes nothing that a newer one has settled.
//   - An instance that runs is taken down only by a notice that says so: what announces it again keeps it (rules).
//   - The bootstrap command is told if and only if the registration is committed, and a marketplace operation that waits
//     for an answer gets one as soon as the run knows it.
//   - Of what a notice says about persons, nothing gets into rounds or history: ids, plans and states only.
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

// Engine is the engine's name, Queue where its messages arrive (standard, section 2, "Engine Values").
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

// DefaultBootstrapDeadline is how long an instance gets for its bootstrap.
const DefaultBootstrapDeadline = time.Hour

// These errors are told apart with errors.Is.
var (
	// ErrNotice: the message is no notice that this engine understands; repeating it cannot help.
	ErrNotice = errors.New("not a notice of the marketplace")
	// ErrForged: the marketplace knows the operation, but as another one than the message says.
	ErrForged = errors.New("the marketplace says otherwise")
	// ErrTooEarly: the service is not yet, or not any more, where the message says; it may get there.
	ErrTooEarly = errors.New("the marketplace is not there")
	// ErrDeclined: the marketplace took a change as accepted that had to be declined; a person has to end it there.
	ErrDeclined = errors.New("too late to decline")
	// ErrBootstrap: the instance did not come up.
	ErrBootstrap = errors.New("bootstrap failed")

	// ErrNotRegistered and ErrRegistered are what a Registry returns.
	ErrNotRegistered = errors.New("no such instance")
	ErrRegistered    = errors.New("the instance is registered already")
)

// Marketplace is what the engine asks of the services; marketplace.Client implements it.
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
	// Update reads the instance, lets change change it, and stores it if nobody else did in between; else it begins
	// anew. An error of change leaves all as it is and is returned. ErrNotRegistered says that there is no such instance,
	// a *LockedError that another job has locked it.
	Update(ctx context.Context, instanceID string, change func(*Instance) error) error
}

// LockedError says that another job, an update for example, has locked the instance.
type LockedError struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

// Error says who has it, and until when.
func (e *LockedError) Error() string {
	return fmt.Sprintf("the instance is locked by job %q until %s", e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// State is where an instance stands.
type State string

// The states of an instance.
const (
	StateProvisioning State = "Provisioning" // the bootstrap goes on, or the application is being made
	StateActive       State = "Active"
	StateSuspended    State = "Suspended"
	StateFailed       State = "Failed"
	StateRemoving     State = "Removing"
	StateRemoved      State = "Removed"
)

// Instance is what the engine knows of an instance.
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

// Config is what the steps need.
type Config struct {
	// Marketplace and Registry are required.
	Marketplace Marketplace
	Registry    Registry
	// Plans are the plans that customers may change to; with none, all of the offer.
	Plans []string
	// BootstrapDeadline is how long an instance gets for its bootstrap; DefaultBootstrapDeadline when 0. A run keeps the
	// one that it began with.
	BootstrapDeadline time.Duration
}

// Validate names everything that is wrong.
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
