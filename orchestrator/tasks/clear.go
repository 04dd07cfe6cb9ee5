package tasks

// ClearColumns names, for whoever encrypts rows, the columns of a task's rows and of its index rows that hold no payload:
// ids, names and states, and who may do it, has it and has done it. All other texts may be payloads.
func ClearColumns() (rows, index []string) {
	rows = []string{"Name", "Orchestrator", "CorrelationId", "TenantId", "Roles", "Assignee", "Kind", "By", "Status"}
	index = []string{"Orchestration", "TaskId", "Name", "Orchestrator", "CorrelationId", "TenantId", "Status", "Roles", "Assignee", "EndedBy", columnKeys}
	return rows, index
}
