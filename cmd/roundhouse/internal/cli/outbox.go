package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// outboxPath returns the API's path of the outbox.
func outboxPath(more ...string) []string { return append([]string{"workflow", "outbox"}, more...) }

func outboxFilters() []filter {
	return append([]filter{
		byStatus("pending", "failed", "processed", "skipped", "dead"), byTenant(),
		{flag: "event-type", param: "eventType", usage: "only those of this event `type`"},
		byCorrelation(),
	}, period()...)
}

func (a *app) outboxCommands() *cobra.Command {
	list := listCommand(a, listing[client.OutboxItem]{
		spec: spec{use: "list [flags]", short: "List messages of the outbox"},
		path: outboxPath(), none: "There are no such messages.", size: "pageSize", filters: outboxFilters(),
		columns: []column[client.OutboxItem]{
			{title: "CREATED (UTC)", text: func(o client.OutboxItem) string { return at(o.CreatedAt) }, cut: true},
			{title: "STATUS", text: func(o client.OutboxItem) string { return o.Status }},
			{title: "TRIES", text: func(o client.OutboxItem) string { return strconv.Itoa(o.RetryCount) }},
			{title: "TYPE", text: func(o client.OutboxItem) string { return o.EventType }, cut: true},
			{title: "ERROR", text: func(o client.OutboxItem) string { return o.LastError }, cut: true},
			{title: "TENANT", text: func(o client.OutboxItem) string { return o.Tenant }},
			{title: "ID", text: func(o client.OutboxItem) string { return o.ID }},
		},
	})
	numbers := a.command(spec{use: "metrics", short: "Show the outbox in numbers", run: func(ctx context.Context, _ []string) error {
		return a.tell(ctx, a.api, client.Request{Method: http.MethodGet, Path: outboxPath("metrics")})
	}})
	circuits := a.command(spec{use: "circuits", short: "Show the destinations that are held back",
		long: `Show the destinations to which processes send nothing for a while, because
deliveries failed again and again: since when, until when, and which processes.`,
		run: func(ctx context.Context, _ []string) error {
			return a.tell(ctx, a.api, client.Request{Method: http.MethodGet, Path: outboxPath("circuits")})
		}})
	return group("outbox", "Events on their way", "Show the messages of the outbox, and decide about them.",
		list, a.showCommand("TENANT ID", "Show a message with its payload and its attempts", a.api, outboxPath()...),
		a.outboxActionCommand("retry", "Deliver what is dead or pending now, and close its dead letter"),
		a.outboxActionCommand("skip", "Give up what is dead or pending, and close its dead letter"), a.replayCommand(), numbers, a.backlogCommand(), circuits, a.backfillCommand())
}

func (a *app) backlogCommand() *cobra.Command {
	var chosen *selection
	c := a.command(spec{use: "backlog [flags]", short: "Show what waits, by tenant and destination", run: func(ctx context.Context, _ []string) error {
		query, err := chosen.given()
		if err != nil {
			return err
		}
		return a.tell(ctx, a.api, client.Request{Method: http.MethodGet, Path: outboxPath("backlog"), Query: query})
	}})
	chosen = a.selected(c, byTenant())
	return c
}

func (a *app) outboxActionCommand(verb, short string) *cobra.Command {
	return a.command(spec{use: verb + " TENANT ID", short: short, args: cobra.ExactArgs(2), run: func(ctx context.Context, args []string) error {
		return a.tell(ctx, a.api, post(nil, outboxPath(args[0], args[1], verb)...))
	}})
}

func (a *app) replayCommand() *cobra.Command {
	var b bulkFlags
	var chosen *selection
	c := a.command(spec{
		use: "replay TENANT ID | replay --all [flags]", short: "Deliver again what has ended",
		long: `Deliver a message again that has ended, under the same key: receivers that have
it drop it. Or all with a status and that filters mean, as an operation.`,
		example: `  roundhouse outbox replay acme 0b0e6a3c-5f0e-8a52-8c3f-6d6b0d9a2c11
  roundhouse outbox replay --all --status dead --tenant acme`,
		args: func(_ *cobra.Command, args []string) error {
			if b.all != (len(args) == 0) || !b.all && len(args) != 2 {
				return fmt.Errorf("name one by TENANT ID, or give --all with --status")
			}
			return nil
		},
		run: func(ctx context.Context, args []string) error {
			if !b.all {
				return a.tell(ctx, a.api, post(nil, outboxPath(args[0], args[1], "replay")...))
			}
			return a.replayMany(ctx, b, chosen)
		},
	})
	b.flags(c, "messages with the --status")
	chosen = a.selected(c, outboxFilters()...)
	return c
}

func (a *app) replayMany(ctx context.Context, b bulkFlags, chosen *selection) error {
	query, err := chosen.given()
	if err != nil {
		return err
	}
	status := query.Get("status")
	if status == "" {
		return Mark(ErrUsage, fmt.Errorf("--all needs --status"))
	}
	c, err := a.api(ctx)
	if err != nil {
		return err
	}
	list := maps.Clone(query)
	list.Set("pageSize", strconv.Itoa(pageLimit))
	n, more, err := a.count(ctx, c, list, nil, outboxPath()...)
	if err != nil {
		return err
	}
	if n == 0 {
		a.note("No message is meant: there is nothing to deliver.")
		return nil
	}
	body := members(query)
	d := danger{what: "deliver messages of the outbox again", name: "replay", effect: []string{
		"before: " + about(n, more, "message") + ", " + status, "after:  they are pending, under their old keys",
	}}
	return a.guarded(ctx, b.guards, d, func(ctx context.Context) error {
		return a.begin(ctx, c, post(body, outboxPath("replay")...), n, !b.noWait)
	})
}
