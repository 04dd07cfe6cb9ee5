package develop

import (
	"context"
	"os"
	"path/filepath"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/functionapp"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
	"github.com/vibedata/roundhouse/internal/jsonc"
)

// Needs asks a program for its requirements of a Function App: a staged one, or that of the module of the current
// folder.
func Needs(ctx context.Context, p cli.Program) (functionapp.Needs, error) {
	var needs functionapp.Needs
	var m module.Module
	if p.Path == "" {
		var err error
		if m, err = found(p.Main); err != nil {
			return needs, err
		}
	}
	err := m.WithProgram(ctx, p.Path, func(program, home string) error {
		text, err := os.ReadFile(filepath.Join(home, "host.json"))
		if err != nil {
			return err
		}
		needs.HostFile = jsonc.Standard(text)
		return module.Describe(ctx, program, home, p.Env, &needs)
	})
	return needs, err
}
