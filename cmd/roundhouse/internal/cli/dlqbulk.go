package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
	"github.com/vibedata/roundhouse/engine"
)

// shownGroups is the number of error groups shown before a bulk change of dead letters.
const shownGroups = 5

// bulkFlags are the flags of bulk commands.
type bulkFlags struct {
	guards
	all, noWait bool
	rate        int
}

func (b *bulkFlags) flags(c *cobra.Command, things string) {
	b.register(c.Flags())
	c.Flags().BoolVar(&b.all, "all", false, "all "+things+" that the filters mean")
	c.Flags().BoolVar(&b.noWait, "no-wait", false, "do not wait for the end of the operation")
}

func (b *bulkFlags) rated(c *cobra.Command) {
	c.Flags().IntVar(&b.rate, "rate", 0, "change so many a second at most")
}

// apply adds the given flags to a body.
func (b *bulkFlags) apply(body map[string]any) {
	if b.rate != 0 {
		body["ratePerSecond"] = b.rate
	}
}

// notGiven defines a flag whose value is -1 when it is not given.
func notGiven(c *cobra.Command, value *int, name, usage string) {
	c.Flags().IntVar(value, name, -1, usage)
	c.Flags().Lookup(name).DefValue = "0" // hidden in the help
}

func letterFilters() []filter {
	return append([]filter{byEngine(), byInstance(), bySignature()}, period()...)
}

func (a *app) retryCommand() *cobra.Command {
	var b bulkFlags
	var canary, wait int
	var edit editFlags
	var chosen *selection
	c := a.command(spec{
		use: "retry ENGINE ROWKEY [--edit] | retry --all [flags]", short: "Send dead letters again",
		long: `Send the message of a dead letter to its queue again; or those of all pending
ones that filters mean, as an operation. Repeating it for one dead letter sends
nothing again. The bytes stay the same: an Undecodable or OverSize message comes
back until what sends it has changed.

--edit opens the message in your editor (VISUAL, EDITOR, vi), and --message
takes another one from a file: it is sent in place of the original one, which
the dead letter keeps. Correlation id, tenant and instance stay. A run of the
original message begins anew.`,
		example: `  roundhouse dlq retry hmac 5a1c-20261121T100000.000000Z
  roundhouse dlq retry hmac 5a1c-20261121T100000.000000Z --edit
  roundhouse dlq retry --all --engine tls --from 2h --rate 10 --canary 3`,
		args: oneOrMany(&b.all),
		run: func(ctx context.Context, args []string) error {
			edited, err := edit.given(b.all)
			switch {
			case err != nil:
				return err
			case edited:
				return a.retryEdited(ctx, args, edit)
			case !b.all:
				return a.retryOne(ctx, args)
			}
			query, err := chosen.given()
			if err != nil {
				return err
			}
			body := members(query)
			b.apply(body)
			if canary != 0 {
				body["canary"] = canary
			}
			if wait != 0 {
				body["canarySeconds"] = wait
			}
			return a.lettersInBulk(ctx, b, "retry", query, body)
		},
	})
	b.flags(c, "pending dead letters")
	b.rated(c)
	c.Flags().BoolVar(&edit.edit, "edit", false, "edit the message before")
	c.Flags().StringVar(&edit.file, "message", "", "send the message that is in a `FILE` instead, - for standard input")
	c.Flags().IntVar(&canary, "canary", 0, "send so many first, and go on only if none of them comes back")
	c.Flags().IntVar(&wait, "canary-seconds", 0, "how long to wait for them; 300 unless given")
	chosen = a.selected(c, letterFilters()...)
	return c
}

