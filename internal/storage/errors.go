// Package storage holds what the packages tables, queues and blobs have in common, as single values: the
// errors of a storage operation, what a service says besides the content of its answers (Response), and the rules for names that queues and
// containers share. It imports no SDK: stores in memory need none.
//
// It owns no storage keys.
package storage

import "errors"

// These are the ways in which a storage operation fails. The three storage packages publish them under their own
// names, so that tables.ErrThrottled and queues.ErrThrottled are one value and a caller asks only once.
var (
	// ErrNotFound: no such thing, or no such table, queue or container.
	ErrNotFound = errors.New("not found")
	// ErrExists: an insert met a thing of the same name.
	ErrExists = errors.New("already exists")
	// ErrPrecondition: the thing changed since it was read.
	ErrPrecondition = errors.New("precondition failed")
	// ErrTooLarge: the request exceeds a limit of the service.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid: the service does not take such a request.
	ErrInvalid = errors.New("invalid")
	// ErrDenied: the credential is missing, wrong or lacks a role.
	ErrDenied = errors.New("access denied")
	// ErrThrottled: the service is busy and did not apply the operation.
	ErrThrottled = errors.New("throttled")
	// ErrOutcomeUnknown: no answer; the operation may or may not have been applied.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)
