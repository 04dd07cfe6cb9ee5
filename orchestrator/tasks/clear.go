package tasks

// ClearColumns returns the columns of a task's rows and of its index rows that hold no payload, for row encryption:
// ids, names, states, and the people who are permitted, assigned or have acted. All other texts may be payloads.
func ClearColumns() (rows, index []string) {
	rows = []string{"Name", "Orchestrator", "CorrelationId", "TenantId", "Roles", "Assignee", "Kind", "By", "Status"}
	index = []string{"Orchestration", "TaskId", "Name", "Orchestrator", "CorrelationId", "TenantId", "Status", "Roles", "Assignee", "EndedBy", columnKeys}
	return rows, index
}
