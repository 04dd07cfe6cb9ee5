// Package stock is an engine that counts deliveries to a warehouse, a message for each delivery. It is the smallest
// useful engine: one activity, and an orchestrator that calls it.
//
// It owns the table stockDelivered: a partition is an article, a row is a delivery.
package stock

import (
	"context"
	"fmt"
	"strconv"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// Engine is the engine's name.
	Engine = "stock"
	// Queue is the queue of its messages.
	Queue = "stock-queue"
	// Table is the table that it owns.
	Table = "stockDelivered"
)

// Delivery is the input of a message: the row's value in the column that the poller's inputColumn names.
type Delivery struct {
	ID      int    `json:"id"`
	Article string `json:"article"`
	Pieces  int    `json:"pieces"`
}

// Definition returns the engine over a store of tables.
func Definition(store tables.Store) engine.Definition {
	count := orchestrator.NewActivity("count", counter{store}.count, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 3}))
	run := func(ctx *orchestrator.Context, r engine.Request[Delivery]) (string, error) {
		if r.Input.Article == "" || r.Input.Pieces < 1 {
			return "", orchestrator.Permanent(fmt.Errorf("delivery %d: it needs an article and a number of pieces", r.Input.ID))
		}
		return count.Call(ctx, r.Input).Await()
	}
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, run),
		Operations:   []orchestrator.AnyActivity{count},
		Tables:       []string{Table},
	}
}

// counter has the store of the activity.
type counter struct{ tables tables.Store }

// count records a delivery. It writes the same row each time, because a row of the database can be delivered twice.
func (c counter) count(ctx context.Context, d Delivery) (string, error) {
	err := c.tables.Apply(ctx, Table, tables.Upsert(tables.Entity{
		Key:        tables.Key{Partition: tables.EscapeKey(d.Article), Row: strconv.Itoa(d.ID)},
		Properties: map[string]any{"Pieces": int64(d.Pieces)},
	}))
	return fmt.Sprintf("%d pieces of %s", d.Pieces, d.Article), err
}
