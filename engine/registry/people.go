package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// Change is Update for an expected version of the document, 0 for any: ErrChanged if the version differs.
func (r *Registry) Change(ctx context.Context, instanceID, jobID string, version int64, change func(*Instance) error) (Instance, error) {
	return r.Update(ctx, instanceID, jobID, func(i *Instance) error {
		if version != 0 && i.Version != version {
			return ErrChanged
		}
		return change(i)
	})
}

// Break removes the lock of a job that no longer exists, if the document has the version; 0 is any. A free lock and
// another job's lock are ignored, and the document is returned unchanged.
func (r *Registry) Break(ctx context.Context, instanceID, jobID string, version int64) (Instance, error) {
	return r.write(ctx, "unlock", instanceID, again, func(i *Instance) error {
		switch {
		case jobID == "" || i.Lock.JobID != jobID:
			return nil
		case version != 0 && i.Version != version:
			return ErrChanged
		}
		i.Lock = Lock{Duration: i.Lock.Duration}
		return nil
	})
}

// Remove removes an instance from the registry, for the job that holds its lock, or "" while the lock is free, at an
// expected version, 0 for any. It removes only this row. The errors are those of Update, and ErrChanged.
func (r *Registry) Remove(ctx context.Context, instanceID, jobID string, version int64) error {
	key, err := keyOf(instanceID)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	var sent *row // an earlier try may have removed it
	for try := 1; ; try++ {
		found, err := r.read(ctx, instanceID)
		if sent != nil && (errors.Is(err, ErrNotFound) || err == nil && !found.follows(*sent)) {
			return nil
		}
		if err == nil {
			err = r.removable(found.instance, jobID, version)
		}
		if err == nil {
			err = r.store.Apply(ctx, r.table, tables.Delete(key, found.etag))
			if errors.Is(err, tables.ErrOutcomeUnknown) {
				sent = &found
			}
			if errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrNotFound) {
				err = fmt.Errorf("%w: %w", ErrContended, err) // to be checked again
			}
		}
		switch {
		case err == nil:
			return nil
		case !transient(err) && !errors.Is(err, ErrContended), try == maxTries, pause(ctx, try) != nil:
			return fmt.Errorf("remove instance %s: %w", instanceID, err)
		}
	}
}

// removable reports whether a job may remove a document of a version.
func (r *Registry) removable(i Instance, jobID string, version int64) error {
	now := r.now()
	held := i.Lock.Held(now)
	switch {
	case version != 0 && i.Version != version:
		return ErrChanged
	case held && i.Lock.JobID != jobID, !held && jobID != "":
		return refused(i, jobID, now)
	default:
		return nil
	}
}

// follows reports whether the row is the earlier one or a later version of it: an instance that was removed and added
// again is neither.
func (r row) follows(earlier row) bool {
	version := earlier.instance.Version
	if r.instance.Version < version {
		return false
	}
	was, _ := earlier.wrote(version)
	by, known := r.wrote(version)
	return !known || by == was
}
