package orchestrator

import (
	"slices"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// The default names of the tables, and of the container.
const (
	defaultTable      = "orchestrations"
	defaultIndexTable = "orchestrationsParked"
	defaultTaskTable  = "orchestrationTasks"

	// DefaultContainer is the name of the container unless Config says otherwise.
	DefaultContainer = "orchestrations"
)

// ClearColumns names, for whoever encrypts rows, the tables of a Runtime and those of their columns that hold no payload:
// ids, names, states and places. They have to stay as they are where queries compare them. All other texts may be payloads.
func ClearColumns() map[string][]string {
	rounds := []string{columnEncoding, columnBlob, columnCommit}
	status := []string{"Name", "CorrelationId", "TenantId", "RuntimeProvider", "RuntimeInstanceId", "RuntimeStatus", "LastExecutedBy", columnResponsible, "ResumePointerJson",
		"LastSignalId", "LastErrorCode", "Version", "ParentId", "WaitingKind", "WaitingToken", "ActiveTaskId"}
	rows, index := tasks.ClearColumns()
	return map[string][]string{
		defaultTable:      slices.Concat(rounds, status, rows),
		defaultIndexTable: {columnID, columnPartition, columnTask, columnChild},
		defaultTaskTable:  index,
	}
}
