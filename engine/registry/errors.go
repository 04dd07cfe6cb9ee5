package registry

import (
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// These errors are told apart with errors.Is; besides them, what tables.Store says is passed on.
var (
	// ErrNotFound: there is no such instance.
	ErrNotFound = errors.New("the instance is not in the registry: register it (roundhouse registry add)")
	// ErrExists: there is such an instance already.
	ErrExists = errors.New("the instance is in the registry already")
	// ErrLocked: another job holds the lock, or the one that writes does not hold it; a *LockedError says which.
	ErrLocked = errors.New("the lock of the instance does not allow it")
	// ErrInvalid: what is asked for makes no sense; repeating it cannot help.
	ErrInvalid = errors.New("invalid")
	// ErrDamaged: the stored document cannot be read.
	ErrDamaged = errors.New("the stored document is damaged")
	// ErrChanged: the document has another version than the one that the change is for.
	ErrChanged = errors.New("the instance is not any more what the version names")
	// ErrContended: others changed the document each time that this change was tried; nothing was changed. Repeat it later.
	ErrContended = errors.New("too many writers at once")
)

// LockedError says whose lock is in the way.
type LockedError struct {
	InstanceID string
	// JobID is who was refused, "" for a writer without a lock.
	JobID string
	// Holder is who holds the valid lock, and Until when it expires; "" and the zero time when nobody does, so that JobID
	// has lost its lock, or never had it.
	Holder string
	Until  time.Time
}

// Error names the holder and says what to do.
func (e *LockedError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("instance %s: job %q does not hold the lock, or its lock has expired: acquire it", e.InstanceID, e.JobID)
	}
	return fmt.Sprintf("instance %s is locked by job %q until %s: come back then", e.InstanceID, e.Holder, e.Until.Format(time.RFC3339))
}

// Is makes it an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// transient says that repeating a call of the store can help.
func transient(err error) bool {
	return errors.Is(err, tables.ErrThrottled) || errors.Is(err, tables.ErrOutcomeUnknown)
}
