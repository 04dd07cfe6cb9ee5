// Package hmac is the engine that rotates the keys with which instances sign: Rotate makes a slot's key, Notify tells from
// when it is used and until when the one before is accepted, and, when that grace is over, Retire disables the older ones.
//
// It promises:
//
//   - A slot of an instance is rotated once: however often and however concurrently the steps run, one version is the
//     slot's, and the versions of those who lost the race, or of an attempt that died half-way, end up disabled.
//   - What is told of a version is told once, and the same however often it is told: its times are fixed before the event.
//   - Only a version is disabled that consumers were told the end of, and only while one that they were told of later is
//     usable and has arrived at them (Arrivals), or a person has said that it need not. Versions that no rotation made are left
//     alone. Without a grace, there is nothing to wait for.
//   - Key material is nowhere but in the secret store: no input, output, event or error holds any. Outputs name versions.
//
// Which version is a slot's is decided by one insert into a table, and so is, by a change of that row, what is told of it.
// The secret store cannot decide it: it has no conditional write, and its creation times, in whole seconds, leave ties.
//
// Storage keys: the secrets named hmac-{instance} (see secrets.Name) with the tags rotationSlot and rotationJobId; the
// table keySlots (partition: instance, row: slot), of which Retire removes what SlotKeep is over for.
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
	// OperationConfirm is in the history only: a person has decided that the older keys are retired.
	OperationConfirm = "confirm"
)

// SlotsTable is the table of this engine. Whoever wires it creates it.
const SlotsTable = "keySlots"

// SlotKeep is how long a slot is remembered whose version is disabled: rotated again after that, it gets another key. It is
// far longer than the history remembers the runs.
const SlotKeep = 400 * 24 * time.Hour

// KeySize is the length of a key in bytes.
const KeySize = 32

// These errors are told apart with errors.Is.
var (
	// ErrInput: the message or the input of a step is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrVersionMissing: the version that a slot was rotated to is not in the secret store any more.
	ErrVersionMissing = errors.New("version missing")
	// ErrVersionDisabled: the version that a slot was rotated to was disabled before consumers were told of it. Rotating
	// the slot again makes another.
	ErrVersionDisabled = errors.New("version disabled")
)

// Config is what the steps need.
type Config struct {
	// Vault keeps the keys. Required.
	Vault secrets.Store
	// Tables holds SlotsTable. Required.
	Tables tables.Store
	// Publisher takes the events. Required.
	Publisher Publisher
	// Arrivals knows at whom a version has arrived. Required.
	Arrivals Arrivals
	// Timing says when versions change places; DefaultTiming() when nil.
	Timing *Timing
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Random is where keys come from, crypto/rand when nil.
	Random io.Reader
}

// Timing says when the versions of a key change places. Both times count from when consumers are told of a version.
type Timing struct {
	// Propagation is how long verifiers get to fetch a version before anybody signs with it. Without grace there is none.
	Propagation time.Duration
	// Grace is for how long the version before is accepted; 0 retires it at once, whether the new one has arrived or not.
	Grace time.Duration
}

// DefaultTiming is a grace of a day, and a propagation of five minutes.
func DefaultTiming() Timing { return Timing{Propagation: 5 * time.Minute, Grace: 24 * time.Hour} }

// Validate makes sure that signers stop using a version before verifiers stop accepting it.
func (t Timing) Validate() error {
	if t.Grace < 0 || t.Propagation < 0 || t.Grace > 0 && t.Propagation >= t.Grace {
		return fmt.Errorf("the propagation (%s) must be shorter than the grace (%s), unless the grace is 0, and neither negative", t.Propagation, t.Grace)
	}
	return nil
}

// Validate names everything that is missing.
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
