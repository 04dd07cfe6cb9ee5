package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells returns the supported shells.
func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func (a *app) completionCommand(root *cobra.Command) *cobra.Command {
	return a.command(spec{
		use: "completion SHELL", short: "Print the completion of a shell",
		long: `Print the completion of a shell: bash, zsh, fish or powershell. Let the shell
read it when it starts:

  source <(roundhouse completion bash)      in ~/.bashrc
  source <(roundhouse completion zsh)       in ~/.zshrc
  roundhouse completion fish | source       in ~/.config/fish/config.fish
  roundhouse completion powershell | Out-String | Invoke-Expression`,
		args: oneOf("shell", shells()), complete: shells(),
		run: func(_ context.Context, args []string) error {
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			default:
				return root.GenPowerShellCompletionWithDesc(a.Stdout)
			}
		},
	})
}

// oneOf accepts one argument from a list.
func oneOf(what string, values []string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || !slices.Contains(values, args[0]) {
			return fmt.Errorf("name one %s: %s", what, strings.Join(values, ", "))
		}
		return nil
	}
}
