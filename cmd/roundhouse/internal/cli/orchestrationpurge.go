package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func (a *app) purgeCommand() *cobra.Command {
	var b bulkFlags
	var days int
	var force bool
	var reason string
	var chosen *selection
	c := a.command(spec{
		use: "purge ID | purge --all [flags]", short: "Delete orchestrations that have ended",
		long: `Delete everything of an orchestration that has ended, and of those that it
waited for; or of all that ended before a time and that filters mean, as an
operation. History and dead letters stay.

With --force, delete one that is damaged, so that the app cannot read it,
whether it has ended or not (docs/recovery.md). What it had called is
terminated and goes with it. Restoring its rows is the other way.`,
		example: `  roundhouse orchestration purge hmac-5a1c
  roundhouse orchestration purge hmac-5a1c --force --reason "no backup has it"
  roundhouse orchestration purge --all --older-than-days 30 --status Failed`,
		args: func(_ *cobra.Command, args []string) error {
			if b.all != (len(args) == 0) || len(args) > 1 {
				return fmt.Errorf("name one by its ID, or give --all with filters")
			}
			if force && b.all || force != (reason != "") {
				return fmt.Errorf("--force is for one ID, and needs a --reason")
			}
			return nil
		},
		run: func(ctx context.Context, args []string) error {
			if force {
				return a.purgeByForce(ctx, b.guards, args[0], reason)
			}
			if !b.all {
				return a.purgeOne(ctx, b.guards, args[0])
			}
			query, err := chosen.given()
			if err != nil {
				return err
			}
			return a.purgeMany(ctx, b, query, days)
		},
	})
	b.flags(c, "orchestrations that have ended, and")
	c.Flags().BoolVar(&force, "force", false, "delete a damaged one, whether it has ended or not")
	c.Flags().StringVar(&reason, "reason", "", "with --force, why: the `text` is kept in the audit log, with who you are")
	notGiven(c, &days, "older-than-days", "with --all: those that ended so many `days` ago")
	chosen = a.selected(c, append([]filter{
		{flag: "ended-before", param: "endedBefore", usage: "with --all: those that ended before this `time`", time: true},
		byOrchestrator(), byStatus(endedStatuses()...), byPrefix(),
	}, period()...)...)
	return c
}

func (a *app) purgeOne(ctx context.Context, g guards, id string) error {
	c, err := a.api(ctx)
	if err != nil {
		return err
	}
	answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: []string{"orchestrations", id}})
	if err != nil {
		return err
	}
	var o client.OrchestrationItem
	if err := decodeInto(answer.Data, &o); err != nil {
		return err
	}
	d := danger{what: "delete the orchestration " + o.ID, name: o.ID, effect: []string{
		fmt.Sprintf("before: %s, %s %s", o.Orchestrator, o.Status, day(o.EndedAt)), "after:  gone, with the orchestrations that it waited for",
	}}
	return a.guarded(ctx, g, d, func(ctx context.Context) error {
		// Exactly the shown state is deleted.
		return a.tell(ctx, a.api, client.Request{Method: http.MethodDelete, Path: []string{"orchestrations", o.ID}, IfMatch: answer.ETag})
	})
}

// damagedCode is the API's code for an unreadable orchestration.
const damagedCode = "OrchestrationDamaged"

func (a *app) purgeByForce(ctx context.Context, g guards, id, reason string) error {
	c, err := a.api(ctx)
	if err != nil {
		return err
	}
	before := "damaged: it cannot be read"
	answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: []string{"orchestrations", id}})
	refusal, refused := errors.AsType[*client.Error](err)
	if !refused || refusal.Code != damagedCode {
		var o client.OrchestrationItem
		if err == nil {
			err = decodeInto(answer.Data, &o)
		}
		if err != nil {
			return err
		}
		before = fmt.Sprintf("%s, %s; it can be read, so it has to have ended", o.Orchestrator, o.Status)
	}
	d := danger{what: "purge the orchestration " + id + " by force", name: id, effect: []string{
		"before: " + before, "after:  gone, with what it had called: that is terminated; what it has locked stays locked until that expires",
	}}
	return a.guarded(ctx, g, d, func(ctx context.Context) error {
		query := url.Values{"force": {"true"}, "reason": {reason}}
		return a.tell(ctx, a.api, client.Request{Method: http.MethodDelete, Path: []string{"orchestrations", id}, Query: query})
	})
}

func (a *app) purgeMany(ctx context.Context, b bulkFlags, query url.Values, days int) error {
	before, err := endedBefore(query.Get("endedBefore"), days, a.Now())
	if err != nil {
		return Mark(ErrUsage, err)
	}
	body := members(query)
	if days >= 0 {
		body["olderThanDays"] = days
	}
	c, err := a.api(ctx)
	if err != nil {
		return err
	}
	list := maps.Clone(query)
	list.Del("endedBefore")
	list.Set("limit", fmt.Sprint(pageLimit))
	n, more, err := a.count(ctx, c, list, func(item json.RawMessage) bool {
		var o client.OrchestrationItem
		return json.Unmarshal(item, &o) == nil && !o.EndedAt.IsZero() && o.EndedAt.Before(before)
	}, "orchestrations")
	if err != nil {
		return err
	}
	if n == 0 && !more {
		a.note("No orchestration is meant: there is nothing to delete.")
		return nil
	}
	d := danger{what: "delete orchestrations", name: "purge", effect: []string{
		"before: " + about(n, more, "orchestration") + " that ended before " + day(before), "after:  gone; history and dead letters stay",
	}}
	return a.guarded(ctx, b.guards, d, func(ctx context.Context) error {
		total := n
		if more {
			total = 0
		}
		return a.begin(ctx, c, post(body, "orchestrations", "purge"), total, !b.noWait)
	})
}

// endedBefore returns the end time before which orchestrations are purged: a time, or so many days ago.
func endedBefore(text string, days int, now time.Time) (time.Time, error) {
	switch {
	case (text == "") == (days < 0):
		return time.Time{}, errors.New("--all needs either --older-than-days or --ended-before")
	case days >= 0:
		return now.AddDate(0, 0, -days), nil
	}
	return parseTime(text, now)
}
