// Package handler makes an Azure Functions custom handler of a platform's engines: the HTTP server that the Functions host
// starts and calls. A program of one's own is its engines and a call of [Main]:
//
//	func main() {
//		handler.Main(handler.App{Engines: engines})
//	}
//
//	func engines(p *handler.Platform) ([]engine.Definition, error) {
//		return []engine.Definition{backup.Definition(p.Settings.Required("BACKUP_URL", "the address of the backups"))}, nil
//	}
//
// What an engine is made of, it says in its engine.Definition: queues, schedules, intakes, tables, versions. The functions that
// the host needs follow from that; the command manifest of the program prints them, and roundhouse stage lays them out.
// Roundhouse's own app, cmd/handler, is made in this way and in no other.
//
// The package wires what every app has around its engines: the runtime and its queues, history and dead letters, the outbox,
// pollers, the HTTP API, sweeps and retention. It listens on the loopback interface only. It owns no storage keys itself; the
// packages below it do.
package handler
