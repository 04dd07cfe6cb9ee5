package engine

// ClearColumns returns, for row encryption, the tables of the history and of the dead letters with their columns that
// hold no payload: ids, names, states, columns that lists compare, and the names of deciders. All other texts may be
// payloads.
func ClearColumns() map[string][]string {
	return map[string][]string{
		DefaultHistoryTable: {"Engine", "InstanceId", "Operation", "Status", "CorrelationId", "RunStatus", supersededColumn, tenantColumn, targetColumn, descriptionColumn},
		DefaultDeadLetterTable: {"Engine", "MessageId", "InstanceId", "OriginalQueue", "OriginalMessageEncoding", "ErrorSignature", "DetectedReason",
			"Status", "CorrelationId", "ParentRowKey", "Node", "ResolvedBy", "RetryId", "RetriedBy", assigneeColumn, "AssigneeName", "RetryMessageId", tenantColumn, targetColumn, causesColumn},
	}
}
