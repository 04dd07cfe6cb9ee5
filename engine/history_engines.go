package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// enginesPartition holds a row for each name with possible history or dead letters. No escaped name begins with
	// ~.
	enginesPartition  = "~engines"
	descriptionColumn = "Description"
	// registerAtOnce is the number of rows in a transaction: descriptions may be long, so it is below the limit of
	// storage.
	registerAtOnce = 50
	// namesAge is the maximum age of the cached names. They change when an app is prepared.
	namesAge = time.Minute
	// namesTimeout limits the load of the names when the caller has no deadline.
	namesTimeout = 10 * time.Second
)

// Register stores the engines of an app, and its other names for history and dead letters, for tools that work while
// the app does not run. It also declares the index by instance complete for engines without rows. Entries of other
// apps in the same storage account are kept.
func (h *History) Register(ctx context.Context, engines []Description, others []string) error {
	described := map[string]any{}
	for _, d := range engines {
		text, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("register the engine %s: %w", d.Name, err)
		}
		described[d.Name] = string(text)
	}
	for _, name := range others {
		if described[name] == nil {
			described[name] = ""
		}
	}
	var ops []tables.Op
	for name, text := range described {
		ops = append(ops, tables.Upsert(tables.Entity{Key: tables.Key{Partition: enginesPartition, Row: tables.EscapeKey(name)},
			Properties: map[string]any{descriptionColumn: text}}))
	}
	for some := range slices.Chunk(ops, registerAtOnce) {
		if err := h.store.Apply(ctx, h.table, some...); err != nil {
			return fmt.Errorf("register the engines: %w", err)
		}
	}
	h.registered.forget()
	return h.instances.begin(ctx, slices.Sorted(maps.Keys(described)), time.Now())
}

// Names returns own and all registered names, sorted, so that lists show the rows of engines that the app no longer
// has. The registered names may be a minute old. They include all engines and pollers that the account ever had.
func (h *History) Names(ctx context.Context, own []string) ([]string, error) {
	names, err := h.registered.get(ctx, func(ctx context.Context) ([]string, error) {
		_, names, err := h.Registered(ctx)
		if errors.Is(err, tables.ErrNotFound) {
			err = nil // no app has been prepared
		}
		return names, err
	})
	if err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(own, names)))), nil
}

// knownNames caches the registered names.
type knownNames struct {
	loading singleflight.Group

	mu    sync.Mutex
	names []string
	at    time.Time
}

// get returns the cached names, or those of load, which runs once at a time. An error is not cached.
func (k *knownNames) get(ctx context.Context, load func(context.Context) ([]string, error)) ([]string, error) {
	k.mu.Lock()
	names, age := k.names, time.Since(k.at)
	k.mu.Unlock()
	if age >= 0 && age < namesAge {
		return names, nil
	}
	loaded, err, _ := k.loading.Do("", func() (any, error) {
		deadline, ok := ctx.Deadline()
		if !ok {
			deadline = time.Now().Add(namesTimeout)
		}
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline) // others wait for it, too
		defer cancel()
		names, err := load(ctx)
		if err == nil {
			k.mu.Lock()
			k.names, k.at = names, time.Now()
			k.mu.Unlock()
		}
		return names, err
	})
	names, _ = loaded.([]string)
	return names, err
}

func (k *knownNames) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = time.Time{}
}

// Registered gives what was registered: the descriptions of engines, and all names. Without the table, there is none.
func (h *History) Registered(ctx context.Context) (engines []Description, names []string, err error) {
	for next, more := "", true; more; more = next != "" {
		page, err := h.store.Query(ctx, h.table, tables.Query{Partition: enginesPartition, Continuation: next})
		if err != nil {
			return nil, nil, fmt.Errorf("read the registered engines: %w", err)
		}
		for _, e := range page.Entities {
			name, err := tables.UnescapeKey(e.Row)
			if err != nil {
				return nil, nil, fmt.Errorf("read the registered engine %s: %w", e.Key, err)
			}
			names = append(names, name)
			var d Description
			if text, _ := e.Properties[descriptionColumn].(string); text != "" {
				if err := json.Unmarshal([]byte(text), &d); err != nil {
					return nil, nil, fmt.Errorf("read the registered engine %s: %w", name, err)
				}
				engines = append(engines, d)
			}
		}
		next = page.Next
	}
	return engines, names, nil
}
