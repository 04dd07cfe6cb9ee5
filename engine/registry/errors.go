package registry

import (
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Distinguish these errors with errors.Is; errors of tables.Store are passed on.
var (
	// ErrNotFound: the instance does not exist.
	ErrNotFound = errors.New("the instance is not in the registry: register it (roundhouse registry add)")
	// ErrExists: the instance exists already.
	ErrExists = errors.New("the instance is in the registry already")
	// ErrLocked: another job holds the lock, or the writing job does not hold it; a *LockedError names the holder.
	ErrLocked = errors.New("the lock of the instance does not allow it")
	// ErrInvalid: the request is invalid; repeating it cannot help.
	ErrInvalid = errors.New("invalid")
	// ErrDamaged: the stored document cannot be read.
	ErrDamaged = errors.New("the stored document is damaged")
	// ErrChanged: the document has another version than the change expects.
	ErrChanged = errors.New("the instance is not any more what the version names")
	// ErrContended: concurrent changes defeated every try; nothing was changed. Repeat it later.
	ErrContended = errors.New("too many writers at once")
)

// LockedError names the lock that blocks a write.
type LockedError struct {
	InstanceID string
	// JobID is the refused job, "" for a writer without a lock.
	JobID string
	// Holder is the holder of the valid lock, and Until its expiry; "" and the zero time without a valid lock, so
	// that JobID has lost its lock, or never held it.
	Holder string
	Until  time.Time
}

// Error names the holder and the remedy.
func (e *LockedError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("instance %s: job %q does not hold the lock, or its lock has expired: acquire it", e.InstanceID, e.JobID)
	}
	return fmt.Sprintf("instance %s is locked by job %q until %s: come back then", e.InstanceID, e.Holder, e.Until.Format(time.RFC3339))
}

// Is makes it an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// transient reports whether repeating a call of the store can help.
func transient(err error) bool {
	return errors.Is(err, tables.ErrThrottled) || errors.Is(err, tables.ErrOutcomeUnknown)
}
