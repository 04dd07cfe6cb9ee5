// Command roundhouse is the operator's command line: it sends messages to engines, shows their results, and changes
// what needs an operator. It calls the HTTP API, or uses storage directly for commands that must work when the
// program is down. docs/cli.md describes it, exit codes included. It owns no storage keys.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/cli"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/develop"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/pollers"
	"github.com/vibedata/roundhouse/internal/environ"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	lookup := environ.Lookup(os.Environ())
	m := cli.Main{Commands: develop.Commands(), Pollers: pollers.Open(lookup), PollerMaker: pollers.Maker{Lookup: lookup}, Needs: develop.Needs,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: lookup, Signals: signals}
	os.Exit(m.Run(context.Background(), os.Args[1:]))
}
