package poller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// operateTries bounds how often an operation starts over because the document changed, or because the outcome is
// unknown.
const operateTries = 5

// Operator has the operations for operators of pollers (checkpoint document, section 10). Store is required. It needs
// no Runner, and works while the program is down. It is safe for concurrent use.
type Operator struct {
	Store Store
}

// View is the current state of a poller.
type View struct {
	Document *Document
	// Text is the stored document.
	Text []byte
	// Time is the time of the state store. Live means that a process has the lease.
	Time time.Time
	Live bool
}

// ChangeOptions are the options of an operation.
type ChangeOptions struct {
	// DryRun changes nothing.
	DryRun bool
	// Force makes the change although a process has the lease. The owner of the lease is fenced: it can no longer commit,
	// and its batch is delivered again. Force also accepts a checkpoint of another poller or definition.
	Force bool
	// Request makes repeats of the change one change, with any number of repeats, in any process: the latest requests are
	// stored. Its zero value makes each call a separate change.
	Request Request
}

// Change is the result of an operation or of its dry run.
type Change struct {
	Poller string
	// Before is nil without a previous document. After is the stored document, or that of a dry run.
	Before, After *Document
	// Applied is false for a dry run. Fenced means that a process had the lease. Repeated means that the request was
	// carried out before: then Before is nil, and After is the stored document.
	Applied, Fenced, Repeated bool
}

// List returns the names of the pollers with a state, ascending.
func (o Operator) List(ctx context.Context) ([]string, error) { return o.Store.List(ctx) }

// Show reads the state of a poller. The errors are ErrNotFound, ErrCorrupt, ErrVersion and those of the store. With
// ErrCorrupt and ErrVersion, the View still has the text.
func (o Operator) Show(ctx context.Context, poller string) (View, error) {
	state, err := o.Store.Load(ctx, poller)
	if err != nil {
		return View{}, err
	}
	v := View{Text: state.Data, Time: state.Time}
	if v.Document, err = decodeFor(poller, state.Data); err != nil {
		return v, wrap(poller, "show", err)
	}
	v.Live = live(v.Document, state.Time)
	return v, nil
}

// live reports whether a process has the lease, by the clock of the store.
func live(d *Document, now time.Time) bool { return d.Lease.Owner != "" && now.Before(d.Lease.Expires) }

// ResetToBeginning makes the poller deliver everything again. A backfill gets a new end. The next run records the
// definition.
func (o Operator) ResetToBeginning(ctx context.Context, poller string, how ChangeOptions) (Change, error) {
	return o.change(ctx, poller, "reset to the beginning", how, func(d *Document, _ time.Time) error {
		d.Checkpoint, d.Backfill = nil, nil
		d.Fingerprint, d.Definition = "", nil
		d.clearFailures()
		return nil
	})
}

// ResetToCursor makes the poller deliver everything after a cursor. Without a Kind, the cursor has that of the
// checkpoint.
func (o Operator) ResetToCursor(ctx context.Context, poller string, to Cursor, how ChangeOptions) (Change, error) {
	return o.change(ctx, poller, "reset to a cursor", how, func(d *Document, now time.Time) error {
		cursor := to
		if cursor.Kind == "" {
			if d.Checkpoint == nil {
				return fmt.Errorf("%w: there is no checkpoint to take the kind of the cursor from: name it", ErrInvalid)
			}
			cursor.Kind = d.Checkpoint.Cursor.Kind
		}
		if err := errors.Join(cursor.check(), cursor.checkKeys(d.Definition), cursor.checkKeyTypes(d.Cursor())); err != nil {
			return err
		}
		d.Checkpoint = &Checkpoint{Cursor: cursor, UpdatedAt: now}
		d.setBackfillDone(false)
		d.clearFailures()
		return nil
	})
}

// AcceptFingerprint makes the checkpoint valid for another definition of the source. It is for changes that keep the
// order of the rows. Rows that another filter or table would have returned before the checkpoint are not delivered.
func (o Operator) AcceptFingerprint(ctx context.Context, poller string, now Definition, how ChangeOptions) (Change, error) {
	fingerprint, text, err := Fingerprint(now)
	if err != nil {
		return Change{}, wrap(poller, "accept the fingerprint", err)
	}
	return o.change(ctx, poller, "accept the fingerprint", how, func(d *Document, _ time.Time) error {
		d.Fingerprint, d.Definition = fingerprint, text
		return nil
	})
}

