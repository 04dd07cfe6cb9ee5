package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// letterStatuses returns the statuses of dead letters.
func letterStatuses() []string { return []string{"Pending", "Resolved", "Expired"} }

func (a *app) deadLetterCommands() *cobra.Command {
	list := listCommand(a, listing[client.DeadLetterItem]{
		spec:    spec{use: "list [flags]", short: "List dead letters, newest failure first"},
		path:    []string{"dlq"},
		open:    a.either,
		none:    "There are no such dead letters.",
		filters: append([]filter{byEngine(), byStatus(letterStatuses()...), byInstance(), byCorrelation(), bySignature(), byAssignee()}, period()...),
		columns: []column[client.DeadLetterItem]{
			{title: "FAILED (UTC)", text: func(d client.DeadLetterItem) string { return at(d.LastFailureAt) }, cut: true},
			{title: "STATUS", text: func(d client.DeadLetterItem) string { return d.Status }},
			{title: "ERROR", text: func(d client.DeadLetterItem) string { return d.ErrorMessage }, cut: true},
			{title: "ENGINE", text: func(d client.DeadLetterItem) string { return d.Engine }},
			{title: "ROW KEY", text: func(d client.DeadLetterItem) string { return d.RowKey }},
		},
	})
	return group("dlq", "Messages that need a person",
		`Show dead letters, and decide about them: send a message again (retry), close
it (resolve), or give it up (expire).`,
		list, a.showCommand("ENGINE ROWKEY", "Show a dead letter with its message", a.either, "dlq"),
		a.groupsCommand(), a.countsCommand(), a.retryCommand(), a.decideCommand("resolve", "Resolved", "Close a dead letter: somebody has taken care of it"), a.expireCommand(),
		a.noteLetterCommand(), a.assignLetterCommand())
}

func (a *app) groupsCommand() *cobra.Command {
	var chosen *selection
	c := a.command(spec{use: "groups [flags]", short: "Count dead letters by error, the most frequent first", run: func(ctx context.Context, _ []string) error {
		query, err := chosen.given()
		if err != nil {
			return err
		}
		data, err := a.raw(ctx, a.either, query, "dlq", "groups")
		if err != nil {
			return err
		}
		if a.asJSON() {
			return a.printJSON(data)
		}
		var groups client.DeadLetterGroups
		if err := decodeInto(data, &groups); err != nil {
			return err
		}
		if !groups.Complete {
			a.note("These are the newest %d; there are more.", groups.Examined)
		}
		return a.table(func(width int) error {
			return writeTable(a.Stdout, width, []column[client.DeadLetterGroup]{
				{title: "COUNT", text: func(g client.DeadLetterGroup) string { return strconv.Itoa(g.Count) }},
				{title: "LAST (UTC)", text: func(g client.DeadLetterGroup) string { return at(g.LastFailureAt) }},
				{title: "ENGINES", text: func(g client.DeadLetterGroup) string { return strings.Join(g.Engines, ",") }, cut: true},
				{title: "ERROR", text: func(g client.DeadLetterGroup) string { return g.Sample.ErrorMessage }, cut: true},
				{title: "SIGNATURE", text: func(g client.DeadLetterGroup) string { return g.Signature }},
			}, groups.Items)
		})
	}})
	chosen = a.selected(c, append([]filter{byEngine(), byStatus(letterStatuses()...), byInstance(), byCorrelation()}, period()...)...)
	return c
}

func (a *app) countsCommand() *cobra.Command {
	var chosen *selection
	c := a.command(spec{use: "counts [flags]", short: "Count dead letters by engine and status", run: func(ctx context.Context, _ []string) error {
		query, err := chosen.given()
		if err != nil {
			return err
		}
		data, err := a.raw(ctx, a.either, query, "dlq", "counts")
		if err != nil {
			return err
		}
		var page client.Page
		if a.asJSON() {
			return a.printJSON(data)
		}
		if err := decodeInto(data, &page); err != nil {
			return err
		}
		number := func(n func(client.DeadLetterCount) int) func(client.DeadLetterCount) string {
			return func(c client.DeadLetterCount) string { return strconv.Itoa(n(c)) }
		}
		return showPage(a, page, []column[client.DeadLetterCount]{
			{title: "ENGINE", text: func(c client.DeadLetterCount) string { return c.Engine }},
			{title: "PENDING", text: number(func(c client.DeadLetterCount) int { return c.Pending })},
			{title: "RESOLVED", text: number(func(c client.DeadLetterCount) int { return c.Resolved })},
			{title: "EXPIRED", text: number(func(c client.DeadLetterCount) int { return c.Expired })},
		}, "There are no engines.")
	}})
	chosen = a.selected(c, byEngine())
	return c
}

// raw returns the data of an answer.
func (a *app) raw(ctx context.Context, open opener, query url.Values, path ...string) (json.RawMessage, error) {
	c, err := open(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: path, Query: query})
	return answer.Data, err
}

// decideCommand makes the command that changes the status of one dead letter.
func (a *app) decideCommand(verb, status, short string) *cobra.Command {
	var notes string
	c := a.command(spec{use: verb + " ENGINE ROWKEY [flags]", short: short, args: cobra.ExactArgs(2), run: func(ctx context.Context, args []string) error {
		return a.decide(ctx, args, status, notes)
	}})
	c.Flags().StringVar(&notes, "notes", "", "why: the `text` is kept with the dead letter")
	return c
}

func (a *app) decide(ctx context.Context, args []string, status, notes string) error {
	r := client.Request{Method: http.MethodPatch, Path: append([]string{"dlq"}, args...), Body: only(map[string]string{"status": status, "resolutionNotes": notes})}
	return a.tell(ctx, a.either, r)
}

// oneOrMany accepts one dead letter, or a filter, for retry and expire.
func oneOrMany(all *bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case *all && len(args) > 0:
			return fmt.Errorf("--all goes without ENGINE ROWKEY: filters say which are meant")
		case !*all && len(args) != 2:
			return fmt.Errorf("name one by ENGINE ROWKEY, or give --all with filters")
		}
		return nil
	}
}
