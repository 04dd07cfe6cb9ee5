package cli

import (
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of help texts.
const helpWidth = 80

// usageTemplate is cobra's template, with wrapped flags and without the global ones.
const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{pad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{wrapped .LocalFlags}}{{end}}
{{- with needed .}}

{{.}}{{end}}
{{- if .HasAvailableInheritedFlags}}

Flags that all commands have: {{.Root.Name}} --help{{end}}
{{- if .HasAvailableSubCommands}}

More about a command: {{.CommandPath}} COMMAND --help{{end}}
`

// wrapHelp wraps the help of a command and its subcommands. It does not use cobra's template functions, which are
// global.
func wrapHelp(root *cobra.Command) {
	usage := template.Must(template.New("usage").Funcs(template.FuncMap{
		"pad":     pad,
		"needed":  needed,
		"wrapped": func(f *pflag.FlagSet) string { return strings.TrimRight(f.FlagUsagesWrapped(helpWidth), "\n ") },
	}).Parse(usageTemplate))
	root.SetUsageFunc(func(c *cobra.Command) error { return usage.Execute(c.OutOrStderr(), c) })
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command", DisableFlagsInUseLine: true,
		Run: func(c *cobra.Command, args []string) {
			found, _, err := c.Root().Find(args)
			if err != nil || found == nil {
				found = c.Root()
			}
			_ = found.Help() // standard output is gone
		},
	})
}