// BreakLease takes the lease from its owner; it is free then.
func (o Operator) BreakLease(ctx context.Context, poller string, how ChangeOptions) (Change, error) {
	return o.change(ctx, poller, "break the lease", how, func(*Document, time.Time) error { return nil })
}

// Retire makes the document a tombstone: the poller no longer runs. The fencing token is kept, and a reset reactivates
// the poller.
func (o Operator) Retire(ctx context.Context, poller string, how ChangeOptions) (Change, error) {
	return o.change(ctx, poller, "retire", how, func(d *Document, _ time.Time) error {
		d.Retired = true
		return nil
	})
}

// clearFailures prepares a document for a run from another position.
func (d *Document) clearFailures() {
	d.Failure, d.TickFailure, d.Quarantine, d.Retired = nil, nil, nil, false
}

// change changes an existing document.
func (o Operator) change(ctx context.Context, poller, what string, how ChangeOptions, change func(d *Document, now time.Time) error) (Change, error) {
	return o.write(ctx, poller, what, how, func(doc *Document, state State) (*Document, error) {
		switch {
		case doc == nil && state.ETag != "":
			return nil, fmt.Errorf("%w: restore it with reset-to-checkpoint, forced", ErrCorrupt)
		case doc == nil:
			return nil, ErrNotFound
		}
		after := doc.clone()
		return after, change(after, state.Time)
	})
}

// write writes the document that build makes of the existing one, nil for none, and fences: the same write frees the
// lease and increases the token. It starts over after a conflict or an unknown outcome.
func (o Operator) write(ctx context.Context, poller, what string, how ChangeOptions, build func(doc *Document, state State) (*Document, error)) (Change, error) {
	out, err := o.tryWrite(ctx, poller, how, build)
	return out, wrap(poller, what, err)
}

func (o Operator) tryWrite(ctx context.Context, poller string, how ChangeOptions, build func(doc *Document, state State) (*Document, error)) (Change, error) {
	var written []byte
	out := Change{Poller: poller}
	var last error
	for range operateTries {
		doc, state, err := o.load(ctx, poller, how)
		if err != nil {
			return out, errors.Join(err, last)
		}
		if written != nil && bytes.Equal(state.Data, written) {
			out.Applied = true // the previous write was applied, and its answer was lost
			return out, nil
		}
		if out.Repeated, err = doc.has(how.Request); err != nil || out.Repeated {
			out.After, out.Applied = doc, out.Repeated
			return out, err
		}
		out.Before, out.Fenced = doc, doc != nil && live(doc, state.Time)
		if out.Fenced && !how.Force {
			return out, fmt.Errorf("%w: %s has the lease, with token %d, until %s: wait, stop it, or force",
				ErrLeaseLive, doc.Lease.Owner, doc.Lease.Token, doc.Lease.Expires.Format(time.RFC3339))
		}
		if out.After, err = build(doc, state); err != nil {
			return out, err
		}
		if doc != nil {
			out.After.fence(max(doc.Lease.Token+1, out.After.Lease.Token), state.Time)
		}
		out.After.remember(how.Request, state.Time)
		if how.DryRun {
			return out, nil
		}
		if written, err = out.After.Encode(); err != nil {
			return out, err
		}
		if _, last = o.Store.Swap(ctx, poller, written, state.ETag); last == nil {
			out.Applied = true
			return out, nil
		}
		if !needsReread(last) {
			return out, last
		}
	}
	return out, fmt.Errorf("%w: run it again", last)
}

// load reads a document, nil for none. With force, a damaged one counts as missing, so that it can be replaced.
func (o Operator) load(ctx context.Context, poller string, how ChangeOptions) (*Document, State, error) {
	state, err := o.Store.Load(ctx, poller)
	if errors.Is(err, ErrNotFound) {
		return nil, state, nil
	}
	if err != nil {
		return nil, state, err
	}
	doc, err := decodeFor(poller, state.Data)
	if errors.Is(err, ErrCorrupt) && how.Force {
		return nil, state, nil
	}
	return doc, state, err
}

// fence frees the lease and sets a new token.
func (d *Document) fence(token int64, now time.Time) {
	d.Lease = Lease{Token: token, Acquired: d.Lease.Acquired, Heartbeat: d.Lease.Heartbeat, Expires: now, extra: d.Lease.extra}
}
