package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// nodesCommand lists the processes of the app.
func (a *app) nodesCommand() *cobra.Command {
	return listCommand(a, listing[client.NodeItem]{
		spec: spec{use: "nodes [flags]", short: "Show the processes that run the app",
			long: `Show the processes that have run the app within a day, the latest to begin
first: what each had in hand when it was last seen, and who has taken over from
whom.

A process writes its row when it starts, once a minute while it has work in
hand, and when it comes to rest or ends. One that is idle makes no requests, so
its last sign of life may be old, and "alive" means that nothing else is known.
Times are those of the process, whose clock may be wrong.`,
			example: "  roundhouse nodes\n  roundhouse nodes --state taken\n  roundhouse nodes --storage \"$AzureWebJobsStorage\""},
		path:    []string{"nodes"},
		open:    a.either,
		none:    "No such process is known. An app writes its rows when it starts.",
		filters: []filter{{flag: "state", param: "state", usage: "only those in this `state`: alive, gone, taken", values: []string{"alive", "gone", "taken"}}},
		columns: []column[client.NodeItem]{
			{title: "NODE", text: func(n client.NodeItem) string { return n.Node }},
			{title: "STATE", text: func(n client.NodeItem) string { return n.State }},
			{title: "SINCE (UTC)", text: func(n client.NodeItem) string { return at(n.Since) }},
			{title: "SEEN", text: func(n client.NodeItem) string { return at(n.Seen) }},
			{title: "IN HAND", text: func(n client.NodeItem) string { return strconv.Itoa(n.InHand) }},
			{title: "VERSION", text: func(n client.NodeItem) string { return n.Version }, cut: true},
			{title: "TAKEN OVER BY", text: takenOver, cut: true},
		},
	})
}

// takenOver describes the takeover of a node: by which node, when, and how much.
func takenOver(n client.NodeItem) string {
	switch {
	case n.TakenBy == "":
		return ""
	case !n.Finished:
		return fmt.Sprintf("%s at %s, not finished", n.TakenBy, at(n.TakenAt))
	default:
		return fmt.Sprintf("%s at %s, %d orchestrations", n.TakenBy, at(n.TakenAt), n.TakenOver)
	}
}
