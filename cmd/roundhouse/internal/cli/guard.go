package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// guards are the flags of every dangerous command.
type guards struct{ execute, dryRun, yes bool }

func (g *guards) register(f *pflag.FlagSet) {
	f.BoolVar(&g.execute, "execute", false, "change something: in production nothing is changed without it")
	f.BoolVar(&g.dryRun, "dry-run", false, "only show what would be changed")
	f.BoolVarP(&g.yes, "yes", "y", false, "do not ask (for scripts)")
}

// danger is a change that needs a guard.
type danger struct {
	// what describes the change, such as "terminate the orchestration a1". name is the text to type.
	what, name string
	// effect lists the changes, line by line.
	effect []string
	// storage means that the change is made in storage, not by the app.
	storage bool
}

// plan is a dry run as JSON.
type plan struct {
	DryRun bool     `json:"dryRun"`
	Action string   `json:"action"`
	Target string   `json:"target"`
	Effect []string `json:"effect"`
}

// dryRun reports whether a change, in storage or by the app, is only shown.
func (a *app) dryRun(g guards, storage bool) bool {
	return g.dryRun || a.production(storage) && !g.execute
}

// guard shows a change, and returns nil if it is to be made, errDryRun, or the reason why not.
func (a *app) guard(ctx context.Context, g guards, d danger) error {
	if g.dryRun && g.execute {
		return Mark(ErrUsage, errors.New("--dry-run and --execute contradict each other"))
	}
	dry := a.dryRun(g, d.storage)
	if !dry || !a.asJSON() {
		a.note("This will %s:", d.what)
		for _, line := range d.effect {
			a.note("  %s", line)
		}
	}
	switch {
	case dry && a.asJSON():
		if err := a.printValue(plan{true, d.what, d.name, d.effect}); err != nil {
			return err
		}
		return errDryRun
	case dry:
		reason := ""
		if !g.dryRun {
			reason = " This is production: add --execute."
		}
		a.note("Dry run: nothing was changed.%s", reason)
		return errDryRun
	case g.yes:
		return nil
	case !a.screen.asks:
		return Mark(ErrRefused, fmt.Errorf("not confirmed, nothing was changed: there is no terminal to ask at, so add --yes to %s", d.what))
	}
	typed, err := a.prompt(ctx, nil, `Type "`+d.name+`" to go on: `)
	if err != nil {
		return err
	}
	if typed != d.name {
		return Mark(ErrRefused, errors.New("not confirmed: nothing was changed"))
	}
	return nil
}

// errDryRun: no error, and nothing to do.
var errDryRun = errors.New("dry run")

// guarded makes a change if guard allows it.
func (a *app) guarded(ctx context.Context, g guards, d danger, change func(context.Context) error) error {
	err := a.guard(ctx, g, d)
	if errors.Is(err, errDryRun) {
		return nil
	}
	if err == nil {
		err = change(ctx)
	}
	return err
}

// prompt asks at the terminal, and returns the typed line. A signal on interrupts ends it, too.
func (a *app) prompt(ctx context.Context, interrupts <-chan os.Signal, question string) (string, error) {
	fmt.Fprint(a.Stderr, block(question))
	type answer struct {
		line string
		err  error
	}
	typed := make(chan answer, 1)
	// A read from a terminal cannot be canceled: after an abandoned wait, the reader stays until the program ends.
	go func() {
		line, err := bufio.NewReader(a.Stdin).ReadString('\n')
		typed <- answer{strings.TrimSpace(line), err}
	}()
	select {
	case got := <-typed:
		if got.err != nil && got.line == "" {
			return "", Mark(ErrRefused, errors.New("not confirmed: nothing was typed, and nothing was changed"))
		}
		return got.line, nil
	case <-ctx.Done():
	case <-interrupts:
	}
	fmt.Fprintln(a.Stderr)
	return "", errInterrupted
}
