package access

import "slices"

// Permission is the requirement of an endpoint: a resource, and an action on it.
type Permission string

// The permissions. Every authenticated caller has Self.
const (
	Public Permission = "public" // for everybody: the endpoint does not authenticate
	Self   Permission = "self"   // read the own identity and permissions

	PlatformRead             Permission = "platform.read" // engines, nodes, metrics, health
	HistoryRead              Permission = "history.read"
	TimelineRead             Permission = "timeline.read"
	DeadLettersRead          Permission = "deadletters.read"
	DeadLettersDecide        Permission = "deadletters.decide"
	DeadLettersEdit          Permission = "deadletters.edit" // retry with another message
	DeadLettersBulk          Permission = "deadletters.bulk" // retry or expire all that a filter selects
	OrchestrationsRead       Permission = "orchestrations.read"
	OrchestrationsStart      Permission = "orchestrations.start"
	OrchestrationsSend       Permission = "orchestrations.send"    // raise events
	OrchestrationsCommand    Permission = "orchestrations.command" // suspend, resume, cancel, terminate, rewind, restart
	OrchestrationsPurge      Permission = "orchestrations.purge"
	OrchestrationsForcePurge Permission = "orchestrations.forcePurge"
	OutboxRead               Permission = "outbox.read"
	OutboxDecide             Permission = "outbox.decide" // retry, skip or replay one event
	OutboxReplay             Permission = "outbox.replay" // replay all that a filter selects
	OperationsRead           Permission = "operations.read"
	OperationsCancel         Permission = "operations.cancel" // end, pause and resume them
	TasksRead                Permission = "tasks.read"
	TasksAct                 Permission = "tasks.act"             // as the roles of the task and its assignee allow
	TasksAdminister          Permission = "tasks.administer"      // regardless of its roles and its assignee
	AcknowledgementsRead     Permission = "acknowledgements.read" // consumers' acknowledgements of credential versions
	AcknowledgementsSend     Permission = "acknowledgements.send"
	RegistryRead             Permission = "registry.read"
	RegistryWrite            Permission = "registry.write" // add, change, drain, resume, unlock and remove instances
	SchedulesRun             Permission = "schedules.run"  // send the messages of a schedule now
	PollersRead              Permission = "pollers.read"
	PollersChange            Permission = "pollers.change" // reset, clone, retire, accept a definition, break a lease
	AuditRead                Permission = "audit.read"
)

// Permissions returns all permissions of principals, so not Public.
func Permissions() []Permission {
	return []Permission{
		Self, PlatformRead, HistoryRead, TimelineRead, DeadLettersRead, DeadLettersDecide, DeadLettersEdit, DeadLettersBulk,
		OrchestrationsRead, OrchestrationsStart, OrchestrationsSend, OrchestrationsCommand, OrchestrationsPurge, OrchestrationsForcePurge,
		OutboxRead, OutboxDecide, OutboxReplay, OperationsRead, OperationsCancel,
		TasksRead, TasksAct, TasksAdminister, AcknowledgementsRead, AcknowledgementsSend, RegistryRead, RegistryWrite, SchedulesRun, PollersRead, PollersChange, AuditRead,
	}
}

// Known reports whether the permission exists.
func (p Permission) Known() bool { return p == Public || slices.Contains(Permissions(), p) }

// Changes reports whether its use changes something: then it is audited.
func (p Permission) Changes() bool {
	return !slices.Contains([]Permission{Public, Self, PlatformRead, HistoryRead, TimelineRead, DeadLettersRead, OrchestrationsRead, OutboxRead, OperationsRead,
		TasksRead, AcknowledgementsRead, RegistryRead, PollersRead, AuditRead}, p)
}

// Platform reports whether it concerns all tenants together, so that callers of one tenant cannot have it.
func (p Permission) Platform() bool {
	return slices.Contains([]Permission{PlatformRead, OrchestrationsForcePurge, SchedulesRun, PollersRead, PollersChange, AuditRead}, p)
}

// Role is a set of permissions with a name.
type Role string

// The roles. Each has the permissions of the previous ones, except for Sender, which is for machines.
const (
	// Participant is every signed-in user: each human task has its own permissions.
	Participant   Role = "participant"
	Reader        Role = "reader"
	Operator      Role = "operator"
	Administrator Role = "administrator"
	// Sender reads, starts orchestrations, raises events and acknowledges versions of credentials.
	Sender Role = "sender"
)

// Roles returns all roles.
func Roles() []Role { return []Role{Participant, Reader, Operator, Administrator, Sender} }

// Permissions returns those of the role, in the order of the constants; none for an unknown role.
func (r Role) Permissions() []Permission {
	participant := []Permission{Self, TasksRead, TasksAct}
	reader := []Permission{Self, PlatformRead, HistoryRead, TimelineRead, DeadLettersRead, OrchestrationsRead, OutboxRead, OperationsRead, TasksRead, AcknowledgementsRead, RegistryRead, PollersRead}
	operator := []Permission{DeadLettersDecide, DeadLettersEdit, OrchestrationsStart, OrchestrationsSend, OrchestrationsCommand, OutboxDecide, OperationsCancel, TasksAct, AcknowledgementsSend, RegistryWrite, SchedulesRun}
	var all []Permission
	switch r {
	case Participant:
		return participant
	case Reader:
		all = slices.Concat(participant, reader)
	case Operator:
		all = slices.Concat(participant, reader, operator)
	case Administrator:
		return Permissions()
	case Sender:
		all = append(reader, OrchestrationsStart, OrchestrationsSend, AcknowledgementsSend)
	}
	return ordered(all)
}

// ordered returns permissions in the order of the constants, each once.
func ordered(some []Permission) []Permission {
	return slices.DeleteFunc(Permissions(), func(p Permission) bool { return !slices.Contains(some, p) })
}
