package orchestrator

import "errors"

// choice is an error with which an orchestrator sets whether the next attempt keeps the results.
type choice struct {
	error
	keeps bool
}

// Unwrap returns the orchestrator's error.
func (c *choice) Unwrap() error { return c.error }

// KeepResults makes an orchestrator's error keep the results of its attempt for the next one, regardless of the rule
// (see Attempts in the package comment). It asserts that the code undid nothing after a failure. nil stays nil.
func KeepResults(err error) error { return choose(err, true) }

// StartOver makes an orchestrator's error start the next attempt over, regardless of the rule. nil stays nil.
func StartOver(err error) error { return choose(err, false) }

func choose(err error, keeps bool) error {
	if err == nil {
		return nil
	}
	return &choice{err, keeps}
}

// keepsAfter reports whether the next attempt keeps the results of one that ended with err.
func (x *execution) keepsAfter(err error) bool {
	if c, ok := errors.AsType[*choice](err); ok {
		return c.keeps
	}
	return x.sawFailure && x.keepsResults()
}
