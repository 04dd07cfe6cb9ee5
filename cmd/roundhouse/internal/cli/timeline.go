package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// timelinePage is the longest page of a timeline.
const timelinePage = 1000

func (a *app) timelineCommand() *cobra.Command {
	var follow bool
	var interval time.Duration
	var chosen *selection
	c := a.command(spec{
		use: "timeline CORRELATION-ID [flags]", short: "Show what happened under a correlation id, oldest first",
		long: `Show what happened under a correlation id in all engines, oldest first: runs
with their calls, timers, events and tasks, published events, dead letters.
With --follow, show what is new until all runs have ended; with -o json, then,
each item is a line of its own, and is there again when it has changed.`,
		example: "  roundhouse timeline order-1\n  roundhouse timeline order-1 --kind call\n  roundhouse timeline order-1 --follow",
		args:    cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			query, err := chosen.given()
			switch {
			case err != nil:
				return err
			case follow && a.flags.storage != "":
				return Mark(ErrUsage, errors.New("--follow asks the app: storage alone does not tell when a run has ended"))
			case interval <= 0:
				return Mark(ErrUsage, fmt.Errorf("--interval %v: use more than 0", interval))
			}
			c, err := a.either(ctx)
			if err != nil {
				return err
			}
			if follow {
				return (&follower{app: a, client: c, id: args[0], query: query, interval: interval}).run(ctx)
			}
			t, err := a.timeline(ctx, c, args[0], query)
			if err != nil {
				return err
			}
			return a.showTimeline(t)
		},
	})
	chosen = a.selected(c, filter{flag: "kind", param: "kind", usage: "only this `kind`, such as call, task or deadLetter"},
		filter{flag: "since", param: "since", usage: "only what happened at this `time` or later, or has not ended (see history list --from)", time: true})
	c.Flags().BoolVar(&follow, "follow", false, "go on until all runs have ended")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "with --follow: the time between two looks, up to eight times this while nothing happens")
	return c
}

// timeline reads all pages of a timeline.
func (a *app) timeline(ctx context.Context, c *client.Client, id string, given url.Values) (client.Timeline, error) {
	query := url.Values{"limit": {strconv.Itoa(timelinePage)}}
	for name := range given {
		query.Set(name, given.Get(name))
	}
	all := client.Timeline{CorrelationID: id, Items: []json.RawMessage{}}
	for {
		page, err := look[client.Timeline](ctx, a, c, query, "timeline", id)
		if err != nil {
			return all, err
		}
		all.Items, all.Truncated = append(all.Items, page.Items...), all.Truncated || page.Truncated
		if page.Token == "" {
			return all, nil
		}
		query.Set("continuationToken", page.Token)
	}
}

