package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

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
	return h.instances.begin(ctx, slices.Sorted(maps.Keys(described)), time.Now())
}

// Registered returns the registered descriptions of engines, and all names. Without the table, both are empty.
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
