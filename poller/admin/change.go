package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Kind is the kind of a change.
type Kind string

// The kinds of changes. Package poller's Operator documents each.
const (
	ResetToBeginning  Kind = "reset-to-beginning"
	ResetToCheckpoint Kind = "reset-to-checkpoint"
	ResetToCursor     Kind = "reset-to-cursor"
	CloneCheckpoint   Kind = "clone-checkpoint"
	AcceptFingerprint Kind = "accept-fingerprint"
	BreakLease        Kind = "break-lease"
	Retire            Kind = "retire"
)

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{ResetToBeginning, ResetToCheckpoint, ResetToCursor, CloneCheckpoint, AcceptFingerprint, BreakLease, Retire}
}

// Change is a change of a state.
type Change struct {
	Kind Kind
	// File is the checkpoint to reset to, Cursor the position (with the kind of the checkpoint if its own is ""), and To
	// the name of a clone.
	File   []byte
	Cursor poller.Cursor
	To     string

	poller.ChangeOptions
}

// Change makes a change, or returns the result of a dry run. The errors are those of package poller's Operator,
// ErrNotDefined and those of DSN.
func (a Admin) Change(ctx context.Context, name string, c Change) (poller.Change, error) {
	o, err := a.operator(ctx, name)
	if err != nil {
		return poller.Change{}, err
	}
	switch c.Kind {
	case ResetToBeginning:
		return o.ResetToBeginning(ctx, name, c.ChangeOptions)
	case ResetToCheckpoint:
		return o.ResetToCheckpoint(ctx, name, c.File, c.ChangeOptions)
	case ResetToCursor:
		try := c.ChangeOptions
		try.DryRun = true
		if tried, err := o.ResetToCursor(ctx, name, c.Cursor, try); err != nil || tried.Repeated {
			return tried, err
		} else if err := a.checkPlace(ctx, name, tried.After.Cursor(), c.Force); err != nil {
			return tried, err
		}
		return o.ResetToCursor(ctx, name, c.Cursor, c.ChangeOptions)
	case CloneCheckpoint:
		if err := a.sameStore(ctx, name, c.To); err != nil {
			return poller.Change{}, err
		}
		return o.Clone(ctx, name, c.To, c.ChangeOptions)
	case AcceptFingerprint:
		source, err := a.source(ctx, name)
		if err != nil {
			return poller.Change{}, err
		}
		made, err := o.AcceptFingerprint(ctx, name, source.Definition(), c.ChangeOptions)
		return made, errors.Join(err, source.Close())
	case BreakLease:
		return o.BreakLease(ctx, name, c.ChangeOptions)
	case Retire:
		return o.Retire(ctx, name, c.ChangeOptions)
	default:
		return poller.Change{}, fmt.Errorf("%w: there is no change %q", poller.ErrInvalid, c.Kind)
	}
}

// checkPlaceTimeout bounds how long a reset waits for the database.
const checkPlaceTimeout = 10 * time.Second

// checkPlace refuses a position whose types are not those of the table, if its database is available. Otherwise, the
// next tick refuses it.
func (a Admin) checkPlace(ctx context.Context, name string, at poller.Cursor, force bool) error {
	if force {
		return nil
	}
	opened, err := a.source(ctx, name)
	if err != nil {
		return nil
	}
	defer opened.Close()
	source, ok := opened.(interface {
		CheckPlace(ctx context.Context, at poller.Cursor) error
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkPlaceTimeout)
	defer cancel()
	if err := source.CheckPlace(ctx, at); errors.Is(err, sqlsource.ErrColumnType) {
		return fmt.Errorf("poller %s: %w: %w", name, poller.ErrInvalid, err)
	}
	return nil
}

// sameStore refuses a clone in a store in which its poller would not find it.
func (a Admin) sameStore(ctx context.Context, from, to string) error {
	target, ok := a.Setting(to)
	if !ok {
		return nil
	}
	kind, err := a.kept(ctx, from)
	if err == nil && kind != target.State {
		err = fmt.Errorf("%w: the state of poller %s is a %s, and that of %s a %s: define both alike, or reset %s to a checkpoint that is shown of %s",
			poller.ErrInvalid, from, kind, to, target.State, to, from)
	}
	return err
}
