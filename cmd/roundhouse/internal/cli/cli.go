// Package cli is the command line roundhouse: its commands, their output, and the guardrails of dangerous ones.
// docs/cli.md describes it.
//
// Standard output has only data (a table, or the API's JSON with -o json). A dangerous command changes nothing in
// production without --execute, and nothing anywhere without a confirmation at a terminal or --yes. No output has a
// key, or a control character from outside. The package owns no storage keys: the packages that own its keys write
// them, and doctor deletes what it creates.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/functionapp"
)

// Main is the program. Stdin, Stdout, Stderr and Lookup are required.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Lookup reads the environment, as os.LookupEnv does.
	Lookup func(string) (string, bool)
	// Signals interrupts: the first signal ends or questions the current operation; nil means no signals.
	Signals <-chan os.Signal
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Poll is the interval between two reads of an operation; 0 means one second.
	Poll time.Duration
	// Pollers opens the pollers' states; nil means that this program has none.
	Pollers func(Storage) (Pollers, error)
	// PollerMaker proposes pollers; nil means that this program cannot.
	PollerMaker PollerMaker
	// Azure opens Azure Resource Manager at an address, "" for the public cloud's; nil means with the identity of the environment.
	Azure func(address string) (*functionapp.Client, error)
	// Needs asks a program for its requirements; nil means that they are unknown.
	Needs func(context.Context, Program) (functionapp.Needs, error)
	// Edit opens a file in an editor; nil means the editor in VISUAL or EDITOR, else vi.
	Edit func(ctx context.Context, file string) error
	// Commands are additional commands, for authors of engines.
	Commands []*cobra.Command
}

// Program selects a program.
type Program struct {
	// Path is the path of a staged program; "" for the program of the module around the current folder.
	Path string
	// Main is its main package.
	Main string
	// Env is its whole environment, as NAME=value.
	Env []string
}

// defaultPoll is the default of Main.Poll.
const defaultPoll = time.Second

// app is the shared state of the commands.
type app struct {
	Main
	flags  globals
	screen screen
	opened []azure.Account // their connections close with the command
}

// watchedWriter keeps the first error of a writer.
type watchedWriter struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	return n, err
}

func (w *watchedWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Run runs one command and gives the exit code, which docs/cli.md lists.
func (m Main) Run(ctx context.Context, args []string) int {
	if m.Now == nil {
		m.Now = time.Now
	}
	if m.Poll == 0 {
		m.Poll = defaultPoll
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-m.Signals:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	a := &app{Main: m, screen: screenOf(m.Stdin, m.Stdout, m.Stderr)}
	out := &watchedWriter{to: m.Stdout}
	a.Stdout = out
	defer func() {
		for _, account := range a.opened {
			account.CloseIdleConnections()
		}
	}()
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if unwritten := out.failure(); err == nil && unwritten != nil { // the help does not report it
		err = &failure{within("write the output", unwritten)}
	}
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) && !errors.Is(err, errLeft) {
		err = errInterrupted
	}
	code := exitCode(err)
	if text := complaint(err); text != "" {
		fmt.Fprintln(m.Stderr, "roundhouse: "+text)
	}
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "roundhouse",
		Short: "Write and operate apps of Roundhouse from the command line",
		Long: `roundhouse makes a module for engines of your own (new), runs it on this machine
(dev) and lays it out for a deployment (stage). And it operates an app: it sends
messages to engines, shows what became of them, and changes what needs a person.
For that it asks the HTTP API of the app, or goes straight to
storage for what has to work when the app is down (send, poller, doctor, and
with --storage history, dlq, timeline, nodes and audit, too).

Without settings it is for "make run" on this machine.

Environment:
  ROUNDHOUSE_URL          the address of the app, as --url
  ROUNDHOUSE_KEY          a function key, as --key; that of "roundhouse dev"
                          is found by itself in the folders of its module
  ROUNDHOUSE_ENTRA        the scope of the app's tokens, as --entra
  ROUNDHOUSE_ENVIRONMENT  "production" makes dangerous commands dry runs
  AzureWebJobsStorage     the storage account, as the app has it, also with
                          AzureWebJobsStorage__accountName and an identity

Exit codes:
  0  done                     4    refused: a conflict, no permission, or
  1  failed                        not confirmed
  2  used in a wrong way      5    cannot be reached
  3  there is no such thing   130  interrupted`,
		Args:              onlyCommands,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		Version:           version().String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	wrapHelp(root)
	a.flags.register(root.PersistentFlags())
	root.AddCommand(a.enginesCommand(), a.nodesCommand(), a.sendCommand(), a.historyCommands(), a.deadLetterCommands(), a.orchestrationCommands(), a.taskCommands(), a.scheduleCommands(),
		a.acknowledgeCommand(), a.consumersCommand(), a.registryCommands(),
		a.outboxCommands(), a.timelineCommand(), a.operationCommands(), a.pollerCommands(), a.auditCommands(), a.whoamiCommand(), a.drainCommand(), a.doctorCommand(), a.versionCommand(), a.completionCommand(root))
	for _, c := range a.Commands {
		root.AddCommand(ran(c))
	}
	annotate(root)
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// ran distinguishes the errors of a command from usage errors.
func ran(c *cobra.Command) *cobra.Command {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := run(c, args); err != nil {
			return &failure{err}
		}
		return nil
	}
	return c
}

// spec describes a command: its words, its flags, and its function.
type spec struct {
	use, short, long, example string
	args                      cobra.PositionalArgs
	// complete returns the values of the first argument, for shell completion; nil if they are unknown.
	complete []string
	// completeFrom finds them, instead of complete.
	completeFrom func(ctx context.Context) []string
	run          func(ctx context.Context, args []string) error
}

// command makes a runnable command. Its function may fail; every earlier failure is a usage error.
func (a *app) command(s spec) *cobra.Command {
	c := &cobra.Command{Use: s.use, Short: s.short, Long: s.long, Example: s.example, Args: s.args, DisableFlagsInUseLine: true}
	if c.Args == nil {
		c.Args = cobra.NoArgs
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if s.completeFrom != nil {
			return s.completeFrom(c.Context()), cobra.ShellCompDirectiveNoFileComp
		}
		return s.complete, cobra.ShellCompDirectiveNoFileComp
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.flags.validate(); err != nil {
			return err
		}
		if err := s.run(c.Context(), args); err != nil {
			return &failure{err}
		}
		return nil
	}
	return c
}

// group makes a command that only has subcommands.
func group(use, short, long string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: onlyCommands, DisableFlagsInUseLine: true}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return fmt.Errorf("%s needs one of its commands: see %s --help", c.CommandPath(), c.CommandPath())
	}
	c.AddCommand(below...)
	return c
}
