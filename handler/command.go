package handler

import (
	"context"
	"fmt"
	"runtime/debug"
)

const usage = `This program is started by the Azure Functions host, not by hand.

The host reads host.json, starts this program with FUNCTIONS_CUSTOMHANDLER_PORT set, and sends it the messages,
timers and HTTP requests of its functions. To run it here: roundhouse dev. To lay out what the host wants: roundhouse stage.

  manifest  print what the app consists of, as JSON: its engines, functions and settings
  replay    replay the orchestrations that are under way in storage with the code of this program (replay -h);
            roundhouse verify does so before a deployment
  -version  print what this program was built from
  -h        print this text
`

// command runs the command of the command line.
func (m runner) command(ctx context.Context, args []string, lookup func(string) (string, bool)) int {
	switch args[0] {
	case "manifest":
		return m.printManifest(args[1:], lookup)
	case "replay":
		return m.replay(ctx, args[1:], lookup)
	case "-h", "-help", "--help":
		fmt.Fprint(m.Stdout, usage)
		return exitOK
	case "-version", "--version":
		info, _ := debug.ReadBuildInfo()
		fmt.Fprint(m.Stdout, info)
		return exitOK
	default:
		fmt.Fprintf(m.Stderr, "handler: unexpected argument %q\n\n%s", args[0], usage)
		return exitUsage
	}
}

// printManifest prints the manifest of the app. It needs no settings, and uses the existing ones.
func (m runner) printManifest(args []string, lookup func(string) (string, bool)) int {
	if len(args) > 0 {
		fmt.Fprintf(m.Stderr, "handler: manifest takes no argument, and was given %q\n", args[0])
		return exitUsage
	}
	manifest, err := Describe(m.App, lookup)
	if err == nil {
		err = manifest.write(m.Stdout)
	}
	if err != nil {
		fmt.Fprintf(m.Stderr, "handler: manifest: %v\n", err)
		return exitFailure
	}
	return exitOK
}
