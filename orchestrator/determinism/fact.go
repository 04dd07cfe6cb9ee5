package determinism

import (
	"fmt"
	"strings"
)

// taint is the fact that a function, or a variable that holds one, does something forbidden in orchestrator code.
type taint struct {
	// Steps lead to it, each a verb and its object: "calls a.F", "calls time.Now". Steps is not empty.
	Steps []string
	// Instead is the remedy for the last step.
	Instead string
	// Value means that the result differs between replays, and not only an effect.
	Value bool
}

// AFact marks taint as a fact that packages export.
func (*taint) AFact() {}

func (t *taint) String() string { return fmt.Sprintf("%s: %s", route(t.Steps), t.Instead) }

// shown bounds the steps of a path that are written out; the rest is counted.
const shown = 5

func route(steps []string) string {
	if skipped := len(steps) - shown; skipped > 0 {
		last := fmt.Sprintf("after %d more %s", skipped, steps[len(steps)-1])
		steps = append(steps[:shown-1:shown-1], last)
	}
	return strings.Join(steps, ", which ")
}
