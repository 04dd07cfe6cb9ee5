package audit

// ClearColumns returns, for the encryption of rows, the columns that hold no payload: principal, action, target and
// outcome. Reasons and the states before and after may contain texts of payloads and of errors.
func ClearColumns() map[string][]string {
	return map[string][]string{DefaultTable: {
		"Id", "Principal", "Name", "Kind", "Permission", "Action", "Target", "Door", "TenantId", "CorrelationId", "Outcome",
	}}
}
