// Package api is the HTTP API over the history and the dead letters of the engines (standard, sections 3 and 5).
//
//	GET /api/history                     list history entries, newest first
//	GET /api/history/{engine}/{rowKey}   one entry, with its input, output and error
//	GET /api/dlq                         list dead letters, newest failure first
//	GET /api/dlq/{engine}/{rowKey}       one dead letter, with its original message
//
// What it promises:
//   - Every answer is one JSON document: {status, correlationId, timestamp, data} when the request succeeded,
//     {status: "Failed", correlationId, timestamp, error: {code, message, target, details}} when not, with the code in
//     the header x-ms-error-code too. Who accepts application/problem+json gets errors as RFC 9457 has them. Values
//     that are not there are left out, never null. Times are RFC 3339 in UTC.
//   - The correlation id is that of the request (x-correlation-id, else the trace id of traceparent, else a new UUID)
//     and comes back as x-correlation-id.
//   - A request that is not understood in full is refused: unknown, repeated and empty query parameters are errors,
//     which name what would be right. The parameters code, clientId and api-version belong to the host and are ignored.
//   - Words of a path match in any case, as they do in the host that forwards it; engine names and row keys keep
//     theirs and are percent-decoded once.
//   - Nothing of an internal error reaches the caller; it is logged under the correlation id of the answer.
//
// HEAD works like GET. Who may call is decided by the host, by its function keys. The package owns no storage keys.
package api
