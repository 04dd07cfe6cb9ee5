package determinism

import (
	"fmt"
	"strings"
)

// taint is the fact that a function, or a variable that holds one, does what orchestrator code must not do.
type taint struct {
	// Steps lead there, each a verb and its object: "calls a.F", "calls time.Now". There is at least one.
	Steps []string
	// Instead is what to do about the last one.
	Instead string
	// Value says that it leads to a value that differs, and not only to an effect.
	Value bool
}

// AFact marks taint as a fact that travels between packages.
func (*taint) AFact() {}

func (t *taint) String() string { return fmt.Sprintf("%s: %s", route(t.Steps), t.Instead) }

// shown is how many steps of a path are written out; the rest is counted.
const shown = 5

func route(steps []string) string {
	if skipped := len(steps) - shown; skipped > 0 {
		last := fmt.Sprintf("after %d more %s", skipped, steps[len(steps)-1])
		steps = append(steps[:shown-1:shown-1], last)
	}
	return strings.Join(steps, ", which ")
}
