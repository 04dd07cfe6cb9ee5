package poller

import (
	"errors"
	"fmt"
)

// These errors come from a Store.
var (
	// ErrNotFound: there is no state document of this poller.
	ErrNotFound = errors.New("no state document")
	// ErrChanged: the document has another version than the one that was to be replaced, possibly because of one's own
	// write.
	ErrChanged = errors.New("the state document has changed")
	// ErrOutcomeUnknown: no answer; the write may or may not have been applied. Read the document to find out.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// These errors are about a state document.
var (
	// ErrCorrupt: the document is not one that this program writes. Restore it from a copy with reset-to-checkpoint,
	// forced.
	ErrCorrupt = errors.New("state document damaged")
	// ErrVersion: a newer program wrote the document, which is left alone.
	ErrVersion = errors.New("state document of a newer version")
	// ErrRetired: the poller is retired. A reset brings it back.
	ErrRetired = errors.New("the poller is retired")
	// ErrFingerprint: the checkpoint belongs to another definition of the source. A *FingerprintError names the
	// difference.
	ErrFingerprint = errors.New("the definition of the source has changed")
)

// These errors can occur while a poller runs.
var (
	// ErrHeld: another process has the lease. This is not a failure: leave the work to that process.
	ErrHeld = errors.New("another process has the lease")
	// ErrLost: the lease has ended or somebody else has it. What was not committed will be delivered again.
	ErrLost = errors.New("the lease is lost")
	// ErrCommit: rows were delivered, and it is not known that the checkpoint has passed them. They may be delivered again.
	ErrCommit = errors.New("the batch is not known to be committed")
	// ErrOrder: the source returned rows that are not in order, or that have the same cursor.
	ErrOrder = errors.New("the rows of the source are not in order")
	// ErrBatch: the handler failed to take the rows. They will be delivered again.
	ErrBatch = errors.New("the batch was not delivered")
	// ErrWaiting: the batch has failed before and is not due yet.
	ErrWaiting = errors.New("the failed batch is not due again")
	// ErrBreaker: so many rows went to quarantine that the handler is probably at fault, not the rows.
	ErrBreaker = errors.New("too many rows would go to quarantine")
)

// These errors come from an Operator.
var (
	// ErrLeaseLive: a process has the lease. Wait, stop that process, or use force, which fences it.
	ErrLeaseLive = errors.New("the poller is running")
	// ErrExists: the target of a clone exists already.
	ErrExists = errors.New("there is such a poller already")
	// ErrRequestReused: the request id belongs to another change. Repeat that one, or use another id.
	ErrRequestReused = errors.New("the request id belongs to another change")
	// ErrInvalid: a name, cursor, file or setting is not valid; the text says what to do.
	ErrInvalid = errors.New("invalid")
)

// permanent marks an error that another delivery of the same rows cannot help.
type permanent struct{ error }

// Unwrap returns the error itself.
func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error of a Handler that another attempt cannot fix: the row at fault is looked for at once.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether an error was marked with Permanent.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanent](err)
	return ok
}

// wrap adds the poller and the operation to an error.
func wrap(poller, operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("poller %s: %s: %w", poller, operation, err)
}
