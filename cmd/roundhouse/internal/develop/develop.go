// Package develop has the commands for authors of engines: new, dev, stage and verify. It owns no storage keys.
package develop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/dev"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/devkey"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/scaffold"
)

// Commands returns the commands. They work in the module of the current folder.
func Commands() []*cobra.Command {
	return []*cobra.Command{newCommand(), devCommand(), stageCommand(), verifyCommand()}
}

// errResult means that a command ended without its result.
var errResult = errors.New("stopped before there was a result")

func newCommand() *cobra.Command {
	o := scaffold.Options{}
	c := &cobra.Command{
		Use: "new DIR [flags]", Short: "Make a module for engines of your own", Args: cobra.ExactArgs(1),
		Long: `Make a module for engines of your own in a new folder: a program of a few lines,
an engine with its test, host.json, local.settings.json, a Makefile and a
workflow that builds and tests it. docs/first-engine.md goes on from there.`,
		Example: "  roundhouse new billing\n  roundhouse new billing --module example.com/acme/billing --engine invoices",
		RunE: func(c *cobra.Command, args []string) error {
			o.Dir = args[0]
			files, err := scaffold.New(c.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Made %s:\n  %s\n\nGo on with\n  cd %s\n  make run     # everything on this machine\n  make test\n",
				o.Dir, strings.Join(files, "\n  "), o.Dir)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&o.Module, "module", "", "the module's `path`; the folder's name unless given")
	f.StringVar(&o.Engine, "engine", "", "the `name` of its first engine; sample unless given")
	f.StringVar(&o.Replace, "replace", "", "use the Roundhouse in this `folder` in place of a released one")
	return c
}

func devCommand() *cobra.Command {
	o := dev.Options{Storage: dev.DefaultStorage()}
	c := &cobra.Command{
		Use: "dev [flags]", Short: "Run the module on this machine", Args: cobra.NoArgs,
		Long: `Run the module of this folder on this machine: it is built and staged, Azurite
and a local Functions host are started, and a sample message is sent to the
first engine whose definition has an example. When a file changes, it is built
and started anew. Ctrl-C stops everything.

Requests need the key that it prints, as x-functions-key or ?code=, so that
nothing else on this machine uses the app; it is in the file key of the state
folder, the same at every start. --insecure does without. Web pages of other
origins are refused either way.

With --once it stops after the first result; the history entry of that is the
last line of standard output, as JSON. Everything else goes to standard error.`,
		Example: "  roundhouse dev\n  roundhouse dev --once\n  roundhouse dev --port 7072 --storage-ports 20000,20001,20002",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.Module, err = found(o.Module.Main); err != nil {
				return err
			}
			o.Result, o.Progress = c.OutOrStdout(), c.ErrOrStderr()
			err = dev.Run(c.Context(), o)
			if c.Context().Err() != nil {
				fmt.Fprintln(o.Progress, "\nStopped; nothing is left running that this command has started.")
				if !o.Once {
					return nil
				}
				return errResult
			}
			return err
		},
	}
	f := c.Flags()
	f.BoolVar(&o.Once, "once", false, "stop after the first result")
	f.BoolVar(&o.CoreTools, "func", false, "run func start of Azure Functions Core Tools, not the local host")
	f.BoolVar(&o.Verbose, "verbose", false, "show what the app logs")
	f.BoolVar(&o.Still, "no-watch", false, "do not look for changes")
	f.BoolVar(&o.Insecure, "insecure", false, "ask nobody for a key")
	f.BoolVar(&o.NoSample, "no-sample", false, "send no sample message")
	f.StringVar(&o.Engine, "engine", "", "the `engine` that gets the sample message")
	f.IntVar(&o.Port, "port", dev.DefaultPort, "the `port` of the host")
	f.Var(&o.Storage, "storage-ports", "Azurite's ports")
	f.StringVar(&o.State, "state", devkey.State, "the `folder` of the staged app, of Azurite's data, of the app's log and of its key, in the module")
	mainFlag(c, &o.Module.Main)
	return c
}

func stageCommand() *cobra.Command {
	var main, zip string
	var local, list bool
	c := &cobra.Command{
		Use: "stage [DIR] [flags]", Short: "Lay out what the Functions host runs", Args: cobra.MaximumNArgs(1),
		Long: `Build the module of this folder and lay out DIR (dist unless given) as the
Functions host wants it: host.json, the static program, and a folder with a
function.json for each function of the app. DIR is replaced as a whole, and only
when everything has worked.

Without --local it is for a Function App: linux, GOARCH or else amd64, and no
settings of this machine. With --local it is for this machine, and has
local.settings.json, too, as func start wants it.

--zip makes a package of the same files, for the commands that deploy one: the
program in it may be executed wherever it is unpacked, and the same files give
the same bytes.

Which functions there are may depend on settings: those of the environment and
of local.settings.json count.`,
		Example: "  roundhouse stage\n  roundhouse stage --zip app.zip\n  roundhouse stage --local\n  roundhouse stage --list",
		RunE: func(c *cobra.Command, args []string) error {
			m, err := found(main)
			if err != nil {
				return err
			}
			if list {
				return listFunctions(c, m)
			}
			dir := filepath.Join(m.Dir, "dist")
			if len(args) > 0 {
				dir = args[0]
			}
			target := module.Deployment
			if arch := os.Getenv("GOARCH"); arch != "" {
				target.Arch = arch
			}
			target.Zip = zip
			if local {
				target = module.Here
			}
			manifest, err := m.Stage(c.Context(), dir, target)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Staged %s: %d functions, for %s/%s.\n", dir, len(manifest.Functions), target.OS, target.Arch)
			return nil
		},
	}
	f := c.Flags()
	f.BoolVar(&local, "local", false, "lay out for this machine, with local.settings.json")
	f.BoolVar(&list, "list", false, "name the functions, and lay out nothing")
	f.StringVar(&zip, "zip", "", "a `file` that gets what is staged as one package, too")
	c.MarkFlagsMutuallyExclusive("zip", "local") // a package has no settings of this machine
	c.MarkFlagsMutuallyExclusive("zip", "list")
	mainFlag(c, &main)
	return c
}

func listFunctions(c *cobra.Command, m module.Module) error {
	manifest, err := m.Manifest(c.Context())
	if err != nil {
		return err
	}
	var names []string
	for name := range manifest.Functions {
		names = append(names, name)
	}
	slices.Sort(names)
	_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(names, "\n"))
	return err
}

// mainFlag adds the flag for modules whose program is not in their root folder.
func mainFlag(c *cobra.Command, main *string) {
	c.Flags().StringVar(main, "main", ".", "the `package` of the program, in the module; its own host.json and local.settings.json count. Without Go files next to go.mod it is ./cmd/handler")
}

// found returns the module of the current folder.
func found(main string) (module.Module, error) {
	m, err := module.Find(".")
	if err != nil {
		return m, cli.Mark(cli.ErrMissing, err)
	}
	m, err = m.WithMain(main)
	return m, cli.Mark(cli.ErrUsage, err)
}
