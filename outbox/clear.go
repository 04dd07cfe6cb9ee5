package outbox

// ClearColumns returns, for the encryption of rows, the columns that hold no payload: ids, types, states, positions,
// and operators. All other texts, such as payloads, their hashes and the answers of receivers, may be payloads.
func ClearColumns() map[string][]string {
	return map[string][]string{DefaultTable: {
		"Id", "TenantId", "EventType", "Name", "Status", "IdempotencyKey", "Destination", "OrderKey", "CorrelationId", "TraceParent",
		"SkippedBy", "ClaimedBy", "DeadLetter", "PayloadBlob", "IndexRow", "Origin", "Settlement", "GivenUp",
	}}
}
