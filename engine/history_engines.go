package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// enginesPartition holds a row for each name under which there can be history or dead letters. No escaped name begins
	// with ~.
	enginesPartition  = "~engines"
	descriptionColumn = "Description"
	// registerAtOnce is how many rows a transaction writes: of descriptions, which may be long, fewer than storage takes.
	registerAtOnce = 50
)

// Register leaves in storage which engines an app has, and under what other names it writes history or dead letters, for tools
// that work when the app does not run, and declares the index by instance complete for those without rows. What other apps have
// registered with the same storage account stays.
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
	return h.instances.begin(ctx, slices.Sorted(maps.Keys(described)), time.Now())
}

// Names returns own and all registered names, sorted, so that lists show the rows of engines that the app no longer has. It reads the
// registered names, of which there are as many as engines and pollers have ever had.
func (h *History) Names(ctx context.Context, own []string) ([]string, error) {
	_, names, err := h.Registered(ctx)
	if errors.Is(err, tables.ErrNotFound) {
		err = nil // no app has been prepared
	}
	if err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(own, names)))), nil
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
