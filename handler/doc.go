// Package handler runs a platform's engines as an Azure Functions custom handler: the HTTP server that the Functions
// host starts and calls. A program consists of its engines and a call of [Main]:
//
//	func main() {
//		handler.Main(handler.App{Engines: engines})
//	}
//
//	func engines(p *handler.Platform) ([]engine.Definition, error) {
//		return []engine.Definition{backup.Definition(p.Settings.Required("BACKUP_URL", "the address of the backups"))}, nil
//	}
//
// An engine.Definition lists the parts of an engine: queues, schedules, intakes, tables, versions. The functions of
// the host are derived from it; the program's command manifest prints them, and roundhouse stage writes them.
// Roundhouse's own app, cmd/handler, is made in the same way.
//
// The package wires the common parts of every app around its engines: the runtime and its queues, history and dead
// letters, the outbox, pollers, the HTTP API, sweeps and retention. It listens on the loopback interface only. It
// owns no storage keys itself; the packages below it do.
package handler
