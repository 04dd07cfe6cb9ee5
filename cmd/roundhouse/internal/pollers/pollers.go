// Package pollers lets the command line work on the states of pollers: package poller's Operator behind what cli asks for. It
// owns no storage keys; those that it changes are package poller's.
package pollers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Setting is the setting that defines the pollers, as the app has it.
const Setting = "ROUNDHOUSE_POLLERS"

// states are the states of the pollers of a storage account, and what the settings say about them.
type states struct {
	blob, table poller.Store
	settings    []poller.Setting
	lookup      func(string) (string, bool)
}

var _ cli.Pollers = (*states)(nil)

// Open gives what cli.Main needs. lookup reads the environment: the definitions, and the connection strings of sources.
func Open(lookup func(string) (string, bool)) func(cli.Storage) (cli.Pollers, error) {
	return func(s cli.Storage) (cli.Pollers, error) {
		text, _ := lookup(Setting)
		settings, err := poller.ParseSettings(text)
		if err != nil {
			return nil, cli.Mark(cli.ErrUsage, fmt.Errorf("setting %s: %w", Setting, err))
		}
		return &states{poller.BlobStore{Blobs: s.Blobs}, poller.TableStore{Tables: s.Tables}, settings, lookup}, nil
	}
}

// List gives the names of the pollers that have a state.
func (s *states) List(ctx context.Context) ([]string, error) {
	inBlobs, err := s.blob.List(ctx)
	if err != nil {
		return nil, coded(err)
	}
	inTable, err := s.table.List(ctx)
	names := append(inBlobs, inTable...)
	slices.Sort(names)
	return slices.Compact(names), coded(err)
}

// setting is what the settings say about a poller; ok is false when they do not know it.
func (s *states) setting(name string) (setting poller.Setting, ok bool) {
	i := slices.IndexFunc(s.settings, func(p poller.Setting) bool { return p.Name == name })
	if i < 0 {
		return setting, false
	}
	return s.settings[i], true
}

// operator works where the state of a poller is: where the settings say, or else where it is found.
func (s *states) operator(ctx context.Context, name string) (poller.Operator, error) {
	if setting, ok := s.setting(name); ok {
		return poller.Operator{Store: map[string]poller.Store{poller.StateBlob: s.blob, poller.StateTable: s.table}[setting.State]}, nil
	}
	_, err := s.blob.Load(ctx, name)
	if !errors.Is(err, poller.ErrNotFound) {
		return poller.Operator{Store: s.blob}, coded(err)
	}
	_, err = s.table.Load(ctx, name)
	switch {
	case errors.Is(err, poller.ErrNotFound):
		return poller.Operator{Store: s.blob}, nil
	case err != nil:
		return poller.Operator{}, coded(err)
	}
	return poller.Operator{Store: s.table}, nil
}

// Show reads a state.
func (s *states) Show(ctx context.Context, name string) (cli.PollerState, error) {
	o, err := s.operator(ctx, name)
	if err != nil {
		return cli.PollerState{}, err
	}
	v, err := o.Show(ctx, name)
	return cli.PollerState{Document: v.Text, Time: v.Time, Live: v.Live}, coded(err)
}

// source opens what a poller reads.
func (s *states) source(name string) (*sqlsource.Source, error) {
	setting, ok := s.setting(name)
	switch {
	case !ok:
		return nil, cli.Mark(cli.ErrMissing, fmt.Errorf("setting %s does not define the poller %s: set it as the app has it", Setting, name))
	case setting.Connection.Setting == "":
		return nil, cli.Mark(cli.ErrUsage, fmt.Errorf("the connection string of the poller %s is a secret of the vault: name a setting in connection here, and set it", name))
	}
	c, err := sqlsource.Decode(setting.Source)
	if err != nil {
		return nil, cli.Mark(cli.ErrUsage, fmt.Errorf("setting %s: poller %s: source: %w", Setting, name, err))
	}
	c.DSN, _ = s.lookup(setting.Connection.Setting)
	if c.DSN == "" {
		return nil, cli.Mark(cli.ErrUsage, fmt.Errorf("setting %s is missing: it holds the connection string of the poller %s", setting.Connection.Setting, name))
	}
	source, err := sqlsource.Open(c)
	return source, cli.Mark(cli.ErrUsage, err)
}

