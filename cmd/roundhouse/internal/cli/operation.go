package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func (a *app) operationCommands() *cobra.Command {
	told := func(word, short string) *cobra.Command {
		return a.command(spec{use: word + " ID", short: short, args: cobra.ExactArgs(1), run: func(ctx context.Context, args []string) error {
			return a.tell(ctx, a.api, post(nil, "operations", args[0], word))
		}})
	}
	wait := a.command(spec{use: "wait ID", short: "Show its progress until it ends", args: cobra.ExactArgs(1), run: func(ctx context.Context, args []string) error {
		c, err := a.api(ctx)
		if err != nil {
			return err
		}
		return a.follow(ctx, c, args[0], 0)
	}})
	return group("operation", "Work on many things", "Show operations, which work on many things behind a request.",
		a.operationList(), a.showCommand("ID", "Show the status and the progress of one", a.api, "operations"), told("cancel", "End one early; what was done stays done"),
		told("pause", "Keep one from going on behind what it has in hand"), told("resume", "Let one go on that is paused"), wait)
}

func (a *app) operationList() *cobra.Command {
	return listCommand(a, listing[client.Operation]{
		spec: spec{use: "list [flags]", short: "List operations, the newest first",
			long: `List operations, the newest first: what each does, who has decided on it, and
how far it is.`,
			example: "  roundhouse operation list --status open\n  roundhouse operation list --by ann@example.com"},
		path: []string{"operations"},
		none: "There are no such operations.",
		filters: []filter{
			byStatus("Open", "NotStarted", "Running", "Paused", "Succeeded", "Failed", "Canceled"),
			{flag: "by", param: "by", usage: "only those of whoever has this `text` in the id or the name"},
		},
		columns: []column[client.Operation]{
			{title: "ID", text: func(o client.Operation) string { return o.ID }},
			{title: "STATUS", text: func(o client.Operation) string { return o.Status }},
			{title: "ACTION", text: func(o client.Operation) string {
				return o.Request.Action + " of " + strings.TrimSuffix(o.Kind, "-bulk")
			}},
			{title: "DONE", text: operationDone},
			{title: "BEGAN (UTC)", text: func(o client.Operation) string { return at(o.CreatedAt) }},
			{title: "BY", text: func(o client.Operation) string { return o.Request.By }, cut: true},
		},
	})
}

// operationDone returns the progress of an operation.
func operationDone(o client.Operation) string {
	text := fmt.Sprint(o.Progress.Done)
	if n := o.Progress.PassedOver; n > 0 {
		text += fmt.Sprintf(", %d passed over", n)
	}
	if n := o.Progress.Returned; n > 0 {
		text += fmt.Sprintf(", %d came back", n)
	}
	return text
}
