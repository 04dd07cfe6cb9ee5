// Command mutate measures how many bugs the tests catch: it changes one place of a package at a time and runs the
// package's tests on it.
//
//	go run ./scripts/mutate -n 50 ./outbox                     50 random mutants of one package
//	go run ./scripts/mutate -n 200 -seed 7 ./engine ./poller   the same ones each time
//	go run ./scripts/mutate -against ../before ./outbox        survivors are tried with the tests of another checkout, too
//
// A mutant that survives the -short tests is tried with the sample of the change lane, and then with every case. The
// tree is not changed: mutants are compiled through an overlay.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/sample"
)

// stage is one way of running the tests, the cheapest first.
type stage struct {
	name string
	dir  string
	args []string
	env  []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	n := flags.Int("n", 20, "how many mutants")
	seed := flags.Uint64("seed", 1, "chooses the mutants")
	first := flags.Int("first", 0, "skip the mutants before this one, to continue a run")
	against := flags.String("against", "", "a `folder` with another checkout whose tests the survivors are tried with")
	limit := flags.Duration("limit", 10*time.Minute, "a mutant that runs longer than this is caught")
	most := flags.String("most", "all", "the last stage: short, change or all")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: go run ./scripts/mutate [flags] packages")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return errors.New("name the packages to change")
	}
	stages, err := stagesUpTo(*most, *limit)
	if err != nil {
		return err
	}
	if *against != "" {
		last := stages[len(stages)-1]
		stages = append(stages, stage{name: "against", dir: *against, args: []string{"-timeout=" + limit.String()}, env: last.env})
	}
	mutants, err := find(ctx, flags.Args())
	if err != nil {
		return err
	}
	if len(mutants) < *n {
		return fmt.Errorf("the packages have %d places to change, fewer than -n %d", len(mutants), *n)
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	r.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	return tryAll(ctx, mutants[:*n], *first, stages)
}

func stagesUpTo(most string, limit time.Duration) ([]stage, error) {
	all := []stage{
		{name: "short", args: []string{"-short"}},
		{name: "change", env: []string{sample.Share + "=8"}},
		{name: "all"},
	}
	i := slices.IndexFunc(all, func(s stage) bool { return s.name == most })
	if i < 0 {
		return nil, fmt.Errorf("unknown stage %q: use short, change or all", most)
	}
	for j := range all {
		all[j].dir = "."
		all[j].args = append(all[j].args, "-timeout="+limit.String())
	}
	return all[:i+1], nil
}

// tryAll tries mutants from the one numbered first and prints a line for each, and a summary.
func tryAll(ctx context.Context, mutants []mutant, first int, stages []stage) error {
	caught := map[string]int{}
	for i, m := range mutants {
		if i < first {
			continue
		}
		by, err := m.try(ctx, stages)
		if err != nil {
			return fmt.Errorf("mutant %d, %s: %w", i, m, err)
		}
		caught[by]++
		fmt.Printf("%3d  %-9s %s\n", i, by, m)
	}
	fmt.Printf("\n%d mutants\n", len(mutants)-first)
	for _, s := range stages {
		fmt.Printf("%4d caught by %s\n", caught[s.name], s.name)
	}
	fmt.Printf("%4d did not compile\n%4d survived\n", caught[uncompiled], caught[survived])
	return nil
}

// Results in addition to a stage's name.
const (
	uncompiled = "invalid"
	survived   = "SURVIVED"
)

// try runs the tests of the mutant's package and returns the first stage that catches it.
func (m mutant) try(ctx context.Context, stages []stage) (by string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	changed := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(changed, m.source, 0o600); err != nil {
		return "", err
	}
	for _, s := range stages {
		overlay, err := m.overlay(dir, s.dir, changed)
		if err != nil {
			return "", err
		}
		ok, output, err := s.test(ctx, overlay, m.folder)
		switch {
		case err != nil:
			return "", err
		case !ok && strings.Contains(output, "[build failed]"):
			return uncompiled, nil
		case !ok:
			return s.name, nil
		}
	}
	return survived, nil
}

// overlay writes the overlay file that points the go command in root to the mutant.
func (m mutant) overlay(dir, root, changed string) (path string, err error) {
	file, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// test reports whether the package's tests pass.
func (s stage) test(ctx context.Context, overlay, folder string) (ok bool, output string, err error) {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-trimpath", "-vet=off", "-failfast", "-overlay", overlay}, s.args...), "./"+folder)...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
		return false, string(out), nil
	}
	return err == nil, string(out), err
}