// retryOne retries a dead letter, and warns first if that cannot fix it.
func (a *app) retryOne(ctx context.Context, args []string) error {
	path := append([]string{"dlq"}, args...)
	c, err := a.api(ctx)
	if err != nil {
		return err
	}
	letter, err := look[client.DeadLetterDetail](ctx, a, c, nil, path...)
	if err != nil {
		return err
	}
	if reason := engine.Reason(letter.DetectedReason); slices.Contains([]engine.Reason{engine.ReasonUndecodable, engine.ReasonOverSize, engine.ReasonCorrelationConflict}, reason) {
		a.note("The message is %s, and a retry sends the same bytes: it comes back until what sends it has changed (docs/recovery.md).", reason)
	}
	return a.tell(ctx, a.api, post(nil, append(path, "retry")...))
}

func (a *app) expireCommand() *cobra.Command {
	var b bulkFlags
	var days int
	var notes string
	var chosen *selection
	c := a.command(spec{
		use: "expire ENGINE ROWKEY | expire --all [flags]", short: "Give dead letters up",
		long: `Give a dead letter up: nobody has to look at it any more, and it is deleted
after its retention. Or all pending ones that failed last so many days ago and
that filters mean, as an operation.`,
		example: `  roundhouse dlq expire hmac 5a1c-20261121T100000.000000Z --notes "old test"
  roundhouse dlq expire --all --older-than-days 90`,
		args: oneOrMany(&b.all),
		run: func(ctx context.Context, args []string) error {
			if !b.all {
				return a.decide(ctx, args, "Expired", notes)
			}
			if days < 0 {
				return Mark(ErrUsage, errors.New("--all needs --older-than-days, 0 or more"))
			}
			query, err := chosen.given()
			if err != nil {
				return err
			}
			body := members(query)
			b.apply(body)
			body["olderThanDays"] = days
			if days > 0 { // the API refuses both
				query.Set("toDate", a.Now().AddDate(0, 0, -days).UTC().Format(time.RFC3339))
			}
			return a.lettersInBulk(ctx, b, "expire", query, body)
		},
	})
	b.flags(c, "pending dead letters")
	b.rated(c)
	notGiven(c, &days, "older-than-days", "with --all: those that failed last so many `days` ago")
	c.Flags().StringVar(&notes, "notes", "", "why: the `text` is kept with the dead letter")
	chosen = a.selected(c, letterFilters()...)
	return c
}

// lettersInBulk shows the selected dead letters, and starts an operation on them.
func (a *app) lettersInBulk(ctx context.Context, b bulkFlags, verb string, query url.Values, body map[string]any) error {
	c, err := a.api(ctx)
	if err != nil {
		return err
	}
	effect, n, err := a.pending(ctx, c, query)
	if err != nil {
		return err
	}
	if n == 0 {
		a.note("No pending dead letter is meant: there is nothing to %s.", verb)
		return nil
	}
	d := danger{what: fmt.Sprintf("%s pending dead letters", verb), name: verb, effect: effect}
	return a.guarded(ctx, b.guards, d, func(ctx context.Context) error {
		return a.begin(ctx, c, post(body, "dlq", verb), n, !b.noWait)
	})
}

// pending describes the dead letters of a selection.
func (a *app) pending(ctx context.Context, c *client.Client, query url.Values) (effect []string, n int, err error) {
	query.Set("status", "Pending")
	signature := query.Get("errorSignature")
	query.Del("errorSignature") // groups are not filtered by it
	query.Set("limit", strconv.Itoa(pageLimit))
	groups, err := look[client.DeadLetterGroups](ctx, a, c, query, "dlq", "groups")
	if err != nil {
		return nil, 0, err
	}
	var named []string
	for _, g := range groups.Items {
		if signature != "" && g.Signature != signature {
			continue
		}
		n += g.Count
		if len(named) < shownGroups {
			named = append(named, cutTo(printable(fmt.Sprintf("%6d  %s", g.Count, g.Sample.ErrorMessage)), helpWidth-4))
		}
	}
	effect = append(effect, about(n, !groups.Complete, "dead letter")+", now:")
	return append(effect, named...), n, nil
}
