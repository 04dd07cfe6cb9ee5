package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/handler/access"
)

// The annotations of a command that calls the API: the required permissions, separated by blanks; and those with
// --all, with --force, and with --edit or --message.
const (
	needsAnnotation      = "roundhouse.permissions"
	needsAllAnnotation   = "roundhouse.permissions.all"
	needsForceAnnotation = "roundhouse.permissions.force"
	needsEditAnnotation  = "roundhouse.permissions.edit"
)

// need holds the permissions of a command: always, and replacements for --all, for --force, and for --edit or
// --message.
type need struct{ always, all, force, edit []access.Permission }

// needs returns the permissions of the commands that call the API, by their paths. Other commands do not call it.
func needs() map[string]need {
	some := func(p ...access.Permission) []access.Permission { return p }
	one := func(p ...access.Permission) need { return need{always: p} }
	command := one(access.OrchestrationsCommand)
	return map[string]need{
		"whoami":       one(access.Self),
		"audit list":   one(access.AuditRead),
		"audit export": one(access.AuditRead),
		"engines":      one(access.PlatformRead),
		"doctor":       one(access.Self, access.PlatformRead),
		"history list": one(access.HistoryRead),
		"history show": one(access.HistoryRead),
		"timeline":     one(access.TimelineRead),
		"dlq list":     one(access.DeadLettersRead),
		"dlq show":     one(access.DeadLettersRead),
		"dlq groups":   one(access.DeadLettersRead),
		"dlq counts":   one(access.DeadLettersRead),
		"dlq resolve":  one(access.DeadLettersDecide),
		"dlq retry": {always: some(access.DeadLettersRead, access.DeadLettersDecide), all: some(access.DeadLettersRead, access.DeadLettersBulk, access.OperationsRead),
			edit: some(access.DeadLettersRead, access.DeadLettersEdit)},
		"dlq note":                one(access.DeadLettersDecide),
		"dlq assign":              one(access.DeadLettersDecide),
		"dlq expire":              {always: some(access.DeadLettersDecide), all: some(access.DeadLettersRead, access.DeadLettersBulk, access.OperationsRead)},
		"outbox list":             one(access.OutboxRead),
		"outbox show":             one(access.OutboxRead),
		"outbox metrics":          one(access.PlatformRead),
		"outbox backlog":          one(access.OutboxRead),
		"outbox circuits":         one(access.PlatformRead),
		"outbox retry":            one(access.OutboxDecide),
		"outbox skip":             one(access.OutboxDecide),
		"outbox replay":           {always: some(access.OutboxDecide), all: some(access.OutboxRead, access.OutboxReplay, access.OperationsRead)},
		"task list":               one(access.TasksRead),
		"task show":               one(access.TasksRead),
		"task claim":              one(access.TasksAct),
		"task assign":             one(access.TasksAct),
		"task reassign":           one(access.TasksAct),
		"task release":            one(access.TasksAct),
		"task complete":           one(access.TasksAct),
		"acknowledge":             one(access.AcknowledgementsSend),
		"consumers":               one(access.AcknowledgementsRead),
		"orchestration list":      one(access.OrchestrationsRead),
		"orchestration show":      one(access.OrchestrationsRead),
		"orchestration start":     one(access.OrchestrationsStart),
		"orchestration raise":     one(access.OrchestrationsSend),
		"orchestration suspend":   command,
		"orchestration resume":    command,
		"orchestration cancel":    command,
		"orchestration rewind":    command,
		"orchestration restart":   command,
		"orchestration terminate": one(access.OrchestrationsRead, access.OrchestrationsCommand),
		"orchestration purge": {always: some(access.OrchestrationsRead, access.OrchestrationsPurge), all: some(access.OrchestrationsRead, access.OrchestrationsPurge, access.OperationsRead),
			force: some(access.OrchestrationsRead, access.OrchestrationsPurge, access.OrchestrationsForcePurge)},
		"registry list":    one(access.RegistryRead),
		"registry show":    one(access.RegistryRead),
		"registry add":     one(access.RegistryWrite),
		"registry set":     one(access.RegistryWrite),
		"registry drain":   one(access.RegistryRead, access.RegistryWrite),
		"registry resume":  one(access.RegistryWrite),
		"registry unlock":  one(access.RegistryRead, access.RegistryWrite),
		"registry remove":  one(access.RegistryRead, access.RegistryWrite),
		"nodes":            one(access.PlatformRead),
		"schedule list":    one(access.PlatformRead),
		"schedule run":     {always: some(access.SchedulesRun), all: some(access.SchedulesRun)},
		"operation show":   one(access.OperationsRead),
		"operation wait":   one(access.OperationsRead),
		"operation list":   one(access.OperationsRead),
		"operation cancel": one(access.OperationsCancel),
		"operation pause":  one(access.OperationsCancel),
		"operation resume": one(access.OperationsCancel),
	}
}

// annotate adds the permissions to the commands.
func annotate(root *cobra.Command) {
	all := needs()
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if n, ok := all[strings.TrimPrefix(c.CommandPath(), root.Name()+" ")]; ok {
			c.Annotations = map[string]string{needsAnnotation: words(n.always), needsAllAnnotation: words(n.all), needsForceAnnotation: words(n.force), needsEditAnnotation: words(n.edit)}
		}
		for _, below := range c.Commands() {
			each(below)
		}
	}
	each(root)
}

func words(permissions []access.Permission) string {
	var names []string
	for _, p := range permissions {
		names = append(names, string(p))
	}
	return strings.Join(names, " ")
}

// needed returns the permissions for the help of a command; "" for one that does not call the API.
func needed(c *cobra.Command) string {
	var lines []string
	for _, n := range []struct{ annotation, when string }{{needsAnnotation, "Needs"}, {needsAllAnnotation, "With --all, needs"}, {needsForceAnnotation, "With --force, needs"},
		{needsEditAnnotation, "With --edit or --message, needs"}} {
		names := strings.Fields(c.Annotations[n.annotation])
		switch {
		case len(names) == 1:
			lines = append(lines, n.when+" the permission "+names[0]+".")
		case len(names) > 1:
			lines = append(lines, n.when+" the permissions", "  "+strings.Join(names, "\n  "))
		}
	}
	return strings.Join(lines, "\n")
}
