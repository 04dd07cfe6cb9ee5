package poller

import (
	"errors"
	"fmt"
)

// These errors come from a Store.
var (
	// ErrNotFound: there is no state document of this poller.
	ErrNotFound = errors.New("no state document")
	// ErrChanged: the document is another version than the one that was to be replaced. It may be by one's own write.
	ErrChanged = errors.New("the state document has changed")
	// ErrOutcomeUnknown: no answer; the write may or may not have been applied. Read the document to know.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// These errors are about a state document.
var (
	// ErrCorrupt: it is not what this program writes. Restore it from a copy with reset-to-checkpoint, forced.
	ErrCorrupt = errors.New("state document damaged")
	// ErrVersion: a newer program wrote it; it is not touched.
	ErrVersion = errors.New("state document of a newer version")
	// ErrRetired: it is a tombstone. A reset brings the poller back.
	ErrRetired = errors.New("the poller is retired")
	// ErrFingerprint: the checkpoint is of another definition of the source. A *FingerprintError names the difference.
	ErrFingerprint = errors.New("the definition of the source has changed")
)

// These errors can occur while a poller runs.
var (
	// ErrHeld: another process has the lease. It is no failure: leave the work to it.
	ErrHeld = errors.New("another process has the lease")
	// ErrLost: the lease has ended, or is somebody else's: what was not committed will be delivered again.
	ErrLost = errors.New("the lease is lost")
	// ErrOrder: the source gave rows that are not in order, or that have the same place.
	ErrOrder = errors.New("the rows of the source are not in order")
	// ErrBatch: the handler did not take the rows. They will be delivered again.
	ErrBatch = errors.New("the batch was not delivered")
	// ErrWaiting: the batch has failed before and is not due yet.
	ErrWaiting = errors.New("the failed batch is not due again")
	// ErrBreaker: so many rows went to quarantine that the handler is at fault, not the rows.
	ErrBreaker = errors.New("too many rows would go to quarantine")
)

// These errors come from an Operator.
var (
	// ErrLeaseLive: a process has the lease. Wait, stop it, or force, which fences it.
	ErrLeaseLive = errors.New("the poller is running")
	// ErrExists: the target of a clone is there already.
	ErrExists = errors.New("there is such a poller already")
	// ErrInvalid: a name, a cursor, a file or a setting that cannot be used; the text says what to do.
	ErrInvalid = errors.New("invalid")
)

// permanent marks an error that another delivery of the same rows cannot help.
type permanent struct{ error }

// Unwrap gives the error itself.
func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error of a Handler that another try cannot help: the row at fault is looked for at once.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent says whether an error was marked with Permanent.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanent](err)
	return ok
}

// wrap names the poller in an error.
func wrap(poller, operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("poller %s: %s: %w", poller, operation, err)
}
