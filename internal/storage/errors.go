// Package storage holds the common parts of the packages tables, queues and blobs as single values. These are the
// errors of a storage operation, the metadata of answers (Response), and the rules for names that queues and containers
// share. It imports no SDK: stores in memory need none.
//
// It owns no storage keys.
package storage

import "errors"

// These are the ways in which a storage operation fails. The three storage packages publish them under their own names,
// so that tables.ErrThrottled and queues.ErrThrottled are one value and a caller checks only once.
var (
	// ErrNotFound means that the object, or its table, queue or container, does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists means that an insert found an object of the same name.
	ErrExists = errors.New("already exists")
	// ErrPrecondition means that the object has changed since it was read.
	ErrPrecondition = errors.New("precondition failed")
	// ErrTooLarge means that the request exceeds a limit of the service.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid means that the service rejects such a request.
	ErrInvalid = errors.New("invalid")
	// ErrDenied means that the credential is missing, wrong or lacks a role.
	ErrDenied = errors.New("access denied")
	// ErrThrottled means that the service is busy and did not apply the operation.
	ErrThrottled = errors.New("throttled")
	// ErrOutcomeUnknown means that no answer came: the operation may or may not have been applied.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)
