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

	// DefaultContainer is the default name of the container.
	DefaultContainer = "orchestrations"
)

// ClearColumns returns the tables of a Runtime and their columns without payload, for encryption of rows. These
// columns hold ids, names, states and places, and must stay in clear where queries compare them. All other texts may
// be payloads.
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
