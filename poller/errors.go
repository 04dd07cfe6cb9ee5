package poller

import (
	"errors"
	"fmt"
)

// The errors of a Store.
var (
	// ErrNotFound means that the poller has no state document.
	ErrNotFound = errors.New("no state document")
	// ErrChanged means that the document no longer has the version to replace, possibly because of the caller's own write.
	ErrChanged = errors.New("the state document has changed")
	// ErrOutcomeUnknown means that no answer came: the write may or may not have been applied. Read the document to find
	// out.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// The errors of a state document.
var (
	// ErrCorrupt means that the document is not one that this program writes. Restore it from a copy with
	// reset-to-checkpoint, forced.
	ErrCorrupt = errors.New("state document damaged")
	// ErrVersion means that a newer program wrote the document, which is left alone.
	ErrVersion = errors.New("state document of a newer version")
	// ErrRetired means that the poller is retired. A reset reactivates it.
	ErrRetired = errors.New("the poller is retired")
	// ErrFingerprint means that the checkpoint belongs to another definition of the source. A *FingerprintError names the
	// difference.
	ErrFingerprint = errors.New("the definition of the source has changed")
)

// The errors of a running poller.
var (
	// ErrHeld means that another process has the lease. This is not a failure: leave the work to that process.
	ErrHeld = errors.New("another process has the lease")
	// ErrLost means that the lease has ended or that another process has it. Uncommitted rows will be delivered again.
	ErrLost = errors.New("the lease is lost")
	// ErrCommit means that rows were delivered without a confirmed commit. They may be delivered again.
	ErrCommit = errors.New("the batch is not known to be committed")
	// ErrOrder means that the source returned rows out of order, or with the same cursor.
	ErrOrder = errors.New("the rows of the source are not in order")
	// ErrBatch means that the handler rejected the rows. They will be delivered again.
	ErrBatch = errors.New("the batch was not delivered")
	// ErrWaiting means that the batch has failed before and is not due yet.
	ErrWaiting = errors.New("the failed batch is not due again")
	// ErrBreaker means that too many rows went to quarantine: probably the handler is at fault, not the rows.
	ErrBreaker = errors.New("too many rows would go to quarantine")
)

// The errors of an Operator.
var (
	// ErrLeaseLive means that a process has the lease. Wait, stop that process, or use force, which fences it.
	ErrLeaseLive = errors.New("the poller is running")
	// ErrExists means that the target of a clone exists already.
	ErrExists = errors.New("there is such a poller already")
	// ErrRequestReused means that the request id belongs to another change. Repeat that change, or use another id.
	ErrRequestReused = errors.New("the request id belongs to another change")
	// ErrInvalid means that a name, cursor, file or setting is invalid; the text has the remedy.
	ErrInvalid = errors.New("invalid")
)

// permanent marks an error that another delivery of the same rows cannot fix.
type permanent struct{ error }

// Unwrap returns the error itself.
func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error of a Handler that another attempt cannot fix: the search for the bad row starts immediately.
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
