// Package api is the HTTP API over the history and the dead letters of the engines (standard, sections 3 and 5), over the
// outbox (outbox document, "API (Optional Admin)" and "Observability / Metrics"), over the orchestrations, and of the program's metrics
// and health.
//
//	GET  /api/history                     list history entries, newest first; superseded=false leaves out failures of
//	                                      runs that succeeded later
//	GET  /api/history/{engine}/{rowKey}   one entry, with its input, output and error
//	GET  /api/timeline/{correlationId}    the events of a correlation id, oldest first: history, dead letters,
//	                                      orchestrations and their stalls, attempts, takeovers, suspensions and cancellations
//
//	GET   /api/dlq                        list dead letters, newest failure first
//	GET   /api/dlq/groups                 the same by error signature, the largest group first: of the 5,000 newest at most
//	GET   /api/dlq/counts                 counts by engine and status: one query an engine
//	GET   /api/dlq/{engine}/{rowKey}      one dead letter, with its original message
//	PATCH /api/dlq/{engine}/{rowKey}      {"status", "resolutionNotes"}: pending becomes resolved or expired, expired pending
//	                                      or resolved, resolved pending; If-Match makes it 412 for a row that has changed
//	POST  /api/dlq/{engine}/{rowKey}/retry   retry it; a repeat returns the same answer
//	POST  /api/dlq/retry                  the same for all pending ones that {"engine", "instanceId", "errorSignature", "fromDate",
//	                                      "toDate"} select; {"ratePerSecond", "canary", "canarySeconds"}: an operation
//	POST  /api/dlq/expire                 expire all pending ones that failed last {"olderThanDays"} ago, and that the same
//	                                      members select: an operation
//
//	GET  /api/workflow/outbox                        list messages: status, tenant, eventType, correlationId, fromDate, toDate
//	                                                 (of their creation), pageSize, and page or continuationToken
//	GET  /api/workflow/outbox/{tenant}/{id}          one message, with its payload and its attempts
//	POST /api/workflow/outbox/{tenant}/{id}/retry    make a dead or pending message due now
//	POST /api/workflow/outbox/{tenant}/{id}/skip     end a dead or pending message undelivered; after each of the
//	                                                 three, its dead letter is no longer pending
//	POST /api/workflow/outbox/{tenant}/{id}/replay   deliver an ended message again, under the same key
//	POST /api/workflow/outbox/replay                 the same for all that {"status", "tenant", "eventType", "correlationId",
//	                                                 "fromDate", "toDate"} select, of which status is required: an operation
//	GET  /api/workflow/outbox/metrics                the outbox in numbers
//	GET  /api/workflow/outbox/backlog                waiting messages, by tenant and destination
//	GET  /api/workflow/outbox/circuits               destinations with open circuits
//
//	GET    /api/orchestrations                list orchestrations, newest first: orchestrator, status, fromDate, toDate (of their
//	                                          creation), tag (the key of their business reference), customStatus; by id with
//	                                          idPrefix
//	POST   /api/orchestrations                start one: {"orchestrator", "id", "input", "correlationId", "businessReference", "reuse"}
//	GET    /api/orchestrations/{id}           one: its snapshot, its waits, its pending events
//	DELETE /api/orchestrations/{id}           purge one that has ended
//	GET    /api/orchestrations/{id}/rounds    its results and decisions, oldest first
//	POST   /api/orchestrations/{id}/events/{name}   raise an event, whose value is the body
//	POST   /api/orchestrations/{id}/suspend, /resume, /cancel, /terminate   {"reason"}: a command
//	POST   /api/orchestrations/{id}/rewind, /restart   {"reason"}: run a failed or ended one again
//	POST   /api/orchestrations/purge          purge all that have ended {"endedBefore"} or {"olderThanDays"} ago, and that the
//	                                          filter of the list selects: an operation
//
//	GET  /api/nodes                       the processes of the app in the last day: their work in progress, and takeovers
//
//	GET  /api/credentials                 secrets and certificates in use that expire within withinDays (14)
//	GET  /api/operations                  list operations, newest first: status (Open for those that have not ended), by (a part of the caller)
//	GET  /api/operations/{id}             an operation: its status and its progress
//	POST /api/operations/{id}/cancel      end it early
//	POST /api/operations/{id}/pause       pause it; it finishes its work in progress
//	POST /api/operations/{id}/resume      resume it
//
//	GET  /api/me                          the caller's identity and permissions
//	GET  /api/audit                       callers' changes, newest first: target or principal, fromDate, toDate
//
//	GET  /api/openapi.json                this API as OpenAPI 3.1
//	GET  /api/metrics                     metrics for Prometheus
//	GET  /api/health/live                 the process answers
//	GET  /api/health/ready                and storage does
//	GET  /api/health/full                 and the outbox and stalled orchestrations are within their thresholds, with details
//
// Promises:
//   - Every answer but those of metrics, health and openapi.json is one JSON document: {status, correlationId,
//     timestamp, data} when the request succeeded, {status: "Failed", correlationId, timestamp, error: {code,
//     message, target, details}} when not, with the code in the header x-ms-error-code too. A client that accepts
//     application/problem+json gets errors by RFC 9457. Missing values are omitted, never null. Times are RFC 3339 in
//     UTC.
//   - The correlation id is that of the request (x-correlation-id, else the trace id of traceparent, else a new UUID)
//     and is returned as x-correlation-id.
//   - A request that is not understood in full is refused: unknown, repeated and empty query parameters are errors,
//     which name the valid ones. The parameters code, clientId and api-version belong to the host and are ignored.
//   - Words of a path match in any case, as in the host that forwards it; engine names and row keys are
//     case-sensitive and percent-decoded once.
//   - Nothing of an internal error reaches the caller; it is logged under the correlation id of the answer.
//   - An operation is accepted with 202 when it is durable: Location and Operation-Location are its address,
//     Retry-After is the polling interval. The header Idempotency-Key makes repeated requests one operation.
//   - Every route states its permission (Routes). access.Door authenticates the caller, never a body; for a caller of
//     one tenant, only data of that tenant exists.
//   - A change is recorded, with its caller, before it is made; one that cannot be recorded is not made.
//   - openapi.json is written by hand; the tests compare it with every answer.
//   - A message in delivery is answered with 409 and Retry-After: its claim expires.
//   - Health is application/health+json, or Healthy, Degraded or Unhealthy for a client that accepts text/plain; it
//     is 503 when it fails. live and ready are public, and show only that, and the kind of storage failure.
//
// HEAD works like GET. The package owns no storage keys.
package api
