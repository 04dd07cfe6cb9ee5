package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// interruptGrace bounds the time that interrupted tests have to end.
const interruptGrace = 10 * time.Second

// phase is one `go test` over some packages of one module.
type phase struct {
	dir  string
	args []string
	env  []string // in addition to this process's environment
	pkgs []pkg
	// beside runs the phase in parallel to the others.
	beside bool
}

// run runs the phase's tests. A failed test is no error here; progress counts it. lint vets the code, so the tests do
// not; -trimpath lets every checkout reuse another one's compiled packages.
func (ph phase) run(ctx context.Context, p *progress) error {
	command := append([]string{"test", "-json", "-trimpath", "-vet=off"}, ph.args...)
	for _, one := range ph.pkgs {
		command = append(command, one.ImportPath)
	}
	cmd := exec.CommandContext(ctx, "go", command...)
	cmd.Dir, cmd.Env, cmd.Stderr = ph.dir, append(os.Environ(), ph.env...), os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("run go test in %s: %w", ph.dir, err)
	}
	p.read(out, ph)
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 && ctx.Err() == nil {
		return nil
	}
	return errors.Join(err, ctx.Err())
}

// repeat returns the command that reruns a failed test. The lane's servers are gone by then; the test starts its own.
func (ph phase) repeat(pkg, test string) string {
	words := slices.DeleteFunc(slices.Clone(ph.env), func(v string) bool { return strings.HasPrefix(v, testenv.Servers+"=") })
	words = append(words, "go test")
	if ph.dir != "." {
		words = append(words, "-C", ph.dir)
	}
	words = append(words, ph.args...)
	if test != "" {
		var parts []string
		for part := range strings.SplitSeq(test, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		words = append(words, "-run", "'"+strings.Join(parts, "/")+"'")
	}
	return strings.Join(append(words, pkg), " ")
}
