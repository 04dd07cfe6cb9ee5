package engine

// ClearColumns names, for whoever encrypts rows, the tables of the history and of the dead letters, and those of their
// columns that hold no payload: ids, names, states, what lists compare, and who decided. All other texts may be payloads.
func ClearColumns() map[string][]string {
	return map[string][]string{
		DefaultHistoryTable: {"Engine", "InstanceId", "Operation", "Status", "CorrelationId", "RunStatus", supersededColumn, tenantColumn, targetColumn, descriptionColumn},
		DefaultDeadLetterTable: {"Engine", "MessageId", "InstanceId", "OriginalQueue", "OriginalMessageEncoding", "ErrorSignature", "DetectedReason",
			"Status", "CorrelationId", "ParentRowKey", "Node", "ResolvedBy", "RetryId", "RetriedBy", assigneeColumn, "AssigneeName", "RetryMessageId", tenantColumn, targetColumn, causesColumn},
	}
}
