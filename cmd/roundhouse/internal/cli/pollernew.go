package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// pollerNewCommand proposes the definition of a poller.
func (a *app) pollerNewCommand() *cobra.Command {
	var q PollerQuestion
	var write, yes bool
	c := a.command(spec{
		use: "new TABLE --setting NAME --dialect DIALECT [flags]", short: "Propose the definition of a poller for a table",
		long: `Propose the definition of a poller, of what the database says of a table.
It reads the catalog (keys, types, defaults, triggers, indexes) and changes
nothing. The definition goes to standard output, as ROUNDHOUSE_POLLERS has it;
why it is so, and what the table lacks as SQL to run, to standard error.
The connection string is the value of a setting, in the environment or in
local.settings.json: it never stands on the command line. For SQL Server this
is written to its documentation, and was not run against a server.`,
		example: `  roundhouse poller new public.orders --setting ORDERS_DSN --dialect postgres \
    --engine update --instance-column instance_id`,
		args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			q.Table, q.Timeout = args[0], a.flags.timeout
			return a.newPoller(ctx, q, write, yes)
		},
	})
	f := c.Flags()
	f.StringVar(&q.Setting, "setting", "", "the `name` of the setting that holds the connection string")
	f.StringVar(&q.Dialect, "dialect", "", "`postgres`, mysql (MariaDB, too), sqlite or sqlserver")
	f.StringVar(&q.Name, "name", "", "the `name` of the poller; that of the table unless given")
	f.StringVar(&q.SourceID, "source-id", "", "a `name` for the database that stays when its host changes; its own unless given")
	f.StringVar(&q.Cursor, "cursor", "", "the `column` that is the cursor; found unless given")
	f.StringSliceVar(&q.Keys, "keys", nil, "the `columns` that name a row, with commas; found unless given")
	f.StringVar(&q.Engine, "engine", "", "the `engine` that takes the rows")
	f.StringVar(&q.Operation, "operation", "", "the `operation` of the engine")
	f.StringVar(&q.InstanceColumn, "instance-column", "", "the `column` with the instance of a row")
	f.StringVar(&q.EventType, "event-type", "", "instead of an engine: the `type` of the events that rows become")
	f.StringVar(&q.Tenant, "tenant", "", "the `tenant` of all rows")
	f.StringVar(&q.TenantColumn, "tenant-column", "", "the `column` with the tenant of a row")
	f.StringVar(&q.File, "file", "local.settings.json", "the `file` of settings")
	f.BoolVar(&write, "write", false, "write the definition into the file of settings, behind those that it has")
	f.BoolVarP(&yes, "yes", "y", false, "do not ask before it is written (for scripts)")
	return c
}

func (a *app) newPoller(ctx context.Context, q PollerQuestion, write, yes bool) error {
	if a.PollerMaker == nil {
		return errNoPollers
	}
	asking, cancel := a.bounded(ctx)
	defer cancel()
	p, err := a.PollerMaker.Propose(asking, q)
	if err != nil {
		return err
	}
	if a.asJSON() {
		err = a.printValue(p)
	} else {
		a.explainProposal(p)
		err = a.printJSON(p.Definition)
	}
	if err != nil || !write {
		return err
	}
	if !p.Ready {
		return Mark(ErrRefused, errors.New("nothing was written: the poller cannot run yet. Run what is missing, and ask again"))
	}
	d := danger{what: "write the poller " + p.Poller + " into " + q.File, name: p.Poller, effect: []string{"the setting ROUNDHOUSE_POLLERS gets the definition above"}}
	// A file of this machine is not production.
	return a.guarded(ctx, guards{execute: true, yes: yes}, d, func(context.Context) error {
		if err := a.PollerMaker.Write(q.File, p); err != nil {
			return err
		}
		a.note("Written. Its function comes with the next roundhouse dev or stage.")
		return nil
	})
}

// explainProposal explains a definition.
func (a *app) explainProposal(p PollerProposal) {
	for _, r := range p.Reasons {
		a.note("%s", r)
	}
	for _, text := range p.Advice {
		a.note("advice: %s", text)
	}
	if p.Problem != "" {
		a.note("It cannot run as it is: %s", p.Problem)
	} else if !p.Ready {
		a.note("It cannot run before what follows has been run.")
	}
	for _, m := range p.Missing {
		a.note("\n-- %s:\n%s", m.Why, m.SQL)
	}
}
