// Command pollers is an app whose work comes from a database: new rows of a table become messages of an engine, which
// does not depend on that. The setting ROUNDHOUSE_POLLERS in local.settings.json names the table and the destination
// of its rows; the setting that it names, SHOP_DSN, has the address of the database.
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
