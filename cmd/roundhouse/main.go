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
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	m := cli.Main{Commands: develop.Commands(), Pollers: pollers.Open(os.LookupEnv), PollerMaker: pollers.Maker{Lookup: os.LookupEnv}, Needs: develop.Needs,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Signals: signals}
	os.Exit(m.Run(context.Background(), os.Args[1:]))
}
