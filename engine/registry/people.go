package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// Change is Update for the version of the document that somebody has seen, 0 for any: ErrChanged when it is another by now.
func (r *Registry) Change(ctx context.Context, instanceID, jobID string, version int64, change func(*Instance) error) (Instance, error) {
	return r.Update(ctx, instanceID, jobID, func(i *Instance) error {
		if version != 0 && i.Version != version {
			return ErrChanged
		}
		return change(i)
	})
}

// Break takes the lock of a job off that is not there any more, if the document still has the version; 0 is any. A lock of
// another job, or none, is left alone, and the document is returned as it is.
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

// Remove takes an instance out of the registry, in the name of the job that holds its lock, or of "" while nobody holds it; of
// the version that somebody has seen, 0 for any. Nothing else is removed. The errors are those of Update, and ErrChanged.
func (r *Registry) Remove(ctx context.Context, instanceID, jobID string, version int64) error {
	key, err := keyOf(instanceID)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	var sent *row // what an earlier try may have removed
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
				err = fmt.Errorf("%w: %w", ErrContended, err) // to be looked at again
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

// removable says whether a job may remove a document of a version.
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

// follows says whether the row is an earlier one or what has become of it: one that was removed and added again is neither.
func (r row) follows(earlier row) bool {
	version := earlier.instance.Version
	if r.instance.Version < version {
		return false
	}
	was, _ := earlier.wrote(version)
	by, known := r.wrote(version)
	return !known || by == was
}