// Lag asks the source for its end.
func (s *states) Lag(ctx context.Context, name string) (lag cli.PollerLag, err error) {
	o, err := s.operator(ctx, name)
	if err != nil {
		return lag, err
	}
	v, err := o.Show(ctx, name)
	if err != nil {
		return lag, coded(err)
	}
	source, err := s.source(name)
	if err != nil {
		return lag, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	end, err := source.End(ctx)
	if err != nil {
		return lag, coded(err)
	}
	next, err := source.Fetch(ctx, v.Document.Cursor(), 1, 1)
	if err != nil {
		return lag, coded(err)
	}
	lag = cli.PollerLag{Poller: name, Place: v.Document.Cursor().String(), End: end.String(), CaughtUp: len(next.Rows) == 0,
		PolledAt: v.Document.PolledAt, HeldBack: next.HeldBack}
	from, okFrom := instant(v.Document.Cursor())
	to, okTo := instant(end)
	if okFrom && okTo && to.After(from) {
		lag.Behind = to.Sub(from)
	}
	return lag, nil
}

// instant is the time that a place is, where places are times.
func instant(c poller.Cursor) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, c.Value)
	return t, err == nil
}

// Change makes a change, or says what it would do.
func (s *states) Change(ctx context.Context, name string, c cli.PollerChange) (cli.PollerEffect, error) {
	o, err := s.operator(ctx, name)
	if err != nil {
		return cli.PollerEffect{}, err
	}
	made, err := s.change(ctx, o, name, c, poller.ChangeOptions{DryRun: c.DryRun, Force: c.Force})
	effect := cli.PollerEffect{Poller: made.Poller, Applied: made.Applied, Fenced: made.Fenced}
	if err != nil {
		return effect, coded(err)
	}
	if made.Before != nil {
		if effect.Before, err = made.Before.Encode(); err != nil {
			return effect, err
		}
	}
	effect.After, err = made.After.Encode()
	return effect, err
}

func (s *states) change(ctx context.Context, o poller.Operator, name string, c cli.PollerChange, how poller.ChangeOptions) (poller.Change, error) {
	switch c.Kind {
	case cli.ResetToBeginning:
		return o.ResetToBeginning(ctx, name, how)
	case cli.ResetToCheckpoint:
		return o.ResetToCheckpoint(ctx, name, c.File, how)
	case cli.ResetToCursor:
		return o.ResetToCursor(ctx, name, poller.Cursor{Kind: c.CursorKind, Value: c.Value, Tiebreaker: c.Keys}, how)
	case cli.CloneCheckpoint:
		return o.Clone(ctx, name, c.To, how)
	case cli.AcceptFingerprint:
		source, err := s.source(name)
		if err != nil {
			return poller.Change{}, err
		}
		made, err := o.AcceptFingerprint(ctx, name, source.Definition(), how)
		return made, errors.Join(err, source.Close())
	case cli.BreakLease:
		return o.BreakLease(ctx, name, how)
	case cli.Retire:
		return o.Retire(ctx, name, how)
	default:
		return poller.Change{}, fmt.Errorf("there is no change %q", c.Kind)
	}
}

// coded gives an error of package poller the kind that decides the exit code.
func coded(err error) error {
	for kind, causes := range map[error][]error{
		cli.ErrMissing:     {poller.ErrNotFound},
		cli.ErrUsage:       {poller.ErrInvalid},
		cli.ErrRefused:     {poller.ErrLeaseLive, poller.ErrExists, poller.ErrChanged, poller.ErrFingerprint, poller.ErrVersion, poller.ErrRetired},
		cli.ErrUnreachable: {poller.ErrOutcomeUnknown, sqlsource.ErrConnection},
	} {
		for _, cause := range causes {
			if errors.Is(err, cause) {
				return cli.Mark(kind, err)
			}
		}
	}
	return err
}
