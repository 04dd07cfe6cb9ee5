// Package hmac holds the steps of the HMAC key rotation engine: Rotate makes an instance's next signing key, Notify
// publishes that the instance has to fetch it.
//
// It promises that a slot of an instance is rotated once: however often and however concurrently the steps run, one
// version is the slot's, and the versions of those who lost the race, or of an attempt that died half-way, end up
// disabled. It never returns, logs or stores key material anywhere but in the secret store: outputs name versions.
//
// Which version is a slot's is decided by one insert into a table. The secret store cannot decide it: it has no
// conditional write, and its creation times, in whole seconds, leave ties.
//
// Storage keys: the secrets named hmac-{instance} (see secrets.Name) with the tags rotationSlot and rotationJobId; the
// table keySlots (partition: instance, row: slot).
package hmac

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/vibedata/roundhouse/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// Engine is the engine's name in queues, history and dead letters (standard, sections 2 and 4, "Engine Values").
const Engine = "hmac"

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationRotate = "rotate"
	OperationNotify = "notify"
)

// SlotsTable is the table of this engine. Whoever wires it creates it.
const SlotsTable = "keySlots"

// KeySize is the length of a key in bytes.
const KeySize = 32

// These errors are told apart with errors.Is.
var (
	// ErrInput: the message or the input of a step is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrVersionMissing: the version that a slot was rotated to is not in the secret store any more.
	ErrVersionMissing = errors.New("version missing")
)

// Config is what the steps need.
type Config struct {
	// Vault keeps the keys. Required.
	Vault secrets.Store
	// Tables holds SlotsTable. Required.
	Tables tables.Store
	// Publisher takes the events. Required.
	Publisher Publisher
	// Random is where keys come from, crypto/rand when nil.
	Random io.Reader
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
	return errors.Join(errs...)
}

// Steps are the engine's steps, to be registered as activities. They are safe for concurrent use.
type Steps struct {
	vault     secrets.Store
	tables    tables.Store
	publisher Publisher
	random    io.Reader
}

// New validates config and returns the steps over it.
func New(config Config) (*Steps, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Steps{vault: config.Vault, tables: config.Tables, publisher: config.Publisher, random: config.Random}
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
