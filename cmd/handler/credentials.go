package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
)

// parallelExpiries bounds the parallel requests to the vault.
const parallelExpiries = 8

// certificateExpiries returns the expiry of the newest enabled version of each certificate.
func certificateExpiries(store certificates.Store, names []string) func(context.Context) ([]engine.Credential, error) {
	return expiries(names, func(ctx context.Context, name string) (time.Time, error) {
		versions, err := store.Versions(ctx, name)
		if errors.Is(err, secrets.ErrNotFound) {
			return time.Time{}, nil
		}
		for _, v := range slices.Backward(versions) {
			if v.Enabled {
				return v.NotAfter, err
			}
		}
		return time.Time{}, err
	})
}

// passwordExpiries returns the expiries of the applications' passwords, from a tag of their versions.
func passwordExpiries(store secrets.Store, applications []string) func(context.Context) ([]engine.Credential, error) {
	var names []string
	for _, application := range applications {
		names = append(names, secrets.Name(spn.Engine, application))
	}
	return expiries(names, func(ctx context.Context, name string) (time.Time, error) {
		versions, err := store.Versions(ctx, name)
		for _, v := range slices.Backward(versions) {
			if v.Enabled {
				ends, _ := time.Parse(time.RFC3339, v.Tags[spn.TagExpires]) // a version from elsewhere has no tag
				return ends, err
			}
		}
		return time.Time{}, err
	})
}

// expiries calls ask for each name, and returns the results in addition to the error.
func expiries(names []string, ask func(ctx context.Context, name string) (time.Time, error)) func(context.Context) ([]engine.Credential, error) {
	return func(ctx context.Context) ([]engine.Credential, error) {
		all, errs := make([]engine.Credential, len(names)), make([]error, len(names))
		var group errgroup.Group
		group.SetLimit(parallelExpiries)
		for i, name := range names {
			group.Go(func() error {
				ends, err := ask(ctx, name)
				if err != nil {
					errs[i] = fmt.Errorf("look up %s: %w", name, err)
				}
				all[i] = engine.Credential{Name: name, ExpiresAt: ends}
				return nil
			})
		}
		_ = group.Wait() // no request cancels the others
		return all, errors.Join(errs...)
	}
}

// names returns the targets of an engine.
func (all rotations) names(engine string) (names []string) {
	for _, r := range all[engine] {
		names = append(names, r.target)
	}
	return names
}
