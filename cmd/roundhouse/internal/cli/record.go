package cli

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/access"
)

// recorded makes a change directly in storage. The audit log records it first, and then the outcome: after, or the
// error.
func (a *app) recorded(ctx context.Context, s Storage, e audit.Entry, change func() (after string, err error)) error {
	bounded, cancel := a.bounded(ctx)
	defer cancel()
	log := &audit.Log{Tables: s.Tables, Now: a.Now}
	if err := log.CreateTable(bounded); err != nil { // the app that creates it may never have run
		return within("record who does this", err)
	}
	e, err := log.Begin(bounded, a.signed(e))
	if err != nil {
		return err
	}
	after, err := change()
	outcome := audit.Done
	if err != nil {
		outcome, after = audit.Failed, err.Error()
	}
	// The change is made: an interruption must not hide it.
	ending, cancel := a.bounded(context.WithoutCancel(ctx))
	defer cancel()
	return errors.Join(err, within("the audit log does not show what became of it", log.End(ending, e, outcome, after)))
}

// refused records a change that was refused.
func (a *app) refused(ctx context.Context, e audit.Entry, why error) error {
	s, err := a.stores()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	log := &audit.Log{Tables: s.Tables, Now: a.Now}
	e = a.signed(e)
	e.Outcome, e.After = audit.Refused, why.Error()
	return within("record who was refused", errors.Join(log.CreateTable(ctx), log.Record(ctx, e)))
}

// signed returns an entry with the operator of this command line.
func (a *app) signed(e audit.Entry) audit.Entry {
	who := access.LocalUser(a.operator())
	e.Principal, e.Name, e.Kind, e.Door = who.ID(), who.Name, string(who.Kind), "cli"
	return e
}
