package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// typos is the maximum edit distance between a suggested command and the typed one.
const typos = 2

// onlyCommands accepts no arguments: an argument of a group should be a subcommand, and the error names similar ones.
func onlyCommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = typos
	near := ""
	if found := c.SuggestionsFor(args[0]); len(found) > 0 {
		near = ": did you mean " + strings.Join(found, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], c.CommandPath(), near)
}
