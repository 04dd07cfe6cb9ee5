package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func orchestrationStatuses() []string {
	return append([]string{"Pending", "Running", "Suspended", "Retrying", "Stalled"}, endedStatuses()...)
}

func endedStatuses() []string { return []string{"Completed", "Failed", "Terminated", "Canceled"} }

func (a *app) orchestrationCommands() *cobra.Command {
	list := listCommand(a, listing[client.OrchestrationItem]{
		spec: spec{use: "list [flags]", short: "List orchestrations, newest first"},
		path: []string{"orchestrations"},
		none: "There are no such orchestrations.",
		filters: append([]filter{
			byOrchestrator(), byStatus(orchestrationStatuses()...), byPrefix(),
			{flag: "custom-status", param: "customStatus", usage: "only those whose custom status has this `text` in it"},
			{flag: "tag", param: "tag", usage: "only those with this `key` of a business reference"},
		}, period()...),
		columns: []column[client.OrchestrationItem]{
			{title: "CREATED (UTC)", text: func(o client.OrchestrationItem) string { return at(o.CreatedAt) }},
			{title: "STATUS", text: func(o client.OrchestrationItem) string { return o.Status }},
			{title: "WAITS FOR", text: waitsFor, cut: true},
			{title: "ORCHESTRATOR", text: func(o client.OrchestrationItem) string { return o.Orchestrator }, cut: true},
			{title: "ID", text: func(o client.OrchestrationItem) string { return o.ID }},
		},
	})
	return group("orchestration", "Durable runs", "Show orchestrations, and steer them.",
		list, a.startCommand(), a.orchestrationShowCommand(), a.raiseCommand(),
		a.steerCommand("suspend", "Let one decide nothing until it is resumed"),
		a.steerCommand("resume", "Let a suspended one go on"),
		a.steerCommand("cancel", "Ask one to end: it undoes what is half done"),
		a.terminateCommand(),
		a.steerCommand("rewind", "Make another attempt at a failed one (docs/failures.md)"),
		a.steerCommand("restart", "Run one that has ended again, from the start"),
		a.purgeCommand())
}

func byOrchestrator() filter {
	return filter{flag: "orchestrator", param: "orchestrator", usage: "only those of this `name`; that of an engine has the engine's"}
}

func byPrefix() filter {
	return filter{flag: "prefix", param: "idPrefix", usage: "only those whose ids begin with this `text`"}
}

// start is the body of a start.
type start struct {
	Orchestrator  string      `json:"orchestrator"`
	ID            string      `json:"id,omitempty"`
	Input         any         `json:"input,omitempty"`
	CorrelationID string      `json:"correlationId,omitempty"`
	Reuse         string      `json:"reuse,omitempty"`
	Reference     any         `json:"businessReference,omitempty"`
	Event         *startEvent `json:"event,omitempty"`
}

// startEvent is the event of a start.
type startEvent struct {
	Name string `json:"name"`
	Data any    `json:"data,omitempty"`
}

func (a *app) startCommand() *cobra.Command {
	var s start
	var input, tag, key, event, eventData string
	c := a.command(spec{
		use: "start NAME [flags]", short: "Start an orchestration",
		long: `Start an orchestration. NAME is that of an orchestrator, or an engine: then
--input is the engine's message, the engine makes the id, and the run ends in
the history.`,
		example: `  roundhouse orchestration start hmac --input '{"instanceId":"i-1"}'
  roundhouse orchestration start cart --id c7 --event added --event-data 1`,
		args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			data, err := a.input("input", input)
			if err != nil {
				return err
			}
			s.Orchestrator = args[0]
			if data != nil {
				s.Input = data
			}
			if eventData != "" && event == "" {
				return Mark(ErrUsage, errors.New("--event-data is the value of --event, which is missing"))
			}
			if event != "" {
				s.Event = &startEvent{Name: event}
				if data, err = a.input("event-data", eventData); err != nil {
					return err
				} else if data != nil {
					s.Event.Data = data
				}
			}
			if tag != "" {
				s.Reference = map[string]string{"key": tag}
			}
			r := post(s, "orchestrations")
			r.IdempotencyKey = key
			return a.tell(ctx, a.api, r)
		},
	})
	f := c.Flags()
	f.StringVar(&s.ID, "id", "", "the `id`; a new one unless given")
	f.StringVar(&input, "input", "", "the input as `JSON`, @file, or - for standard input")
	f.StringVar(&s.CorrelationID, "correlation-id", "", "the `id` of the run")
	f.StringVar(&tag, "tag", "", "the `key` of the business reference")
	f.StringVar(&s.Reuse, "reuse", "", "what an id that is taken means: `never` (refuse it), ended, any")
	f.StringVar(&event, "event", "", "the `name` of an event to deliver with the start, or to the run that has --id")
	f.StringVar(&eventData, "event-data", "", "the value of the event as `JSON`, @file, or - for standard input")
	f.StringVar(&key, "idempotency-key", "", "a `key`: however often it is sent, it starts once")
	return c
}

