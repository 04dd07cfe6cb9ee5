package orchestrator

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/internal/sample"
)

var (
	programsMost = flag.Int("programs", 0, "how many programs TestPrograms runs, from seed 1; 0: a sample of the nightly ones")
	programsSeed = flag.Int("program", 0, "the only seed that TestPrograms runs; 0: all")
	programsPlan = flag.String("program.plan", "", "a plan as JSON that takes the place of the one that the seed of -program gives")
	programsCalm = flag.Bool("program.calm", false, "whether nothing goes wrong, on a single node")
)

// Random programs with all operations of an orchestrator, on nodes, a host and a storage with all allowed faults: the
// outcome equals that of a plain reference.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Chosen(t, 2000, *programsMost, *programsSeed) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t, fmt.Sprintf("-program=%d", seed))
			synctest.Test(t, func(t *testing.T) {
				r := newTrial(t, uint64(seed))
				defer r.die()
				r.run()
				if !t.Failed() {
					r.check()
				}
			})
		})
	}
}
