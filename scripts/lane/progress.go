package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// failureLines bounds the printed lines of a failure.
	failureLines = 30
	// stillEvery is the interval at which running packages are printed while none ends.
	stillEvery = 20 * time.Second
	// slowMost is the number of slowest packages and tests at the end.
	slowMost = 10
)

// event is a line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64
}

// key names a test, or with no test a package or a build.
type key struct{ pkg, test string }

// result is the result of a package.
type result struct {
	name    string
	seconds float64
}

// progress reads the test events of a lane and prints a summary.
type progress struct {
	out   io.Writer
	began time.Time

	mu                      sync.Mutex
	left                    int
	running                 map[string]time.Time
	last                    time.Time // of the last line
	output                  map[key][]string
	failedTests             map[string][]string // by package
	ended, tests            []result
	passed, failed, skipped int // tests
	bad                     int // packages
	missing                 map[string]int
}

func newProgress(out io.Writer, phases []phase, began time.Time) *progress {
	p := &progress{out: out, began: began, running: map[string]time.Time{}, last: time.Now(), output: map[key][]string{},
		failedTests: map[string][]string{}, missing: map[string]int{}}
	for _, ph := range phases {
		p.left += len(ph.pkgs)
	}
	return p
}

func (p *progress) header(o options) {
	fmt.Fprintf(p.out, "== %s lane: %d packages; the same samples again: go run ./scripts/lane -seed %s %s\n", o.name, p.left, o.seed, o.name)
}

// read reads the events of one phase until their end.
func (p *progress) read(events io.Reader, ph phase) {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Action != "" {
			p.take(e, ph)
		} else if len(line) > 0 {
			p.mu.Lock()
			fmt.Fprintf(p.out, "%s", line) // the go command's own output
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// take counts an event.
func (p *progress) take(e event, ph phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := key{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "start":
		p.running[k.pkg] = time.Now()
	case "output", "build-output":
		p.output[k] = append(p.output[k], e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.takeTest(e, k)
			return
		}
		p.takePackage(e, ph)
	}
}

func (p *progress) takeTest(e event, k key) {
	if !strings.Contains(k.test, "/") {
		p.tests = append(p.tests, result{within(k.pkg) + " " + k.test, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		p.passed++
	case "skip":
		p.skipped++
		for _, line := range p.output[k] {
			if _, text, found := strings.Cut(line, ": SKIP: "); found {
				p.missing[strings.TrimSpace(text)]++
			}
		}
	case "fail":
		p.failed++
		p.failedTests[k.pkg] = append(p.failedTests[k.pkg], k.test)
	}
	if e.Action != "fail" {
		delete(p.output, k)
	}
}

func (p *progress) takePackage(e event, ph phase) {
	p.left--
	p.last = time.Now()
	delete(p.running, e.Package)
	name := within(e.Package)
	p.ended = append(p.ended, result{name, e.Elapsed})
	word := "ok"
	switch e.Action {
	case "fail":
		word = "FAIL"
		p.bad++
	case "skip":
		word = "none"
	}
	fmt.Fprintf(p.out, "%-4s  %-48s %7.1f s   %3d left   %s\n", word, name, e.Elapsed, p.left, time.Since(p.began).Round(time.Second))
	if e.Action == "fail" {
		p.explain(e, ph)
	}
	maps.DeleteFunc(p.output, func(k key, _ []string) bool { return k.pkg == e.Package })
}

// explain prints the failures of a package: each test that failed by itself, or the package's output when no test
// did.
func (p *progress) explain(e event, ph phase) {
	names := p.failedTests[e.Package]
	for _, name := range names {
		if slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			continue // its subtest reports it
		}
		p.print(p.output[key{e.Package, name}], ph.repeat(e.Package, name))
	}
	if len(names) == 0 {
		output := p.output[key{e.Package, ""}]
		if e.FailedBuild != "" {
			output = p.output[key{e.FailedBuild, ""}]
		}
		for k, lines := range p.output { // a test that never ended: a panic, or a timeout
			if k.pkg == e.Package && k.test != "" {
				output = append(output, lines...)
			}
		}
		p.print(output, ph.repeat(e.Package, ""))
	}
}

// noise matches lines of a failure's output for the go command, not for readers.
var noise = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME)|--- PASS|PASS$|ok\s)`)

// print prints the first lines of a failure, and the command that repeats it.
func (p *progress) print(output []string, repeat string) {
	lines := strings.Split(strings.TrimRight(strings.Join(output, ""), "\n"), "\n")
	lines = slices.DeleteFunc(lines, noise.MatchString)
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic:") }); i > 0 {
		lines = lines[i:]
	}
	if more := len(lines) - (failureLines - 1); more > 0 {
		lines = append(lines[:failureLines-2], fmt.Sprintf("      ... %d more lines", more+1))
	}
	for _, l := range append(lines, "      again: "+repeat) {
		fmt.Fprintln(p.out, l)
	}
}

// watch prints the running packages, regularly, until the returned function is called.
func (p *progress) watch() (stop func()) {
	done := make(chan struct{})
	go p.still(done)
	return sync.OnceFunc(func() { close(done) })
}

// still prints the running packages when none has ended for a while.
func (p *progress) still(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			p.mu.Lock()
			if time.Since(p.last) >= stillEvery {
				p.last = time.Now()
				fmt.Fprintf(p.out, "      %d left, %s: %s\n", p.left, time.Since(p.began).Round(time.Second), p.current())
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) current() string {
	if len(p.running) == 0 {
		return "compiling"
	}
	var all []string
	for name, since := range p.running {
		all = append(all, fmt.Sprintf("%s (%.0f s)", within(name), time.Since(since).Seconds()))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// finish prints the end of a lane. It returns an error when anything failed.
func (p *progress) finish() error {
	p.slowest("packages", p.ended)
	p.slowest("tests, with what they waited for", p.tests)
	if len(p.missing) > 0 {
		fmt.Fprintln(p.out, "Tests that were skipped, by what this machine lacks:")
		for _, text := range slices.Sorted(maps.Keys(p.missing)) {
			fmt.Fprintf(p.out, "  %5d  %s\n", p.missing[text], text)
		}
	}
	fmt.Fprintf(p.out, "%d packages in %s\n", len(p.ended), time.Since(p.began).Round(time.Second))
	fmt.Fprintf(p.out, "%d passed, %d failed, %d skipped\n", p.passed, p.failed, p.skipped)
	switch {
	case p.bad > 0:
		return fmt.Errorf("%d of %d packages failed", p.bad, len(p.ended))
	case p.left > 0:
		return fmt.Errorf("%d packages did not run", p.left)
	}
	return nil
}

// slowest prints the slowest of the ended ones.
func (p *progress) slowest(what string, ended []result) {
	slices.SortFunc(ended, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintf(p.out, "Slowest %s:\n", what)
	for _, r := range ended[:min(slowMost, len(ended))] {
		fmt.Fprintf(p.out, "  %7.1f s  %s\n", r.seconds, r.name)
	}
}

// within returns a package's path within its module.
func within(path string) string {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) < 4 {
		return path
	}
	return parts[3]
}
