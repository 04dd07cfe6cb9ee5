package orchestrator

import "errors"

// choice is an error with which an orchestrator chooses what the next attempt remembers.
type choice struct {
	error
	keeps bool
}

// Unwrap is the error that was chosen for.
func (c *choice) Unwrap() error { return c.error }

// KeepResults makes the error of an orchestrator keep what its attempt has done for the next one, whatever the rule says (see Attempts in
// the package comment): what the code did after a failure undid nothing. nil stays nil.
func KeepResults(err error) error { return choose(err, true) }

// StartOver makes the error of an orchestrator have the next attempt start over, whatever the rule says. nil stays nil.
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
