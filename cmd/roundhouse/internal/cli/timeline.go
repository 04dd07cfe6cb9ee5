package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func (a *app) timelineCommand() *cobra.Command {
	return a.command(spec{
		use: "timeline CORRELATION-ID", short: "Show what all engines did under a correlation id, oldest first",
		args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			data, err := a.raw(ctx, a.either, nil, "timeline", args[0])
			if err != nil {
				return err
			}
			var t client.Timeline
			if err := decodeInto(data, &t); err != nil {
				return err
			}
			if len(t.Items) == 0 {
				return Mark(ErrMissing, fmt.Errorf("nothing is known under the correlation id %q, yet", args[0]))
			}
			if a.asJSON() {
				return a.printJSON(data)
			}
			if t.Truncated {
				a.note("There is more than this.")
			}
			return a.table(func(width int) error { return writeTable(a.Stdout, width, timelineColumns(), t.Items) })
		},
	})
}

func timelineColumns() []column[client.TimelineItem] {
	return []column[client.TimelineItem]{
		{title: "AT (UTC)", text: func(i client.TimelineItem) string { return at(i.At) }},
		{title: "ENGINE", text: func(i client.TimelineItem) string { return i.Engine }},
		{title: "KIND", text: func(i client.TimelineItem) string { return i.Kind }},
		{title: "STATUS", text: func(i client.TimelineItem) string { return happened(i).status }},
		{title: "WHAT", text: func(i client.TimelineItem) string { return happened(i).what }, cut: true},
	}
}

// changed tells of which orchestration and attempt a change is, and why it happened.
func changed(c client.OrchestrationChange) string {
	text := c.OrchestrationID
	if c.Attempt > 1 || c.What == "AttemptFailed" {
		text += fmt.Sprintf(", attempt %d", c.Attempt)
	}
	switch {
	case c.Error != nil:
		text += ": " + c.Error.Message
	case c.Reason != "":
		text += ": " + c.Reason
	}
	return text
}

type happening struct{ status, what string }

// happened is what an item of a timeline tells.
func happened(i client.TimelineItem) happening {
	switch {
	case i.History != nil:
		return happening{outcome(*i.History), fmt.Sprintf("%s of %s in %d ms", i.History.Operation, i.History.InstanceID, i.History.DurationMs)}
	case i.DeadLetter != nil:
		return happening{i.DeadLetter.Status, i.DeadLetter.ErrorMessage}
	case i.Orchestration != nil:
		return happening{i.Orchestration.Status, i.Orchestration.ID + waiting(*i.Orchestration)}
	case i.Change != nil:
		return happening{i.Change.What, changed(*i.Change)}
	default:
		return happening{}
	}
}
