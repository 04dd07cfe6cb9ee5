// Command lane runs the tests of one lane: short, change or all. `make test`, `.ci/run` and `make test-all` call it.
//
//	go run ./scripts/lane short              stores in memory and virtual time only: 90 seconds
//	go run ./scripts/lane change             every package with a sample of the enumerated cases: for a pull request
//	go run ./scripts/lane all                everything, and the race detector everywhere: every night
//	go run ./scripts/lane change ./outbox    the same for some packages
//	go run ./scripts/lane -load 20 -times 10 short    ten times next to 20 busy threads: shows flaky tests
//
// It prints a line for each package that ends, with its seconds and the remaining packages, and the slowest packages
// at the end. For a test that fails it prints at most 30 lines, the last of which is the command that repeats the
// test. Packages share the servers that it starts.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/internal/sample"
)

// lane is one way of running the tests.
type lane struct {
	passes []pass
	// servers means that the tests need servers.
	servers bool
	// modules are further modules in the repository whose tests belong to the lane.
	modules []string
}

// pass is one `go test` of a lane, over the packages that it picks.
type pass struct {
	args []string
	// share is sample.Share; 0 leaves it to the tests.
	share int
	pick  func(pkg) bool
	// beside runs the pass in parallel to the others: its tests mostly wait for other processes.
	beside bool
}

// lanes are the available lanes. A test runs once in a lane, except for the race detector at night: it runs a sample,
// because it makes every case five to ten times slower.
var lanes = map[string]lane{
	"short": {passes: []pass{{args: []string{"-short", "-timeout=10m"}, pick: every}}},
	"change": {servers: true, modules: modules, passes: []pass{
		{args: []string{"-timeout=30m", "-p=2", "-parallel=4"}, share: 8, pick: pkg.waits, beside: true},
		{args: []string{"-race", "-timeout=30m"}, share: 64, pick: func(p pkg) bool { return p.concurrent() && !p.waits() }},
		{args: []string{"-timeout=30m"}, share: 8, pick: func(p pkg) bool { return !p.concurrent() && !p.waits() }},
	}},
	"all": {servers: true, modules: modules, passes: []pass{
		{args: []string{"-timeout=60m", "-p=2", "-parallel=4"}, share: 1, pick: pkg.waits, beside: true},
		{args: []string{"-timeout=60m"}, share: 1, pick: func(p pkg) bool { return !p.waits() }},
		{args: []string{"-race", "-timeout=60m"}, share: 16, pick: func(p pkg) bool { return !p.waits() }},
	}},
}

var modules = []string{"deploy/check", "deploy/observability/dashboards"}

func every(pkg) bool { return true }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("lane", flag.ContinueOnError)
	seed := flags.String("seed", "", "chooses among the samples; the commit unless given")
	share := flags.Int("share", 0, "try one case in `N`; the lane's own unless given, 1 is every case")
	load := flags.Int("load", 0, "keep `N` threads busy besides the tests")
	times := flags.Int("times", 1, "run the lane this often, whatever the go command has cached")
	goArgs := flags.String("args", "", "further arguments of go test, separated by blanks")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: go run ./scripts/lane [flags] short|change|all [packages]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	name := flags.Arg(0)
	l, ok := lanes[name]
	if !ok {
		flags.Usage()
		return fmt.Errorf("unknown lane %q: use short, change or all", name)
	}
	if *seed == "" {
		*seed = commit(ctx)
	}
	o := options{name: name, seed: *seed, share: *share, args: strings.Fields(*goArgs), patterns: flags.Args()[1:]}
	if *times > 1 {
		o.args = append(o.args, "-count=1")
	}
	burn(ctx, *load)
	failed := 0
	for i := range *times {
		if err := l.run(ctx, o); ctx.Err() != nil {
			return err
		} else if err != nil {
			failed++
			fmt.Println("lane:", err)
		}
		if *times > 1 {
			fmt.Printf("== run %d of %d, %d failed\n", i+1, *times, failed)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, *times)
	}
	return nil
}

// burn keeps threads of this process busy until ctx ends.
func burn(ctx context.Context, threads int) {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + threads)
	for range threads {
		go func() {
			for ctx.Err() == nil {
			}
		}()
	}
}

// options are the lane's options on the command line.
type options struct {
	name, seed string
	share      int // 0 is that of each pass
	args       []string
	patterns   []string // none is every package, and the lane's modules
}

// run runs the lane and returns an error when a test failed or could not run.
func (l lane) run(ctx context.Context, o options) error {
	began := time.Now()
	phases, pkgs, err := l.phases(ctx, o)
	if err != nil {
		return err
	}
	if l.servers {
		env, stop, err := serve(ctx, pkgs)
		defer stop()
		if err != nil {
			return err
		}
		for i := range phases {
			phases[i].env = append(phases[i].env, env...)
		}
	}
	p := newProgress(os.Stdout, phases, began)
	p.header(o)
	stopStill := p.watch()
	defer stopStill()
	g, ctx := errgroup.WithContext(ctx)
	var inTurn []phase
	for _, ph := range phases {
		if ph.beside {
			g.Go(func() error { return ph.run(ctx, p) })
		} else {
			inTurn = append(inTurn, ph)
		}
	}
	g.Go(func() error {
		for _, ph := range inTurn {
			if err := ph.run(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	stopStill()
	return p.finish()
}

// phases returns the phases of the lane, in order, and the packages of this module.
func (l lane) phases(ctx context.Context, o options) (all []phase, pkgs []pkg, err error) {
	patterns := o.patterns
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if pkgs, err = list(ctx, ".", patterns); err != nil {
		return nil, nil, err
	}
	detector, err := hasDetector(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, pass := range l.passes {
		ph := phase{dir: ".", beside: pass.beside, args: slices.Concat(pass.args, o.args)}
		if !detector {
			ph.args = slices.DeleteFunc(ph.args, func(a string) bool { return a == "-race" })
		}
		for _, p := range pkgs {
			if pass.pick(p) {
				ph.pkgs = append(ph.pkgs, p)
			}
		}
		if share := cmp.Or(o.share, pass.share); share > 0 {
			ph.env = []string{sample.Share + "=" + strconv.Itoa(share), sample.Seed + "=" + o.seed}
		}
		if len(ph.pkgs) > 0 {
			all = append(all, ph)
		}
	}
	if len(o.patterns) > 0 {
		return all, pkgs, nil
	}
	for _, dir := range l.modules {
		found, err := list(ctx, dir, patterns)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, phase{dir: dir, args: o.args, pkgs: found})
	}
	return all, pkgs, nil
}

// hasDetector reports whether this machine can build with the race detector, which needs a C compiler.
func hasDetector(ctx context.Context) (bool, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output()
	if err != nil {
		return false, fmt.Errorf("look for a C compiler: %w", err)
	}
	if strings.TrimSpace(string(out)) == "1" {
		return true, nil
	}
	fmt.Println("The race detector is not used: this machine has no C compiler.")
	return false, nil
}

// commit returns the current commit, or the date if git does not know one.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return time.Now().UTC().Format(time.DateOnly)
	}
	return strings.TrimSpace(string(out))
}
