// Package durable serves the HTTP management API of Durable Functions over the runtime, for its existing clients and
// scripts. The routes, below /api/runtime/webhooks/durabletask and /runtime/webhooks/durabletask:
//
//	POST   orchestrators/{name}/{instanceId?}       start; with timeout and pollingInterval, and wait
//	GET    instances                                list
//	DELETE instances                                purge by filter
//	GET    instances/{instanceId}                   status, with history on demand
//	DELETE instances/{instanceId}                   purge
//	POST   instances/{instanceId}/terminate, /suspend, /resume, /rewind, /restart
//	POST   instances/{instanceId}/raiseEvent/{name}
//	       entities/...                             501: entities are not supported
//	       makeprimary                              200: every instance of the app is a primary one
//
// The Functions host reserves /runtime for its extensions and refuses functions with that prefix, so clients use the
// base address with /api there; the other one is for hosts that forward it. Links in answers have the base address
// that the request came to, and its function key if that was in the query.
//
// Promises:
//   - Status codes, headers and JSON are those of the extension. Where they differ, docs/api.md says so.
//   - Words of a path, and names of query parameters, match in any case; an invalid value of a parameter is ignored,
//     as by the extension, but not where that would purge more.
//   - When a start, an event or a command is answered, it is durable.
//   - Nothing of an internal error reaches the caller; it is logged.
//
// The host authenticates callers by function keys, and Config.Door checks them. The package owns no storage keys.
package durable
