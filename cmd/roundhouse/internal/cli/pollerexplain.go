package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) pollerExplainCommand() *cobra.Command {
	return a.command(spec{
		use: "explain POLLER KEY", short: "Say why a row has come or has not",
		long: `Say why a row has come or has not: it is not there, does not meet where, has no
cursor, lies in front of the poller's place, is held back (by which transaction)
or is due; and whether it is in the dead letters. KEY is a JSON object of the
key columns, or the value of the only one. It reads that row alone. Where the
bound has to be watched for first, that takes about the settle window.`,
		example: `  roundhouse poller explain orders 12093
  roundhouse poller explain lines '{"order":12093,"line":2}'`,
		args: cobra.ExactArgs(2),
		run: func(ctx context.Context, args []string) error {
			return a.withPollers(ctx, func(ctx context.Context, p Pollers) error {
				e, err := p.Explain(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				return a.detail(e)
			})
		},
	})
}

func (a *app) pollerPlanCommand() *cobra.Command {
	var count int
	var values bool
	c := a.command(spec{
		use: "plan POLLER [flags]", short: "Show what the next fetch would do, and how far it is",
		long: `Show what the next fetch would do: its statement, what the server makes of it,
the index that it needs, and how many rows wait; and how many were delivered.
Nothing is delivered or changed. Values are not shown unless that is asked for.`,
		args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			if count < 1 || count > 100_000 {
				return Mark(ErrUsage, fmt.Errorf("--count %d: use 1 to 100000", count))
			}
			return a.withPollers(ctx, func(ctx context.Context, p Pollers) error {
				plan, err := p.Plan(ctx, args[0], count, values)
				if err != nil {
					return err
				}
				if a.asJSON() {
					return a.printValue(plan)
				}
				return a.printPlan(plan)
			})
		},
	})
	c.Flags().IntVar(&count, "count", 10_000, "count waiting rows up to this `number`")
	c.Flags().BoolVar(&values, "values", false, "show the values of parameters and plans, which are data of the place and of where")
	return c
}

// planName is the width of the names in a plan.
const planName = 12

// printPlan writes a plan as text.
func (a *app) printPlan(p PollerPlan) error {
	var out strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&out, "%s%s\n", pad(name, planName), block(text))
		}
	}
	line("place", p.Place)
	line("end", p.End)
	line("delivered", deliveredText(p))
	line("due", countText(p.Due))
	line("waiting", countText(p.Waiting))
	line("held back", p.HeldBack)
	line("order", strings.Join(p.Order, ", "))
	line("index", p.Index)
	line("missing", p.Missing)
	line("statement", p.Statement)
	for n, parameter := range p.Parameters {
		line(fmt.Sprintf("  %d", n+1), strings.TrimSpace(parameter.Type+" "+parameter.Value))
	}
	if len(p.Explain) == 0 {
		line("plan", "the server cannot be asked for it")
	}
	line("plan", strings.Join(p.Explain, "\n"+strings.Repeat(" ", planName)))
	_, err := fmt.Fprint(a.Stdout, out.String())
	return err
}

func countText(c PollerCount) string {
	if c.AtLeast {
		return fmt.Sprintf("at least %d rows", c.Rows)
	}
	return fmt.Sprintf("%d rows", c.Rows)
}

// deliveredText returns the progress of a poller.
func deliveredText(p PollerPlan) string {
	text := fmt.Sprintf("%d rows since the beginning", p.Delivered)
	if p.Delivered == 0 && p.Place != "the beginning" {
		text = "not counted since the beginning"
	}
	if p.Estimated >= 0 {
		text += fmt.Sprintf("; the table has about %d", p.Estimated)
	}
	return text
}
