// Package hmac is the engine that rotates the signing keys of instances: Rotate makes a slot's key, Notify announces
// from when it is used and until when the previous one is accepted, and, when that grace is over, Retire disables the
// older ones.
//
// Promises:
//
//   - A slot of an instance is rotated once: for any repeated or concurrent runs of the steps, the slot has one
//     version. Versions of runs that lost the race, or died half-way, end up disabled.
//   - A version is announced once, and repeats are equal: its times are fixed before the event.
//   - A version is disabled only if its end was announced, and only while a later announced version is usable and has
//     arrived at the consumers (Arrivals), or an operator has decided that it need not. Versions that no rotation
//     made are not touched. Without a grace, retirement does not wait.
//   - Key material is only in the secret store: no input, output, event or error holds any. Outputs name versions.
//
// One insert into a table decides the version of a slot, and a change of that row its announcement. The secret store
// cannot decide them: it has no conditional write, and its creation times, in whole seconds, leave ties.
//
// Storage keys: the secrets named hmac-{instance} (see secrets.Name) with the tags rotationSlot and rotationJobId;
// the table keySlots (partition: instance, row: slot), from which Retire removes rows after SlotKeep.
package hmac

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// Engine is the engine's name in queues, history and dead letters (standard, sections 2 and 4, "Engine Values").
const Engine = "hmac"

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationRotate = "rotate"
	OperationNotify = "notify"
	// OperationConfirm is in the history only: an operator has decided that the older keys are retired.
	OperationConfirm = "confirm"
)

// SlotsTable is the table of this engine. The program that wires it creates it.
const SlotsTable = "keySlots"

// SlotKeep is the retention of a slot whose version is disabled: rotated again after that, it gets another key. It is
// far longer than the retention of runs in the history.
const SlotKeep = 400 * 24 * time.Hour

// KeySize is the length of a key in bytes.
const KeySize = 32

// Distinguish these errors with errors.Is.
var (
	// ErrInput: the message or the input of a step is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrVersionMissing: the secret store no longer has the version of a slot.
	ErrVersionMissing = errors.New("version missing")
	// ErrVersionDisabled: the version of a slot was disabled before it was announced. Rotating the slot again makes
	// another.
	ErrVersionDisabled = errors.New("version disabled")
)

// Config configures the steps.
type Config struct {
	// Vault keeps the keys. Required.
	Vault secrets.Store
	// Tables holds SlotsTable. Required.
	Tables tables.Store
	// Publisher publishes the events. Required.
	Publisher Publisher
	// Arrivals knows the consumers that have received a version. Required.
	Arrivals Arrivals
	// Timing holds the times of a version change; DefaultTiming() when nil.
	Timing *Timing
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Random is the source of keys, crypto/rand when nil.
	Random io.Reader
}

// Timing holds the times of a version change. Both count from the announcement of a version.
type Timing struct {
	// Propagation is the time that verifiers have to fetch a version before it is used for signing. Without grace it
	// is 0.
	Propagation time.Duration
	// Grace is the time for which the previous version is accepted; 0 retires it immediately, whether the new one has
	// arrived or not.
	Grace time.Duration
}

// DefaultTiming returns a grace of a day, and a propagation of five minutes.
func DefaultTiming() Timing { return Timing{Propagation: 5 * time.Minute, Grace: 24 * time.Hour} }

// Validate makes sure that signers stop using a version before verifiers stop accepting it.
func (t Timing) Validate() error {
	if t.Grace < 0 || t.Propagation < 0 || t.Grace > 0 && t.Propagation >= t.Grace {
		return fmt.Errorf("the propagation (%s) must be shorter than the grace (%s), unless the grace is 0, and neither negative", t.Propagation, t.Grace)
	}
	return nil
}

// Validate returns all missing fields.
func (c Config) Validate() error {
	var errs []error
	if c.Vault == nil {
		errs = append(errs, errors.New("hmac: Config.Vault is missing"))
	}
	if c.Tables == nil {
		errs = append(errs, errors.New("hmac: Config.Tables is missing"))
	}
	if c.Publisher == nil {
		errs = append(errs, errors.New("hmac: Config.Publisher is missing"))
	}
	if c.Arrivals == nil {
		errs = append(errs, errors.New("hmac: Config.Arrivals is missing"))
	}
	if c.Timing != nil {
		if err := c.Timing.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("hmac: Config.Timing: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Steps are the engine's steps, to be registered as activities. They are safe for concurrent use.
type Steps struct {
	vault     secrets.Store
	tables    tables.Store
	publisher Publisher
	arrivals  Arrivals
	timing    Timing
	now       func() time.Time
	random    io.Reader
}

// New validates config and returns the steps over it.
func New(config Config) (*Steps, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Steps{vault: config.Vault, tables: config.Tables, publisher: config.Publisher, arrivals: config.Arrivals, timing: DefaultTiming(), now: config.Now, random: config.Random}
	if config.Timing != nil {
		s.timing = *config.Timing
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	return s, nil
}

// newKey draws a key. The caller wipes it.
func (s *Steps) newKey() ([]byte, error) {
	key := make([]byte, KeySize)
	if _, err := io.ReadFull(s.random, key); err != nil {
		clear(key)
		return nil, fmt.Errorf("draw key: %w", err)
	}
	return key, nil
}
