// Package spn is the engine that rotates the secret of a service principal. It makes a new password for its
// application in Entra ID, stores it in the secret store, probes it until the login accepts it, and announces it to
// the consumers. When the overlap is over and they have it, the engine disables the versions of its older passwords,
// and later removes the passwords.
//
// Promises:
//
//   - A slot of an application is rotated once. Repeated steps in any process find and keep a password that is in the
//     secret store; a password whose value never got there is removed and replaced.
//   - Only passwords whose display name carries the engine's mark and Config.Owner are ever removed, and only while
//     their replacement exists.
//   - The version of an older password is disabled when a newer one has arrived at all consumers (Arrivals), or an
//     operator has decided that it need not. The password itself is removed when its version was disabled for
//     Config.RemoveAfter and not enabled again.
//   - The value of a password passes from Graph to the secret store within one step. No input, output, error or event
//     holds one, nor its beginning.
//
// Overlapping rotations of one application are safe: a password is older if the secret store got it earlier.
// Consumers use the version that the event names, unless they have a later one.
//
// Storage keys: the secrets named spn-{applicationId} with the tags rotationSlot, rotationKeyId, rotationJobId and
// rotationExpiresAtUtc. In Entra ID: the passwords whose display name begins with roundhouse/{owner}/. It owns no table.
package spn

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Engine is the engine's name in queues, history and dead letters (standard, sections 2 and 4, "Engine Values").
const Engine = "spn"

// Queue is the engine's message queue (standard, section 2, "Engine Values").
const Queue = "spn-rotation-queue"

// OperationRotate is the engine's operation, as the history shows it (standard, section 4, "Engine Values"), and
// OperationConfirm is in the history only: an operator has decided that the older passwords are retired.
const (
	OperationRotate  = "rotate"
	OperationConfirm = "confirm"
)

// Distinguish these errors with errors.Is.
var (
	// ErrInput: the message or the input of a step is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrInFlight: a password of this slot is not in the secret store, and so young that another process may be about
	// to store it. Retry some minutes later.
	ErrInFlight = errors.New("another attempt may be under way")
	// ErrKeyMissing: the password of a slot is missing in the application or in the secret store. No older one is
	// removed then, and an operator has to check.
	ErrKeyMissing = errors.New("the new password is missing")
)

// Directory is the part of Entra ID that the engine uses; *entra.Graph is the real one.
type Directory interface {
	// Passwords lists the passwords of an application, including those from elsewhere; a new one may be missing for a
	// while.
	Passwords(ctx context.Context, applicationID string) ([]entra.Password, error)
	// AddPassword makes a password and returns its value. It is not idempotent.
	AddPassword(ctx context.Context, applicationID, displayName string, end time.Time) (entra.Password, []byte, error)
	// RemovePassword removes a password; a missing one counts as removed.
	RemovePassword(ctx context.Context, applicationID, keyID string) error
}

// Login checks a password; *entra.Login is the real one.
type Login interface {
	// Try returns nil for an accepted password, and entra.ErrNotAccepted for one that is not accepted, or not yet.
	Try(ctx context.Context, applicationID string, password []byte) error
}

// Defaults of Config.
const (
	DefaultLifetime = 180 * 24 * time.Hour
	DefaultOverlap  = 24 * time.Hour
	DefaultProbeFor = 10 * time.Minute
	// DefaultRemoveAfter is the default of Config.RemoveAfter.
	DefaultRemoveAfter = 7 * 24 * time.Hour
)

// Config configures the steps.
type Config struct {
	// Directory and Login are Entra ID. Required.
	Directory Directory
	Login     Login
	// Vault keeps the passwords, and Values reads them back, for the probe only. Required, and the same store.
	Vault  secrets.Store
	Values secrets.Reader
	// Arrivals knows the consumers that have received a secret, and EventID returns the id in the outbox of an event
	// that an orchestrator publishes, by its tenant, its type and its key. Required.
	Arrivals Arrivals
	EventID  func(tenantID, eventType, key string) string
	// Owner marks the passwords of this deployment: 1 to 40 letters, digits, dots and dashes. Two deployments that
	// rotate one application need different ones, and so does a deployment that moves to another vault; use the
	// vault's host name. Required.
	Owner string
	// Lifetime is the validity of a password; DefaultLifetime when 0. It must be longer than Overlap and RemoveAfter
	// together.
	Lifetime time.Duration
	// Overlap is the time for which the version of the older password stays enabled once the new one works;
	// DefaultOverlap when 0.
	Overlap time.Duration
	// RemoveAfter is the time for which the version of an older password is disabled before the password is removed,
	// which cannot be undone; DefaultRemoveAfter when 0.
	RemoveAfter time.Duration
	// ProbeFor is the time that an attempt waits for the login to accept a new password; DefaultProbeFor when 0.
	ProbeFor time.Duration
	// Now is the clock; default time.Now. It may differ from Graph's by a minute.
	Now func() time.Time
}

var ownerSyntax = regexp.MustCompile(`^[0-9A-Za-z.-]{1,40}$`)

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value   *time.Duration
		instead time.Duration
	}{{&c.Lifetime, DefaultLifetime}, {&c.Overlap, DefaultOverlap}, {&c.RemoveAfter, DefaultRemoveAfter}, {&c.ProbeFor, DefaultProbeFor}} {
		if *d.value == 0 {
			*d.value = d.instead
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns all errors.
func (c Config) Validate() error {
	var errs []error
	for _, part := range []struct {
		name    string
		missing bool
	}{{"Directory", c.Directory == nil}, {"Login", c.Login == nil}, {"Vault", c.Vault == nil}, {"Values", c.Values == nil},
		{"Arrivals", c.Arrivals == nil}, {"EventID", c.EventID == nil}} {
		if part.missing {
			errs = append(errs, fmt.Errorf("spn: Config.%s is missing", part.name))
		}
	}
	if !ownerSyntax.MatchString(c.Owner) {
		errs = append(errs, errors.New("spn: Config.Owner must be 1 to 40 letters, digits, dots and dashes"))
	}
	c = c.withDefaults()
	if c.Overlap < 0 || c.ProbeFor < 0 || c.RemoveAfter < 0 || c.Lifetime <= c.Overlap+c.RemoveAfter {
		errs = append(errs, fmt.Errorf("spn: Config.Overlap (%s), Config.RemoveAfter (%s) and Config.ProbeFor (%s) must be positive, and Config.Lifetime (%s) longer than the first two together",
			c.Overlap, c.RemoveAfter, c.ProbeFor, c.Lifetime))
	}
	return errors.Join(errs...)
}

// Steps are the engine's steps, to be registered as activities. They are safe for concurrent use.
type Steps struct{ config Config }

// New validates config and returns the steps over it.
func New(config Config) (*Steps, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Steps{config: config.withDefaults()}, nil
}
