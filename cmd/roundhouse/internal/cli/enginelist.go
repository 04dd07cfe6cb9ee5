package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/engine"
)

// enginesCommand lists the engines of the app.
func (a *app) enginesCommand() *cobra.Command {
	return a.command(spec{
		use: "engines", short: "Show the engines of the app",
		long: `Show the engines of the app: their queues, operations, schedules and intakes, as
the app at its address describes them; with --storage, as it left them in
storage when it last started.`,
		example: "  roundhouse engines\n  roundhouse engines --storage \"$AzureWebJobsStorage\"",
		run:     a.showEngines,
	})
}

func (a *app) showEngines(ctx context.Context, _ []string) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	engines, err := a.engines(ctx)
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.printValue(engines)
	}
	return a.table(func(width int) error { return writeTable(a.Stdout, width, engineColumns(), engines) })
}

func engineColumns() []column[engine.Description] {
	return []column[engine.Description]{
		{title: "ENGINE", text: func(e engine.Description) string { return e.Name }},
		{title: "QUEUE", text: func(e engine.Description) string { return e.Queue }},
		{title: "OPERATIONS", text: func(e engine.Description) string { return strings.Join(e.Operations, ", ") }, cut: true},
		{title: "STARTED BY", text: startedBy, cut: true},
	}
}

// startedBy returns the triggers of an engine other than messages.
func startedBy(e engine.Description) string {
	var by []string
	for _, s := range e.Schedules {
		by = append(by, s.Cron)
	}
	for _, i := range e.Intakes {
		by = append(by, "/api/"+i.Route)
	}
	return strings.Join(by, "; ")
}

// engines reads the engines from the app, or with --storage from its record in storage.
func (a *app) engines(ctx context.Context) ([]engine.Description, error) {
	if a.flags.storage != "" {
		s, err := a.stores()
		if err != nil {
			return nil, err
		}
		engines, _, err := registered(ctx, s)
		return engines, err
	}
	data, err := a.raw(ctx, a.api, nil, "engines")
	if err != nil {
		return nil, err
	}
	var list struct {
		Engines []engine.Description `json:"engines"`
	}
	err = decodeInto(data, &list)
	return list.Engines, err
}
