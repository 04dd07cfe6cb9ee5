package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func (a *app) historyCommands() *cobra.Command {
	list := listCommand(a, listing[client.HistoryItem]{
		spec: spec{use: "list [flags]", short: "List what engines did, newest first"},
		path: []string{"history"},
		open: a.either,
		none: "There are no such entries.",
		filters: append([]filter{
			byEngine(), byInstance(), byStatus("Succeeded", "Failed"), byCorrelation(),
			{flag: "operation", param: "operation", usage: "only this `operation`"},
			{flag: "superseded", param: "superseded", usage: "`false` leaves out what failed in runs that succeeded after all", values: []string{"true", "false"}},
		}, period()...),
		columns: []column[client.HistoryItem]{
			{title: "ENDED (UTC)", text: func(h client.HistoryItem) string { return at(h.CreatedAt) }},
			{title: "ENGINE", text: func(h client.HistoryItem) string { return h.Engine }},
			{title: "OPERATION", text: func(h client.HistoryItem) string { return h.Operation }, cut: true},
			{title: "INSTANCE", text: func(h client.HistoryItem) string { return h.InstanceID }, cut: true},
			{title: "STATUS", text: outcome, cut: true},
			{title: "MS", text: func(h client.HistoryItem) string { return strconv.FormatInt(h.DurationMs, 10) }},
			{title: "CORRELATION ID", text: func(h client.HistoryItem) string { return h.CorrelationID }},
		},
	})
	return group("history", "What engines did", "Show the history: what engines did, and how it ended.", list,
		a.showCommand("ENGINE ROWKEY", "Show an entry with its input, output and error", a.either, "history"))
}

// outcome returns the status of an entry, with a mark for a superseded failure.
func outcome(h client.HistoryItem) string {
	if h.SupersededBy != "" {
		return h.Status + ", then succeeded"
	}
	return h.Status
}
