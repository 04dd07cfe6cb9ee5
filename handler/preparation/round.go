package preparation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// maxCauses bounds the different causes in a text, and maxText the example of each, in bytes.
	maxCauses = 4
	maxText   = 400
)

// RoundError lists the failed steps of a round.
type RoundError struct {
	// Tried is the number of tried steps, and Failures are the errors of the failed ones.
	Tried    int
	Failures []error
}

// Unwrap returns the errors of the steps.
func (e *RoundError) Unwrap() []error { return e.Failures }

// kind is a kind of failure, with the remedy.
type kind struct {
	err  error
	text string
}

// kinds returns the distinguished kinds. Any other error is its own kind.
func kinds() []kind {
	return []kind{
		{tables.ErrDenied, "refused: the app's identity needs the roles that docs/settings.md lists, and may get them while the app runs"},
		{tables.ErrThrottled, "put off by storage"},
		{tables.ErrOutcomeUnknown, "without an answer: is the storage account there, and can this app reach it?"},
	}
}

// cause is the common part of failures of one kind.
type cause struct {
	text, example string
	count         int
}

// Error returns one line: how many steps have failed, and an example of each cause.
func (e *RoundError) Error() string {
	var causes []cause
	for _, err := range e.Failures {
		text, example := explain(err)
		at := slices.IndexFunc(causes, func(c cause) bool { return c.text == text })
		if at < 0 {
			at, causes = len(causes), append(causes, cause{text: text, example: example})
		}
		causes[at].count++
	}
	var out []string
	for _, c := range causes[:min(len(causes), maxCauses)] {
		text := fmt.Sprintf("%d %s", c.count, c.text)
		if c.example != c.text {
			text += " (" + c.example + ")"
		}
		out = append(out, text)
	}
	if more := len(causes) - maxCauses; more > 0 {
		out = append(out, fmt.Sprintf("%d other causes", more))
	}
	return fmt.Sprintf("%d of %d steps failed: %s", len(e.Failures), e.Tried, strings.Join(out, "; "))
}

// explain returns the cause of an error, and its own text, both in one line.
func explain(err error) (text, example string) {
	example = strings.Join(strings.Fields(err.Error()), " ")
	if len(example) > maxText {
		example = strings.ToValidUTF8(example[:maxText], "") + "..."
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k.text, example
		}
	}
	return example, example
}