func decodeItems(raw []json.RawMessage) ([]client.TimelineItem, error) {
	items := make([]client.TimelineItem, len(raw))
	for i := range raw {
		if err := decodeInto(raw[i], &items[i]); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (a *app) showTimeline(t client.Timeline) error {
	if a.asJSON() {
		return a.printValue(t)
	}
	items, err := decodeItems(t.Items)
	if err != nil {
		return err
	}
	if t.Truncated {
		a.note("There is more than this, or something that cannot be read.")
	}
	if len(items) == 0 {
		a.note("Nothing of this is known.")
		return nil
	}
	return a.table(func(width int) error { return writeTable(a.Stdout, width, timelineColumns(parents(items)), items) })
}

// parents returns the callers of the runs, by the ids of these.
func parents(items []client.TimelineItem) map[string]string {
	of := map[string]string{}
	for _, i := range items {
		if i.Orchestration != nil && i.Orchestration.ParentID != "" {
			of[i.Orchestration.ID] = i.Orchestration.ParentID
		}
	}
	return of
}

func timelineColumns(parents map[string]string) []column[client.TimelineItem] {
	return []column[client.TimelineItem]{
		{title: "AT (UTC)", text: func(i client.TimelineItem) string { return at(i.At) }},
		{title: "ENGINE", text: func(i client.TimelineItem) string { return i.Engine }},
		{title: "KIND", text: func(i client.TimelineItem) string { return i.Kind }},
		{title: "STATUS", text: func(i client.TimelineItem) string { return happened(i).status }},
		{title: "WHAT", text: func(i client.TimelineItem) string {
			h := happened(i)
			return indent(h.run, parents) + h.what
		}, cut: true},
	}
}

// indent marks a run that another one called.
func indent(run string, parents map[string]string) (marks string) {
	const deepest = 8
	for len(marks) < deepest && parents[run] != "" {
		marks, run = marks+"> ", parents[run]
	}
	return marks
}

// changed describes the orchestration and attempt of a change, and its reason.
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

// happening is the text of an item, with its run.
type happening struct{ status, what, run string }

// happened returns the text of an item of a timeline.
func happened(i client.TimelineItem) happening {
	switch {
	case i.History != nil:
		return happening{outcome(*i.History), fmt.Sprintf("%s of %s in %d ms", i.History.Operation, i.History.InstanceID, i.History.DurationMs), ""}
	case i.DeadLetter != nil:
		return happening{i.DeadLetter.Status, i.DeadLetter.ErrorMessage, ""}
	case i.DeadLetterChange != nil:
		return happening{i.DeadLetterChange.What, by(i.DeadLetterChange.RowKey, i.DeadLetterChange.By, i.DeadLetterChange.Notes), ""}
	case i.Orchestration != nil:
		return happening{i.Orchestration.Status, i.Orchestration.ID + waiting(*i.Orchestration), i.Orchestration.ID}
	case i.Change != nil:
		return happening{i.Change.What, changed(*i.Change), i.Change.OrchestrationID}
	case i.Action != nil:
		return happening{i.Action.Outcome, by(i.Action.What, cmp.Or(i.Action.ByName, i.Action.By), cmp.Or(i.Action.Error, i.Action.Reason)), i.Action.OrchestrationID}
	case i.Publication != nil:
		return happening{i.Publication.Status, because(i.Publication.EventType+" of "+i.Publication.TenantID, i.Publication.Error), i.Publication.OrchestrationID}
	case i.Delivery != nil:
		return delivered(*i.Delivery)
	default:
		return happenedInRun(i)
	}
}

// happenedInRun returns the text of a call or a received event of a run.
func happenedInRun(i client.TimelineItem) happening {
	switch {
	case i.Message != nil:
		return happening{"Received", "begins " + i.Message.OrchestrationID, i.Message.OrchestrationID}
	case i.Call != nil:
		return called(i)
	case i.Timer != nil:
		return happening{i.Timer.Status, "due " + at(i.Timer.DueAt), i.Timer.OrchestrationID}
	case i.Event != nil:
		return happening{"Received", by(i.Event.Name, i.Event.SenderID, ""), i.Event.OrchestrationID}
	case i.Task != nil:
		return asked(*i.Task)
	case i.Link != nil:
		return happening{i.Link.What, i.Link.Name + ", " + i.Link.ToID, i.Link.OrchestrationID}
	default:
		return happening{}
	}
}

// called describes a call: its attempts, its duration, and its last error.
func called(i client.TimelineItem) happening {
	text := fmt.Sprintf("%d %s", i.Call.Call, i.Call.Name)
	if i.Call.Type != "Activity" {
		text += " (" + i.Call.Type + ")"
	}
	if !i.EndedAt.IsZero() {
		text += fmt.Sprintf(" in %d ms", i.EndedAt.Sub(i.At).Milliseconds())
	}
	if n := len(i.Call.Attempts); n > 1 {
		text += fmt.Sprintf(", attempt %d", n)
	}
	why := ""
	for _, attempt := range i.Call.Attempts {
		if attempt.Error != nil {
			why = attempt.Error.Message
		}
	}
	return happening{i.Call.Status, because(text, why), i.Call.OrchestrationID}
}

func delivered(d client.TimelineDelivery) happening {
	status := "Delivered"
	if d.Error != "" {
		status = "Failed"
	}
	return happening{status, because(fmt.Sprintf("%s to %s in %d ms", d.EventType, cmp.Or(d.Destination, "nowhere"), d.TookMs), d.Error), ""}
}

func asked(t client.TimelineTask) happening {
	switch t.What {
	case "created":
		return happening{"created", because(t.Name, t.Status), t.OrchestrationID}
	case "completed", "released", "cancelled":
		return happening{t.What, by(t.Name, cmp.Or(t.ByName, t.By), ""), t.OrchestrationID}
	default:
		return happening{t.What, because(t.Name, cmp.Or(t.AssigneeName, t.Assignee)), t.OrchestrationID}
	}
}

func by(what, who, why string) string {
	if who != "" {
		what += " by " + who
	}
	return because(what, why)
}

func because(what, why string) string {
	if why != "" {
		what += ": " + why
	}
	return what
}
