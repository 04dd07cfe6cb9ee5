// Package pollers implements cli.Pollers with package poller/admin.
package pollers

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Setting is the app's setting that defines the pollers.
const Setting = "ROUNDHOUSE_POLLERS"

// states holds the states of the pollers of a storage account, and their settings.
type states struct {
	admin   admin.Admin
	letters *engine.DeadLetters
}

var _ cli.Pollers = (*states)(nil)

// Open returns the function for cli.Main. lookup reads the environment: the definitions, and the connection strings
// of sources.
func Open(lookup func(string) (string, bool)) func(cli.Storage) (cli.Pollers, error) {
	return func(s cli.Storage) (cli.Pollers, error) {
		text, _ := lookup(Setting)
		settings, err := poller.ParseSettings(text)
		if err != nil {
			return nil, cli.Mark(cli.ErrUsage, fmt.Errorf("setting %s: %w", Setting, err))
		}
		return &states{letters: engine.NewDeadLetters(s.Tables, ""), admin: admin.Admin{Blob: poller.BlobStore{Blobs: s.Blobs}, Table: poller.TableStore{Tables: s.Tables}, Settings: settings,
			DSN: func(_ context.Context, s poller.Setting) (string, error) { return connectionString(lookup, s) }}}, nil
	}
}

// connectionString returns the connection string of a poller's source, if a setting has it.
func connectionString(lookup func(string) (string, bool), s poller.Setting) (string, error) {
	if s.Connection.Setting == "" {
		return "", cli.Mark(cli.ErrUsage, errors.New("its connection string is a secret of the vault: name a setting in connection here, and set it"))
	}
	dsn, _ := lookup(s.Connection.Setting)
	if dsn == "" {
		return "", cli.Mark(cli.ErrUsage, fmt.Errorf("setting %s is missing: it holds its connection string", s.Connection.Setting))
	}
	return dsn, nil
}

// List returns the names of the pollers that are defined here or have a state.
func (s *states) List(ctx context.Context) ([]string, error) {
	names, err := s.admin.Names(ctx)
	return names, coded(err)
}

// Show reads a state.
func (s *states) Show(ctx context.Context, name string) (cli.PollerState, error) {
	p, err := s.admin.Get(ctx, name)
	if err == nil {
		err = p.Err
	}
	state := cli.PollerState{Document: p.View.Text, Time: p.View.Time, Live: p.View.Live, Condition: string(p.View.Condition(err))}
	if p.View.Document != nil {
		state.Problem = p.View.Document.WhatIsWrong()
	}
	return state, coded(err)
}

// Lag reads the end of the source.
func (s *states) Lag(ctx context.Context, name string) (cli.PollerLag, error) {
	lag, err := s.admin.Lag(ctx, name)
	if err != nil {
		return cli.PollerLag{}, coded(err)
	}
	return cli.PollerLag{Poller: name, Place: lag.Place.String(), End: lag.End.String(), CaughtUp: lag.CaughtUp, Behind: lag.Behind, PolledAt: lag.PolledAt, HeldBack: lag.HeldBack, Retained: lag.Retained}, nil
}

// Change makes a change, or describes its effect.
func (s *states) Change(ctx context.Context, name string, c cli.PollerChange) (cli.PollerEffect, error) {
	made, err := s.admin.Change(ctx, name, admin.Change{Kind: admin.Kind(c.Kind), File: c.File, To: c.To,
		Cursor: poller.Cursor{Kind: c.CursorKind, Value: c.Value, Tiebreaker: c.Keys}, ChangeOptions: poller.ChangeOptions{DryRun: c.DryRun, Force: c.Force}})
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

// coded marks an error of package poller with the kind that decides the exit code.
func coded(err error) error {
	if errors.Is(err, admin.ErrNotDefined) {
		return cli.Mark(cli.ErrMissing, fmt.Errorf("%w: set %s as the app has it", err, Setting))
	}
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
