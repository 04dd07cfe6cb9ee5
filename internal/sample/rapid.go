package sample

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"
)

const (
	rapidChecks = "rapid.checks"
	rapidSeed   = "rapid.seed"
	// leastChecks is the minimum number of inputs of a property, for any share.
	leastChecks = 4
)

// setRapid sets the flags of the test binary once.
var setRapid sync.Once

// Rapid makes tests with pgregory.net/rapid check a share of their inputs, drawn from the seed of the run. Every test
// of a package that calls rapid.Check calls Rapid first. Flags of the command line win.
func Rapid(t testing.TB) {
	t.Helper()
	n, err := share()
	if err != nil {
		t.Fatal(err)
	}
	setRapid.Do(func() {
		given := map[string]bool{}
		flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
		for name, value := range map[string]func(was string) string{
			rapidChecks: func(was string) string {
				checks, _ := strconv.ParseUint(was, 10, 64) // a number, as rapid defines it
				return strconv.FormatUint(max(checks/n, leastChecks), 10)
			},
			rapidSeed: func(string) string { return strconv.FormatUint(sum(os.Getenv(Seed))|1, 10) }, // 0 is another seed in every run
		} {
			if f := flag.Lookup(name); f != nil && !given[name] {
				err = f.Value.Set(value(f.DefValue))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
