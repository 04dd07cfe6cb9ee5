package audit

// ClearColumns names, for whoever encrypts rows, the columns that hold no payload: who did what to what, and the outcome.
// Reasons, and what was before and after, may have texts of payloads and of errors.
func ClearColumns() map[string][]string {
	return map[string][]string{DefaultTable: {
		"Id", "Principal", "Name", "Kind", "Permission", "Action", "Target", "Door", "TenantId", "CorrelationId", "Outcome",
	}}
}
