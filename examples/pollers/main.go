// Command pollers is an app whose work comes out of a database: new rows of a table become messages of an engine. The engine knows
// nothing of that. Which table it is, and where its rows go, says the setting ROUNDHOUSE_POLLERS in local.settings.json; where the
// database is, says the setting that it names, SHOP_DSN.
package main

import (
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/examples/pollers/stock"
	"github.com/vibedata/roundhouse/handler"
)

func main() {
	handler.Main(handler.App{Engines: engines})
}

func engines(p *handler.Platform) ([]engine.Definition, error) {
	return []engine.Definition{stock.Definition(p.Tables)}, nil
}
