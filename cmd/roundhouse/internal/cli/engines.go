package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// completionTime bounds the storage read for a shell completion.
const completionTime = 2 * time.Second

// registered returns the engines that the app registered in storage at its last start, and all names with possible
// history and dead letters.
func registered(ctx context.Context, s Storage) (engines []engine.Description, names []string, err error) {
	engines, names, err = engine.NewHistory(s.placement(), "").Registered(ctx)
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil, nil // the app has never run
	}
	return engines, names, err
}

// placement returns the account's tables, with the app's tables of history and dead letters.
func (s Storage) placement() *engine.Placement {
	return engine.AppliedPlacement(engine.PlacementConfig{Tables: s.Tables, Registry: registry.New(s.Tables, ""), Account: s.Account.Name})
}

// engineOf returns the engine with a name.
func engineOf(ctx context.Context, s Storage, name string) (engine.Description, error) {
	engines, _, err := registered(ctx, s)
	if err != nil {
		return engine.Description{}, err
	}
	var known []string
	for _, e := range engines {
		if e.Name == name {
			return e, nil
		}
		known = append(known, e.Name)
	}
	if len(known) == 0 {
		return engine.Description{}, Mark(ErrMissing, errors.New("no app has left its engines in this storage account: it does so when it starts. Has it run with this account?"))
	}
	return engine.Description{}, Mark(ErrUsage, fmt.Errorf("there is no engine %q; the app has %s", name, strings.Join(known, ", ")))
}

// completeEngines completes the names of engines for the shell, and none when storage does not answer quickly.
func (a *app) completeEngines(ctx context.Context) []string {
	s, err := a.stores()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	engines, _, err := registered(ctx, s)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range engines {
		names = append(names, e.Name)
	}
	return names
}

// queueNames returns the queues of the app, without their poison queues.
func queueNames(engines []engine.Description) []string {
	names := []string{"orchestration-signals", "orchestration-schedules", "orchestration-activities", outbox.DefaultQueue}
	for _, e := range engines {
		names = append(names, e.Queue)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
