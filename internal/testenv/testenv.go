// Package testenv skips a test when the machine lacks a program that the test needs, with one line on how to get the
// program. Where all programs are demanded, as in CI, the test fails instead. It owns no storage keys.
//
// It also reserves ports for tests, and knows the folder of the real Functions host, which is optional.
//
// Go and Node.js are not such programs: the README requires them, and tests fail without them.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/daemon"
)

const (
	// Demand is the environment variable that makes a missing program a failure when it is "all".
	Demand = "ROUNDHOUSE_TEST_DEMAND"
	// Skipped is the environment variable that names a file, to which a line is added for each skipped test: the same line
	// for the same program. `make test` prints them at its end.
	Skipped = "ROUNDHOUSE_TEST_SKIPPED"
)

// Started ends the test when a server could not be started: it is skipped when the error is a daemon.MissingError and
// not everything is demanded, and fails otherwise. Without an error the test continues.
func Started(t testing.TB, err error) {
	t.Helper()
	missing, ok := errors.AsType[*daemon.MissingError](err)
	switch {
	case err == nil:
	case !ok || os.Getenv(Demand) == "all":
		t.Fatal(err)
	default:
		Skip(t, missing.Tool+": "+missing.Get)
	}
}

// Skip skips a test because something optional is missing, even if everything is demanded. missing names it and how to
// get it.
func Skip(t testing.TB, missing string) {
	t.Helper()
	line := "SKIP: " + missing
	if err := report(os.Getenv(Skipped), line); err != nil {
		t.Error(err)
	}
	t.Skip(line)
}

// Programs ends the test as Started does when one of these programs is not in PATH. Each is in a package of its own
// name.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Started(t, &daemon.MissingError{Tool: name, Get: "install the package " + name, Err: err})
		}
	}
}

// Run runs a program of a package in a folder, and fails the test with its output when it fails. It skips the test in a
// -short run, and as Started does when the program is not in PATH.
func Run(t testing.TB, dir, program, pkg string, args ...string) {
	t.Helper()
	Long(t)
	path, err := exec.LookPath(program)
	if err != nil {
		Started(t, &daemon.MissingError{Tool: program, Get: "install the package " + pkg, Err: err})
	}
	cmd := exec.CommandContext(Context(t), path, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
}

// report adds a line to a file; "" is none. A single write keeps the lines of several processes apart.
func report(file, line string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("report a skipped test: %w", err)
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
