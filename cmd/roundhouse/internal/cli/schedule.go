package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func (a *app) scheduleCommands() *cobra.Command {
	list := listCommand(a, listing[client.ScheduleItem]{
		spec: spec{use: "list [flags]", short: "List schedules: when they are due, and what has become of them",
			long: `List the items of all schedules: when each is due next, the slot that was sent
last, and what has become of it. EXPRESSION comes from the engine, from the
setting ROUNDHOUSE_SCHEDULES, or from what that says of the item.`},
		path: []string{"schedules"},
		none: "There are no such schedules.",
		filters: []filter{
			byEngine(), {flag: "schedule", param: "schedule", usage: "only those of the schedule with this `name`"},
			{flag: "item", param: "item", usage: "only the item with this `name`"},
		},
		columns: []column[client.ScheduleItem]{
			{title: "SCHEDULE", text: func(s client.ScheduleItem) string { return strings.TrimSuffix(s.Engine+"/"+s.Schedule, "/") }},
			{title: "ITEM", text: func(s client.ScheduleItem) string { return s.Item }},
			{title: "EXPRESSION", text: func(s client.ScheduleItem) string { return s.Cron }},
			{title: "FROM", text: func(s client.ScheduleItem) string { return s.Source }},
			{title: "NEXT (UTC)", text: func(s client.ScheduleItem) string { return at(s.NextAt) }},
			{title: "LAST SLOT", text: func(s client.ScheduleItem) string { return at(s.Slot) }},
			{title: "RESULT", text: scheduleResult, cut: true},
		},
	})
	return group("schedule", "What engines do at certain times", "Show schedules, and run them by hand.", list, a.scheduleRunCommand())
}

// scheduleResult returns the result of the last slot, or the reason why the next one cannot be sent.
func scheduleResult(s client.ScheduleItem) string {
	if s.Failures > 0 {
		return fmt.Sprintf("not sent, %d times: %s", s.Failures, s.Error)
	}
	if s.Messages > 1 {
		return fmt.Sprintf("%s, the first of %d", s.Result, s.Messages)
	}
	return s.Result
}

func (a *app) scheduleRunCommand() *cobra.Command {
	var name, key string
	var all bool
	var g guards
	c := a.command(spec{use: "run ENGINE [ITEM] [flags]", short: "Send what a schedule would send, now", args: cobra.RangeArgs(1, 2),
		long: `Send what a schedule would send, now, for one item or, with --all, for all of
them. It stands for no slot: what is due by the schedule is sent all the same.
It tells the correlation ids, by which "timeline" shows what becomes of them.`,
		example: "  roundhouse schedule run hmac payments\n  roundhouse schedule run orders --schedule close",
		run: func(ctx context.Context, args []string) error {
			body := map[string]any{}
			if name != "" {
				body["schedule"] = name
			}
			if len(args) > 1 {
				body["item"] = args[1]
			}
			r := post(body, "schedules", args[0], "run")
			r.IdempotencyKey = key
			send := func(ctx context.Context) error { return a.tell(ctx, a.api, r) }
			if !all {
				return send(ctx)
			}
			body["all"] = true
			return a.guarded(ctx, g, danger{what: "run all items of the schedule of " + args[0] + " now", name: args[0]}, send)
		}})
	c.Flags().StringVar(&name, "schedule", "", "the `name` of the schedule, where the engine has several")
	c.Flags().BoolVar(&all, "all", false, "all items")
	c.Flags().StringVar(&key, "idempotency-key", "", "a `key`: however often it is sent, it is one run")
	g.register(c.Flags())
	return c
}
