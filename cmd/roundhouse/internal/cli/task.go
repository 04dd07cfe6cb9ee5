package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func (a *app) taskCommands() *cobra.Command {
	list := listCommand(a, listing[client.TaskItem]{
		spec: spec{use: "list [flags]", short: "List human tasks: open ones by due time"},
		path: []string{"tasks"},
		none: "There are no such tasks.",
		filters: []filter{
			byStatus("Created", "Assigned", "Completed", "Canceled"),
			{flag: "assignee", param: "assignee", usage: "only those of the person with this `id`"},
			{flag: "role", param: "role", usage: "only those that this `role` may take"},
			byEngine(), {flag: "tenant", param: "tenantId", usage: "only those of this `tenant`"},
			{flag: "due-before", param: "dueBefore", usage: "only those due before this `time`: 2026-11-21, 2026-11-21T10:00:00Z"},
		},
		columns: []column[client.TaskItem]{
			{title: "DUE (UTC)", text: func(t client.TaskItem) string { return at(t.DueAt) }},
			{title: "STATUS", text: func(t client.TaskItem) string { return t.Status }},
			{title: "NAME", text: func(t client.TaskItem) string { return t.Name }, cut: true},
			{title: "WHO", text: who, cut: true},
			{title: "ORCHESTRATION", text: func(t client.TaskItem) string { return t.OrchestrationID }},
			{title: "TASK", text: func(t client.TaskItem) string { return t.TaskID }},
		},
	})
	complete := a.taskCommand("complete", "Complete a task with its answer", "answer", "note")
	_ = complete.MarkFlagRequired("answer") // the flag exists
	return group("task", "What people are asked", "Show human tasks, and do them.",
		list, a.showCommand("ORCHESTRATION TASK", "Show a task, with what happened to it", a.api, "tasks"),
		a.taskCommand("claim", "Take a task"),
		a.assignCommand("assign", "Give a task to somebody"),
		a.assignCommand("reassign", "Give a task to somebody else"),
		a.taskCommand("release", "Put a task back for others", "note"), complete)
}

// who returns the assignee of a task, or the roles that may claim it.
func who(t client.TaskItem) string {
	if t.Assignee != "" {
		return cmp.Or(t.AssigneeName, t.Assignee)
	}
	return strings.Join(t.Roles, ",")
}

// taskCommand makes the command for an action on a task. may lists its optional inputs: answer, note.
func (a *app) taskCommand(verb, short string, may ...string) *cobra.Command {
	var note, answer string
	c := a.command(spec{use: verb + " ORCHESTRATION TASK [flags]", short: short, args: cobra.ExactArgs(2), run: func(ctx context.Context, args []string) error {
		data, err := a.input("answer", answer)
		if err != nil {
			return err
		}
		body := map[string]any{}
		if note != "" {
			body["note"] = note
		}
		if data != nil {
			body["output"] = data
		}
		return a.tell(ctx, a.api, post(body, "tasks", args[0], args[1], verb))
	}})
	if slices.Contains(may, "answer") {
		c.Flags().StringVar(&answer, "answer", "", "the answer as `JSON`, @file, or - for standard input")
	}
	if slices.Contains(may, "note") {
		c.Flags().StringVar(&note, "note", "", "a `text` for others")
	}
	return c
}

func (a *app) assignCommand(verb, short string) *cobra.Command {
	var note, name string
	c := a.command(spec{
		use: verb + " ORCHESTRATION TASK PERSON [flags]", short: short, args: cobra.ExactArgs(3),
		long: short + `.

PERSON is the id of the person, as whoami shows it:
{tenant}/{object}, the ids in Microsoft Entra.`,
		run: func(ctx context.Context, args []string) error {
			return a.tell(ctx, a.api, post(only(map[string]string{"assignee": args[2], "assigneeName": name, "note": note}), "tasks", args[0], args[1], verb))
		},
	})
	c.Flags().StringVar(&name, "name", "", "the `name` of the person, for others to read")
	c.Flags().StringVar(&note, "note", "", "a `text` for others")
	return c
}
