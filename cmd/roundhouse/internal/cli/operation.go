package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) operationCommands() *cobra.Command {
	cancel := a.command(spec{use: "cancel ID", short: "End one early; what was done stays done", args: cobra.ExactArgs(1), run: func(ctx context.Context, args []string) error {
		return a.tell(ctx, a.api, cancelOf(args[0]))
	}})
	wait := a.command(spec{use: "wait ID", short: "Show its progress until it ends", args: cobra.ExactArgs(1), run: func(ctx context.Context, args []string) error {
		c, err := a.api(ctx)
		if err != nil {
			return err
		}
		return a.follow(ctx, c, args[0], 0)
	}})
	return group("operation", "Work on many things", "Show operations, which work on many things behind a request.",
		a.showCommand("ID", "Show the status and the progress of one", a.api, "operations"), cancel, wait)
}
