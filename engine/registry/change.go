package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// maxTries bounds the tries of one write. With 16 concurrent writers, one write in ten thousand needs more than
	// half of them.
	maxTries = 40
	// firstPause is the longest pause before the second try; it doubles up to longestPause.
	firstPause   = 4 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// Update changes an instance for a job that holds its lock; with jobID "", without a lock, which is only allowed
// while the lock is free (standard, section 1.8). change gets the current document, perhaps several times, and must
// not change its id, lock and version; an error of it changes nothing and is returned. An unchanged document is not
// written. The result is the document with the change. Errors: ErrLocked, ErrNotFound, ErrInvalid, ErrContended,
// those of change and of the store; after tables.ErrOutcomeUnknown the outcome is unknown.
func (r *Registry) Update(ctx context.Context, instanceID, jobID string, change func(*Instance) error) (Instance, error) {
	return r.write(ctx, "update", instanceID, once, func(i *Instance) error {
		if now := r.now(); i.Lock.Held(now) != (jobID != "") || (jobID != "" && i.Lock.JobID != jobID) {
			return refused(*i, jobID, now)
		}
		id, lock, version := i.InstanceID, i.Lock, i.Version
		if err := change(i); err != nil {
			return err
		}
		if i.InstanceID != id || i.Lock != lock || i.Version != version {
			return fmt.Errorf("the change touches the id, the lock or the version: %w", ErrInvalid)
		}
		if jobID == "" {
			i.Lock = Lock{Duration: lock.Duration} // its holder must not find it after this
		}
		return nil
	})
}

func refused(i Instance, jobID string, now time.Time) error {
	e := &LockedError{InstanceID: i.InstanceID, JobID: jobID}
	if i.Lock.Held(now) {
		e.Holder, e.Until = i.Lock.JobID, i.Lock.Until
	}
	return e
}

// Acquire acquires the lock of an instance for a job, for d from now on, 0 for DefaultLockDuration. For the holder,
// it extends the lock. ErrLocked names another holder.
func (r *Registry) Acquire(ctx context.Context, instanceID, jobID string, d time.Duration) (Instance, error) {
	return r.lock(ctx, "lock", instanceID, jobID, d, func(l Lock, now time.Time) bool { return l.JobID == jobID || !l.Held(now) })
}

// Renew extends the lock of a job to d from now on, 0 for DefaultLockDuration. An expired lock can be renewed while
// the document is unchanged. Otherwise it returns ErrLocked: the protected data may have changed.
func (r *Registry) Renew(ctx context.Context, instanceID, jobID string, d time.Duration) (Instance, error) {
	return r.lock(ctx, "renew the lock of", instanceID, jobID, d, func(l Lock, _ time.Time) bool { return l.JobID == jobID })
}

func (r *Registry) lock(ctx context.Context, what, instanceID, jobID string, d time.Duration, may func(Lock, time.Time) bool) (Instance, error) {
	if d == 0 {
		d = DefaultLockDuration
	}
	if jobID == "" || d < 0 {
		return Instance{}, fmt.Errorf("%s instance %s: job %q for %v: %w", what, instanceID, jobID, d, ErrInvalid)
	}
	d = (d + time.Second - 1).Truncate(time.Second)
	return r.write(ctx, what, instanceID, again, func(i *Instance) error {
		now := r.now()
		if !may(i.Lock, now) {
			return refused(*i, jobID, now)
		}
		until := now.Add(d).Truncate(time.Microsecond)
		if i.Lock.JobID == jobID && i.Lock.Until.After(until) {
			until = i.Lock.Until
		}
		i.Lock = Lock{JobID: jobID, Duration: d, Until: until}
		return nil
	})
}

// Release releases the lock of a job. It ignores a free lock, another job's lock, and a missing instance.
func (r *Registry) Release(ctx context.Context, instanceID, jobID string) error {
	_, err := r.write(ctx, "unlock", instanceID, again, func(i *Instance) error {
		if jobID != "" && i.Lock.JobID == jobID {
			i.Lock = Lock{Duration: i.Lock.Duration}
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// care is the handling of a change whose answer is lost: it can be repeated, or not.
type care bool

const (
	again care = false
	once  care = true
)

// write makes a change by compare-and-set until its outcome is known.
func (r *Registry) write(ctx context.Context, what, instanceID string, c care, change func(*Instance) error) (Instance, error) {
	w := writing{Registry: r, id: newWrite(), care: c}
	for try := 1; ; try++ {
		done, err := w.try(ctx, instanceID, change)
		curable := w.unknown == nil && (transient(err) || errors.Is(err, ErrContended))
		switch {
		case err == nil:
			return done, nil
		case !curable || try == maxTries || pause(ctx, try) != nil:
			return Instance{}, fmt.Errorf("%s instance %s: %w", what, instanceID, err)
		}
	}
}

// writing is one write and its tries.
type writing struct {
	*Registry
	id   string
	care care
	// sent is the last written row, nil while nothing of this write can be stored.
	sent *row
	// unknown is the reason why the outcome of sent is unknown, nil if it is known.
	unknown error
}

// try reads the document, finds out whether an earlier try was applied, and makes the change if none was.
func (w *writing) try(ctx context.Context, instanceID string, change func(*Instance) error) (Instance, error) {
	found, err := w.read(ctx, instanceID)
	if err != nil {
		return Instance{}, err
	}
	if done, ok := w.arrived(found); ok || w.unknown != nil {
		return done, w.unknown
	}
	changed := found.instance.Clone()
	if err := change(&changed); err != nil {
		return Instance{}, err
	}
	if same(found.instance, changed) {
		return found.instance, nil
	}
	next := found.next(changed, w.id)
	key, err := keyOf(instanceID)
	if err != nil {
		return Instance{}, err
	}
	e, err := next.entity(key)
	if err != nil {
		return Instance{}, err
	}
	if err = w.store.Apply(ctx, w.table, tables.Replace(e)); w.care == once && !errors.Is(err, tables.ErrThrottled) {
		w.sent = &next
	}
	if !errors.Is(err, tables.ErrPrecondition) {
		return next.instance, err
	}
	// Another writer was first, or this request was sent twice: this is checked immediately, before more writes
	// follow.
	if found, err := w.read(ctx, instanceID); err == nil {
		if done, ok := w.arrived(found); ok || w.unknown != nil {
			return done, w.unknown
		}
	}
	return Instance{}, fmt.Errorf("%w: %w", ErrContended, err)
}

// arrived reports whether sent is in the document, or in an earlier version of it. An unapplied try can only be
// applied while its version is still in the future, and then the next read finds it.
func (w *writing) arrived(found row) (Instance, bool) {
	if w.sent == nil || found.instance.Version < w.sent.instance.Version {
		return Instance{}, false
	}
	version := w.sent.instance.Version
	by, known := found.wrote(version)
	switch {
	case !known:
		w.unknown = fmt.Errorf("more than %d others have written since: %w", rememberedWrites, tables.ErrOutcomeUnknown)
		return Instance{}, false
	case by != w.id:
		w.sent = nil // it never will
		return Instance{}, false
	case found.instance.Version == version:
		return found.instance, true
	default:
		return w.sent.instance, true
	}
}

// same compares two documents in their stored form.
func same(a, b Instance) bool {
	left, err := json.Marshal(a)
	right, errToo := json.Marshal(b)
	return err == nil && errToo == nil && bytes.Equal(left, right)
}

// pause waits a random time before the next try.
func pause(ctx context.Context, try int) error {
	t := time.NewTimer(rand.N(min(longestPause, firstPause<<min(try, 10))))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
