package preparation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// maxCauses is how many different causes a text names, and maxText how much of the error that stands for one, in bytes.
	maxCauses = 4
	maxText   = 400
)

// RoundError says which steps of a round have failed.
type RoundError struct {
	// Tried is how many steps were tried, and Failures are the errors of those that failed.
	Tried    int
	Failures []error
}

// Unwrap gives the errors of the steps.
func (e *RoundError) Unwrap() []error { return e.Failures }

// kind is what steps fail of, with what an operator does about it.
type kind struct {
	err  error
	text string
}

// kinds are those that are told apart. What is none of them stands for itself.
func kinds() []kind {
	return []kind{
		{tables.ErrDenied, "refused: the app's identity needs the roles that docs/settings.md lists, and may get them while the app runs"},
		{tables.ErrThrottled, "put off by storage"},
		{tables.ErrOutcomeUnknown, "without an answer: is the storage account there, and can this app reach it?"},
	}
}

// cause is what one kind of failures has in common.
type cause struct {
	text, example string
	count         int
}

// Error is one line: how many steps have failed, and an example of each cause.
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

// explain gives the cause of an error, and its own text, both in one line.
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
