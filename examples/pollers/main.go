// Command pollers is an app with input from a database: new rows of a table become messages of an engine. The engine
// does not know their source. The setting ROUNDHOUSE_POLLERS in local.settings.json names the table and the target of
// its rows; the setting SHOP_DSN, which it names, has the address of the database.
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
