// Package api is the HTTP API over the history and the dead letters of the engines (standard, sections 3 and 5), over the
// outbox (outbox document, "API (Optional Admin)" and "Observability / Metrics"), over the orchestrations, and of the program's metrics
// and health.
//
//	GET  /api/history                     list history entries, newest first; superseded=false leaves out what failed in
//	                                      runs that succeeded after all
//	GET  /api/history/{engine}/{rowKey}   one entry, with its input, output and error
//	GET  /api/timeline/{correlationId}    what all engines did under a correlation id, oldest first: history, dead letters,
//	                                      orchestrations and their stalls, attempts, takeovers, suspensions and cancellations
//
//	GET   /api/dlq                        list dead letters, newest failure first
//	GET   /api/dlq/groups                 the same by error signature, the largest group first: of the 5,000 newest at most
//	GET   /api/dlq/counts                 how many there are, by engine and status: one query an engine
//	GET   /api/dlq/{engine}/{rowKey}      one dead letter, with its original message
//	PATCH /api/dlq/{engine}/{rowKey}      {"status", "resolutionNotes"}: pending becomes resolved or expired, expired pending
//	                                      or resolved, resolved pending; If-Match makes it 412 for a row that has changed
//	POST  /api/dlq/{engine}/{rowKey}/retry   send it again; repeated, it answers the same
//	POST  /api/dlq/retry                  the same for all pending ones that {"engine", "instanceId", "errorSignature", "fromDate",
//	                                      "toDate"} select; {"ratePerSecond", "canary", "canarySeconds"}: an operation
//	POST  /api/dlq/expire                 expire all pending ones that failed last {"olderThanDays"} ago, and that the same
//	                                      members select: an operation
//
//	GET  /api/workflow/outbox                        list messages: status, tenant, eventType, correlationId, fromDate, toDate
//	                                                 (of their creation), pageSize, and page or continuationToken
//	GET  /api/workflow/outbox/{tenant}/{id}          one message, with its payload and its attempts
//	POST /api/workflow/outbox/{tenant}/{id}/retry    what is dead or pending is due now
//	POST /api/workflow/outbox/{tenant}/{id}/skip     what is dead or pending ends undelivered; after each of the
//	                                                 three, its dead letter is not pending any more
//	POST /api/workflow/outbox/{tenant}/{id}/replay   what has ended is delivered again, under the same key
//	POST /api/workflow/outbox/replay                 the same for all that {"status", "tenant", "eventType", "correlationId",
//	                                                 "fromDate", "toDate"} select, of which status is required: an operation
//	GET  /api/workflow/outbox/metrics                the outbox in numbers
//	GET  /api/workflow/outbox/backlog                what waits, by tenant and destination
//	GET  /api/workflow/outbox/circuits               the destinations that nodes send nothing to for a while
//
//	GET    /api/orchestrations                list orchestrations, newest first: orchestrator, status, fromDate, toDate (of their
//	                                          creation), tag (the key of their business reference), customStatus; by id with
//	                                          idPrefix
//	POST   /api/orchestrations                start one: {"orchestrator", "id", "input", "correlationId", "businessReference", "reuse"}
//	GET    /api/orchestrations/{id}           one: its snapshot, what it waits for, events that nobody has asked for yet
//	DELETE /api/orchestrations/{id}           purge one that has ended
//	GET    /api/orchestrations/{id}/rounds    what it learned and decided, oldest first
//	POST   /api/orchestrations/{id}/events/{name}   raise an event, whose value is the body
//	POST   /api/orchestrations/{id}/suspend, /resume, /cancel, /terminate   {"reason"}: a command
//	POST   /api/orchestrations/{id}/rewind, /restart   {"reason"}: run again what failed, or what ended
//	POST   /api/orchestrations/purge          purge all that have ended {"endedBefore"} or {"olderThanDays"} ago, and that the
//	                                          filter of the list selects: an operation
//
//	GET  /api/nodes                       the processes that have run the app within a day: what they have in hand, who took over
//	                                      from whom
//
//	GET  /api/credentials                 secrets and certificates in use that expire within withinDays (14)
//	GET  /api/operations                  list operations, newest first: status (Open for those that have not ended), by (a part of who)
//	GET  /api/operations/{id}             an operation: its status and its progress
//	POST /api/operations/{id}/cancel      end it early
//	POST /api/operations/{id}/pause       keep it from going on; it finishes what it has in hand
//	POST /api/operations/{id}/resume      let it go on
//
//	GET  /api/me                          who the caller is, and what the caller may do
//	GET  /api/audit                       who did what, newest first: target or principal, fromDate, toDate
//
//	GET  /api/openapi.json                all this, for programs: OpenAPI 3.1
//	GET  /api/metrics                     everything counted, for Prometheus
//	GET  /api/health/live                 the process answers
//	GET  /api/health/ready                and storage does
//	GET  /api/health/full                 and the outbox and what is stalled are within their thresholds, with the details
//
// What it promises:
//   - Every answer but those of metrics, health and openapi.json is one JSON document: {status, correlationId, timestamp, data} when
//     the request succeeded, {status: "Failed", correlationId, timestamp, error: {code, message, target, details}} when
//     not, with the code in the header x-ms-error-code too. Who accepts application/problem+json gets errors as RFC 9457 has them. Values
//     that are not there are left out, never null. Times are RFC 3339 in UTC.
//   - The correlation id is that of the request (x-correlation-id, else the trace id of traceparent, else a new UUID)
//     and comes back as x-correlation-id.
//   - A request that is not understood in full is refused: unknown, repeated and empty query parameters are errors,
//     which name what would be right. The parameters code, clientId and api-version belong to the host and are ignored.
//   - Words of a path match in any case, as they do in the host that forwards it; engine names and row keys keep
//     theirs and are percent-decoded once.
//   - Nothing of an internal error reaches the caller; it is logged under the correlation id of the answer.
//   - An operation is accepted with 202 when it is durable: Location and Operation-Location say where it is, Retry-After when to look.
//     The header Idempotency-Key makes it one operation however often the request is sent.
//   - Every route states the permission that its caller needs (Routes). Who calls is what access.Door says, and never what a
//     body says; a caller of one tenant sees and changes what belongs to it, and the rest is not there.
//   - A change is recorded, with its caller, before it is made; one that cannot be recorded is not made.
//   - openapi.json is written by hand; the tests hold it and every answer of theirs against each other.
//   - A message that is being delivered is answered with 409 and Retry-After: its claim has an end.
//   - Health is application/health+json, or Healthy, Degraded or Unhealthy to who accepts text/plain; it is 503 when it
//     fails. Who may call live and ready learns no more than that, and what kind of trouble storage is in.
//
// HEAD works like GET. The package owns no storage keys.
package api
