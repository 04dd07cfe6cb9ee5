// Package consumers knows the consumers of a rotated credential, and which versions have arrived at them, so that no
// version is retired before its successor has arrived.
//
// A version has two kinds of consumers: the receiver of the event that announces it, and the consumers registered by
// name for the credential (Config.Targets). It has arrived at the receiver when the outbox has delivered that event;
// the registered consumers acknowledge on their own.
//
// Promises:
//
//   - Only a delivered event has arrived. One that is pending, dead, skipped by an operator or not in the outbox has not.
//   - An acknowledgement is recorded once, however often it is sent, and only for a version that the engine knows and a
//     consumer that is registered.
//   - A consumer that has a later version does not need the earlier ones.
//   - A consumer that receives a version late has as much time to adopt it as any other.
//
// It owns the table named by Table. The partition of a credential (engine and target, escaped) has a row for each
// consumer and version; for a consumer the latest versionsKept are kept. The partition "~waiting" has one row for
// each waiting credential: its latest check.
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

// Table is the table of acknowledgements. The program that wires the engine creates it.
const Table = "acknowledgements"

// DefaultPatience is the default of Config.Patience.
const DefaultPatience = 7 * 24 * time.Hour

// MaxName bounds the name of a consumer, in bytes, and MaxConsumers the registered consumers of one credential.
const (
	MaxName      = 64
	MaxConsumers = 20
)

// Distinguish these errors with errors.Is.
var (
	// ErrInvalid: a field of an acknowledgement is missing or too long.
	ErrInvalid = errors.New("invalid acknowledgement")
	// ErrNotRegistered: no consumer with this name is registered for the credential.
	ErrNotRegistered = errors.New("not registered as a consumer")
	// ErrUnknownVersion: the engine knows no such version of the credential, or has not announced it.
	ErrUnknownVersion = errors.New("unknown version")
)

// Outbox reads events; *outbox.Admin is one.
type Outbox interface {
	// Get reads one message. The error is outbox.ErrNotFound if it does not exist.
	Get(ctx context.Context, tenant, id string) (outbox.Record, error)
}

// Target is a credential with consumers that acknowledge on their own.
type Target struct {
	// TenantID is the tenant of the credential, "" for the platform.
	TenantID string
	// Names are the consumers.
	Names []string
}

// Config configures Consumers.
type Config struct {
	// Engine is the engine that rotates the credentials. Required.
	Engine string
	// Tables holds Table. Required.
	Tables tables.Store
	// Outbox has the events that announce versions. Required.
	Outbox Outbox
	// Targets are the credentials with registered consumers, by the name of the target.
	Targets map[string]Target
	// Knows reports whether the engine has announced a version of a target. Required with Targets.
	Knows func(ctx context.Context, target, version string) (bool, error)
	// Patience is the time that a run waits for consumers before it is dead-lettered; DefaultPatience when 0.
	Patience time.Duration
	// Roles are the roles of the task for a version that does not arrive; without roles, everybody may answer.
	Roles []string
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Validate returns all errors.
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

// Consumers checks the consumers of one engine's credentials. It is safe for concurrent use.
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

// Target returns the credential of that name; false without registered consumers.
func (c *Consumers) Target(target string) (Target, bool) {
	t, ok := c.config.Targets[target]
	return t, ok && len(t.Names) > 0
}

// Targets returns the sorted names of the credentials with registered consumers.
func (c *Consumers) Targets() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.config.Targets)), func(name string) bool { return len(c.config.Targets[name].Names) == 0 })
}

// partition returns the partition of a credential.
func (c *Consumers) partition(target string) string {
	return tables.EscapeKey(c.config.Engine + "/" + target)
}
