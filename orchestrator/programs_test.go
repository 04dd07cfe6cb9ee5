package orchestrator

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
)

var (
	programsMost = flag.Int("programs", often(200), "how many programs TestPrograms runs, from seed 1")
	programsSeed = flag.Uint64("program", 0, "the only seed that TestPrograms runs; 0: all")
	programsPlan = flag.String("program.plan", "", "a plan as JSON that takes the place of the one that the seed of -program gives")
	programsCalm = flag.Bool("program.calm", false, "whether nothing goes wrong, on a single node")
)

// Random programs over everything that an orchestrator can do, on nodes, a host and a storage that do everything that they
// may do: what comes out is what a plain reference says.
func TestPrograms(t *testing.T) {
	t.Parallel()
	first, last := uint64(1), uint64(*programsMost)
	if *programsSeed != 0 {
		first, last = *programsSeed, *programsSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			repeat := fmt.Sprintf("go test ./orchestrator -timeout 100s -run '^TestPrograms$' -program=%d", seed)
			defer func() {
				if t.Failed() {
					t.Logf("to repeat: %s", repeat)
				}
			}()
			synctest.Test(t, func(t *testing.T) {
				r := newTrial(t, seed)
				defer r.die()
				r.run()
				if !t.Failed() {
					r.check()
				}
			})
		})
	}
}
