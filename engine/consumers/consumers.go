// Package consumers knows who needs a credential that an engine rotates, and which of its versions have arrived at whom, so
// that nothing is retired before its successor is known to have arrived.
//
// A version has two kinds of consumers: the receiver of the event that announces it, at whom it has arrived when the outbox
// has delivered that event, and the consumers that are registered by name for the credential (Config.Targets), which
// acknowledge on their own.
//
// It promises:
//
//   - Only a delivered event has arrived. One that is pending, dead, skipped by an operator or not in the outbox has not.
//   - An acknowledgement is recorded once, however often it is sent, and only for a version that the engine knows and a
//     consumer that is registered.
//   - A consumer that has a later version does not need the earlier ones.
//   - A consumer at which a version arrives late has as much time to take it up as any other.
//
// It owns the table named by Table. The partition of a credential (engine and target, escaped) has a row for each consumer and
// version; of a consumer the latest versionsKept are kept. The partition "~waiting" has one row for each credential that was
// seen waiting: its latest look.
package consumers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// Table is the table of acknowledgements. Whoever wires the engine creates it.
const Table = "acknowledgements"

// DefaultPatience is the default of Config.Patience.
const DefaultPatience = 7 * 24 * time.Hour

// MaxName bounds the name of a consumer, in bytes, and MaxConsumers the consumers that are registered for one credential.
const (
	MaxName      = 64
	MaxConsumers = 20
)

// These errors are told apart with errors.Is.
var (
	// ErrInvalid: an acknowledgement lacks something, or something is too long.
	ErrInvalid = errors.New("invalid acknowledgement")
	// ErrNotRegistered: nobody of this name is registered as a consumer of the credential.
	ErrNotRegistered = errors.New("not registered as a consumer")
	// ErrUnknownVersion: the engine knows no such version of the credential, or has not announced it.
	ErrUnknownVersion = errors.New("unknown version")
)

// Outbox reads events; *outbox.Admin is one.
type Outbox interface {
	// Get reads one message. The error is outbox.ErrNotFound when there is none.
	Get(ctx context.Context, tenant, id string) (outbox.Record, error)
}

// Target is a credential with consumers that acknowledge on their own.
type Target struct {
	// TenantID is whose credential it is, "" for the platform.
	TenantID string
	// Names are the consumers.
	Names []string
}

// Config is what Consumers need.
type Config struct {
	// Engine is the engine that rotates the credentials. Required.
	Engine string
	// Tables holds Table. Required.
	Tables tables.Store
	// Outbox has the events that announce versions. Required.
	Outbox Outbox
	// Targets are the credentials that have registered consumers, by what the engine rotates.
	Targets map[string]Target
	// Knows says whether the engine has announced a version of a target. Required when there are Targets.
	Knows func(ctx context.Context, target, version string) (bool, error)
	// Patience is for how long a run waits for consumers before it becomes a dead letter; DefaultPatience when 0.
	Patience time.Duration
	// Roles are who is asked when a version does not arrive; with none, everybody.
	Roles []string
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Validate names everything that is missing or wrong.
func (c Config) Validate() error {
	var errs []error
	if c.Engine == "" || c.Tables == nil || c.Outbox == nil {
		errs = append(errs, errors.New("Config.Engine, Config.Tables and Config.Outbox are required"))
	}
	if len(c.Targets) > 0 && c.Knows == nil {
		errs = append(errs, errors.New("Config.Knows is required: there are targets with consumers"))
	}
	if c.Patience < 0 {
		errs = append(errs, errors.New("Config.Patience is negative"))
	}
	for _, target := range slices.Sorted(maps.Keys(c.Targets)) {
		if err := CheckNames(c.Targets[target].Names); err != nil {
			errs = append(errs, fmt.Errorf("%.80q: %w", target, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("consumers of %s: %w", c.Engine, err)
	}
	return nil
}

// CheckNames checks the names of a credential's consumers: up to MaxConsumers, each once, of 1 to MaxName letters, digits,
// dots, dashes and underscores.
func CheckNames(names []string) error {
	if len(names) > MaxConsumers {
		return fmt.Errorf("there are %d consumers, at most %d can be registered", len(names), MaxConsumers)
	}
	for i, name := range names {
		if !validName(name) {
			return fmt.Errorf("the consumer %.80q needs a name of 1 to %d letters, digits, dots, dashes and underscores", name, MaxName)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("the consumer %q is listed twice", name)
		}
	}
	return nil
}

func validName(name string) bool {
	for _, r := range name {
		if r > 'z' || r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a') {
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}

// Consumers are those of one engine's credentials. They are safe for concurrent use.
type Consumers struct{ config Config }

// New validates config and makes Consumers.
func New(config Config) (*Consumers, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Patience == 0 {
		config.Patience = DefaultPatience
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Consumers{config}, nil
}

// Target is the credential of that name; false when nobody is registered for it.
func (c *Consumers) Target(target string) (Target, bool) {
	t, ok := c.config.Targets[target]
	return t, ok && len(t.Names) > 0
}

// Targets are the names of the credentials that have registered consumers, sorted.
func (c *Consumers) Targets() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.config.Targets)), func(name string) bool { return len(c.config.Targets[name].Names) == 0 })
}

// partition is that of a credential.
func (c *Consumers) partition(target string) string {
	return tables.EscapeKey(c.config.Engine + "/" + target)
}
