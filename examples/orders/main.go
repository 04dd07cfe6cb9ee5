// Command orders is an app as a platform team writes it. It has one engine, of package orders, and everything else
// (queues, timers, history, dead letters, the API) follows from that engine's definition.
package main

import (
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/examples/orders/orders"
	"github.com/vibedata/roundhouse/handler"
)

func main() {
	handler.Main(handler.App{Engines: engines})
}

// engines returns the engines of the app. It only builds them: the platform also calls it on machines without a
// network.
func engines(p *handler.Platform) ([]engine.Definition, error) {
	return []engine.Definition{orders.Definition(orders.NewShop(p.Tables), terms(p.Settings))}, nil
}
