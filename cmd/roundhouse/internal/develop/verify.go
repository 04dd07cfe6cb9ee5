package develop

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
)

// verification selects the replayed orchestrations and the program.
type verification struct {
	program, main, orchestrator string
	limit, ended                int
}

// args returns the arguments of the program's own command.
func (v verification) args(asJSON bool) []string {
	args := []string{"replay", "-orchestrator", v.orchestrator, "-limit", fmt.Sprint(v.limit), "-ended", fmt.Sprint(v.ended)}
	if asJSON {
		args = append(args, "-json")
	}
	return args
}

// storageOf returns the environment for the storage account: a connection string, or, if the environment names an
// account with an identity, values that override local.settings.json.
func storageOf(connection string, environment []string) []string {
	const setting = "AzureWebJobsStorage"
	has := func(prefix string) bool {
		return slices.ContainsFunc(environment, func(pair string) bool { return strings.HasPrefix(pair, prefix) })
	}
	switch {
	case connection != "" && connection != cli.FromSettings:
		return []string{setting + "=" + connection}
	case has(setting+"__") && !has(setting+"="):
		return []string{setting + "="}
	default:
		return nil
	}
}

func verifyCommand() *cobra.Command {
	var v verification
	c := &cobra.Command{
		Use: "verify [flags]", Aliases: []string{"replay"}, Short: "Find out what a new program would stall", Args: cobra.NoArgs,
		Long: `Replay the orchestrations that are under way in a storage account with the
program that is to be deployed, and list those that would stall: which, where
the code decides otherwise than their history, and both sides. Exit code 1 says
that there are some. Nothing is changed, and no activity runs.

The program is that of the module of this folder, or a staged one (--program).
The storage account is that of --storage, or of the AzureWebJobsStorage settings
of the environment and of local.settings.json; the identity has to be allowed to
read its tables and blobs, and for encrypted payloads to use the key of the
vault of ROUNDHOUSE_KEY_VAULT_URL.

Other settings that decide which engines there are count, too, such as
ROUNDHOUSE_CONTEXT: set them as the app has them.`,
		Example: "  roundhouse verify\n  roundhouse verify --program dist/handler -o json\n  roundhouse verify --orchestrator orders --ended 7",
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := found(v.main)
			if err != nil && v.program == "" {
				return err
			}
			storage, _ := c.Flags().GetString("storage")
			output, _ := c.Flags().GetString("output")
			return m.Run(c.Context(), module.Call{Program: v.program, Args: v.args(output == "json"), Env: storageOf(storage, os.Environ()), Stdout: c.OutOrStdout(), Stderr: c.ErrOrStderr()})
		},
	}
	f := c.Flags()
	f.StringVar(&v.program, "program", "", "the staged `program`, host.json beside it, such as dist/handler")
	f.StringVar(&v.orchestrator, "orchestrator", "", "only those of this `name`; an engine's orchestrator has the engine's name")
	f.IntVar(&v.limit, "limit", 0, "how many at most; 0 for all")
	f.IntVar(&v.ended, "ended", 0, "also those that have ended within so many `days`, which may be rewound")
	mainFlag(c, &v.main)
	return c
}