func (a *app) orchestrationShowCommand() *cobra.Command {
	var rounds bool
	c := a.command(spec{
		use: "show ID [flags]", short: "Show an orchestration: snapshot, input, output, waits", args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			if !rounds {
				return a.showOrchestration(ctx, args[0])
			}
			c, err := a.api(ctx)
			if err != nil {
				return err
			}
			page, err := a.pages(ctx, c, map[string][]string{}, 0, "limit", "orchestrations", args[0], "rounds")
			if err != nil {
				return err
			}
			return showPage(a, page, roundColumns(), "It has no rounds.")
		},
	})
	c.Flags().BoolVar(&rounds, "rounds", false, "show what it learned and decided, oldest first")
	return c
}

// round is a round in lists.
type round struct {
	Execution int          `json:"execution"`
	Round     int          `json:"round"`
	Learned   []roundEvent `json:"learned"`
	Decided   []roundEvent `json:"decided"`
}

type roundEvent struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func roundColumns() []column[round] {
	events := func(events []roundEvent) (text string) {
		for i, e := range events {
			if i > 0 {
				text += ", "
			}
			text += e.Kind
			if e.Name != "" {
				text += " " + e.Name
			}
		}
		return text
	}
	return []column[round]{
		{title: "EXECUTION", text: func(r round) string { return strconv.Itoa(r.Execution) }},
		{title: "ROUND", text: func(r round) string { return strconv.Itoa(r.Round) }},
		{title: "LEARNED", text: func(r round) string { return events(r.Learned) }, cut: true},
		{title: "DECIDED", text: func(r round) string { return events(r.Decided) }, cut: true},
	}
}

func (a *app) raiseCommand() *cobra.Command {
	var input, key string
	c := a.command(spec{
		use: "raise ID EVENT [flags]", short: "Raise an event that an orchestration waits for", args: cobra.ExactArgs(2),
		run: func(ctx context.Context, args []string) error {
			data, err := a.input("input", input)
			if err != nil {
				return err
			}
			r := post(nil, "orchestrations", args[0], "events", args[1])
			if data != nil {
				r.Body = data
			}
			r.IdempotencyKey = key
			return a.tell(ctx, a.api, r)
		},
	})
	c.Flags().StringVar(&input, "input", "", "the event's value as `JSON`, @file, or - for standard input; null unless given")
	c.Flags().StringVar(&key, "idempotency-key", "", "a `key`: however often it is sent, it is raised once")
	return c
}

// steerCommand makes the command that sends a command to an orchestration.
func (a *app) steerCommand(verb, short string) *cobra.Command {
	var reason string
	c := a.command(spec{use: verb + " ID [flags]", short: short, args: cobra.ExactArgs(1), run: func(ctx context.Context, args []string) error {
		return a.tell(ctx, a.api, steer(verb, args[0], reason))
	}})
	c.Flags().StringVar(&reason, "reason", "", "why: the `text` is kept in its rounds, with who you are")
	return c
}

// steer returns the request that sends a command.
func steer(verb, id, reason string) client.Request {
	return post(only(map[string]string{"reason": reason}), "orchestrations", id, verb)
}

func (a *app) terminateCommand() *cobra.Command {
	var g guards
	var reason string
	c := a.command(spec{
		use: "terminate ID [flags]", short: "End one without running its code: nothing is undone",
		long: `End an orchestration and those that it waits for, without running their code:
nothing is undone. The instance that an engine's run has locked is free again.
Try cancel first.`,
		args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			c, err := a.api(ctx)
			if err != nil {
				return err
			}
			o, err := look[client.OrchestrationItem](ctx, a, c, nil, "orchestrations", args[0])
			if err != nil {
				return err
			}
			if !o.EndedAt.IsZero() {
				return Mark(ErrRefused, fmt.Errorf("the orchestration %s has ended already: it is %s, and there is nothing to terminate", o.ID, o.Status))
			}
			d := danger{what: "terminate the orchestration " + o.ID, name: o.ID, effect: []string{
				fmt.Sprintf("before: %s, %s%s", o.Orchestrator, o.Status, waiting(o)), "after:  Terminated; nothing is undone",
			}}
			return a.guarded(ctx, g, d, func(ctx context.Context) error { return a.tell(ctx, a.api, steer("terminate", o.ID, reason)) })
		},
	})
	g.register(c.Flags())
	c.Flags().StringVar(&reason, "reason", "", "why: the `text` is kept in its rounds, with who you are")
	return c
}
