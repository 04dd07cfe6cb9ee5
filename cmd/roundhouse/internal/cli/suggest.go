package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// typos is how many letters a command may differ in from what was typed for it to be suggested.
const typos = 2

// onlyCommands takes no arguments: what is typed behind a group should be a command, and the error names those that are near.
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
