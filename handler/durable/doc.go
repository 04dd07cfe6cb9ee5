// Package durable serves the HTTP management API of Durable Functions over the runtime, for the clients and scripts that
// speak it already. The routes, below /api/runtime/webhooks/durabletask and /runtime/webhooks/durabletask:
//
//	POST   orchestrators/{name}/{instanceId?}       start; with timeout and pollingInterval, and wait
//	GET    instances                                list
//	DELETE instances                                purge by filter
//	GET    instances/{instanceId}                   status, with history on demand
//	DELETE instances/{instanceId}                   purge
//	POST   instances/{instanceId}/terminate, /suspend, /resume, /rewind, /restart
//	POST   instances/{instanceId}/raiseEvent/{name}
//	       entities/...                             501: there are no entities
//	       makeprimary                              200: every instance of the app is a primary one
//
// The Functions host keeps /runtime for its extensions and refuses functions whose route begins so, so there clients use
// the base address with /api; the other one is for hosts that leave it to us. Links in answers have the base address that
// the request came to, and its function key if that was in the query.
//
// What it promises:
//   - Status codes, headers and JSON are those of the extension. Where they differ, docs/api.md says so.
//   - Words of a path, and names of query parameters, match in any case; what a parameter holds that cannot be read is
//     ignored, as the extension does, but not where that would purge more.
//   - When a start, an event or a command is answered, it is durable.
//   - Nothing of an internal error reaches the caller; it is logged.
//
// Who may call is decided by the host, by its function keys. The package owns no storage keys.
package durable
